#!/usr/bin/env bash
# From a fresh clone to images read through a mount, on Debian 12 or 13:
#
#   sudo ./quickstart.sh                       a small image tree, mounted on /mnt/dartfs
#   sudo ./quickstart.sh SOURCE [MOUNTPOINT]   your own URL
#   sudo ./quickstart.sh --stop                unmounts and removes what this script made
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")"
. scripts/packages.sh

state=/run/dartfs-quickstart      # PIDs, what is mounted
work=/var/tmp/dartfs-quickstart   # image tree, cache, logs
default_mountpoint=/mnt/dartfs

say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "quickstart: $*" >&2
  exit 1
}
trap 'fail "stopped at line $LINENO; what is there can be removed with: sudo $0 --stop"' ERR

# Whether the process in the PID file still is the program of that name.
runs() {
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ]
}

wait_gone() {
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    runs "$1" "$2" || return 0
    sleep 0.1
  done
  return 1
}

stop() {
  if mountpoint -q "$state/loop" 2>/dev/null; then umount "$state/loop"; fi
  if [ -f "$state/mountpoint" ]; then
    local where
    where=$(cat "$state/mountpoint")
    if grep -qF " $where fuse.dartfs " /proc/mounts; then
      umount "$where" || fail "$where is in use; who uses it: fuser -vm $where"
    fi
  fi
  if runs "$state/node.pid" dartfs; then
    wait_gone "$state/node.pid" dartfs || kill "$(cat "$state/node.pid")"
    wait_gone "$state/node.pid" dartfs || fail "the node does not end; see $work/node.log"
  fi
  if runs "$state/origin.pid" test-origin; then
    kill "$(cat "$state/origin.pid")"
    wait_gone "$state/origin.pid" test-origin || fail "test-origin does not end"
  fi
  if [ -f "$state/made-mountpoint" ]; then rmdir "$(cat "$state/made-mountpoint")" || true; fi
  rm -rf "$state" "$work"
}

build_and_install() {
  say "Packages, build, installation"
  install_missing "${packages_build[@]}" "${packages_run[@]}" "${packages_quickstart[@]}"
  local log=build/quickstart-build.log launcher=()
  mkdir -p build
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  echo "building (five to ten minutes on two cores; log: $log)"
  {
    cmake --preset release "${launcher[@]}" &&
      cmake --build --preset release --target dartfs_bin dartfsctl_bin test-origin &&
      cmake --install build/release
  } >"$log" 2>&1 || fail "the build failed: $(tail -n 20 "$log")"
  # What root has built, the owner of the clone can go on with.
  if [ -n "${SUDO_UID:-}" ]; then chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" build; fi
  echo "installed $(command -v dartfs): $(dartfs --version)"
}

# A squashfs, an ext4 image and a tar of one small tree: text, random bytes, a sparse hole.
make_tree() {
  say "A small image tree"
  local tree=$work/tree contents=$work/contents
  mkdir -p "$tree/images" "$contents/docs" "$contents/data"
  for ((i = 1; i <= 200; ++i)); do echo "line $i of a text file"; done >"$contents/docs/text"
  head -c 12M /dev/urandom >"$contents/data/random"
  head -c 64K /dev/zero >"$contents/data/zeros"
  mksquashfs "$contents" "$tree/images/root.squashfs" -quiet -no-progress >/dev/null
  truncate -s 48M "$tree/images/root.ext4"
  mkfs.ext4 -q -d "$contents" "$tree/images/root.ext4"
  tar -C "$contents" -cf "$tree/root.tar" .
  echo "Images of one small tree; see images/." >"$tree/READ ME"
  (cd "$tree" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) >"$work/sums"
  (cd "$tree" && find . -type f -printf '%10s  %P\n' | sort -k2)
}

serve_tree() {
  say "An origin on loopback"
  setsid build/release/test-origin --root "$work/tree" --listen 127.0.0.1:0 \
    --port-file "$state/port" >"$work/origin.log" 2>&1 </dev/null &
  echo $! >"$state/origin.pid"
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    [ -s "$state/port" ] && break
    runs "$state/origin.pid" test-origin || [ "$tries" -lt 20 ] || break
    sleep 0.1
  done
  [ -s "$state/port" ] || fail "test-origin does not listen: $(cat "$work/origin.log")"
  source=http://127.0.0.1:$(cat "$state/port")/
  echo "$source"
}

mount_source() {
  say "Mount"
  if [ ! -d "$where" ]; then
    mkdir -p "$where"
    echo "$where" >"$state/made-mountpoint"
  fi
  echo "mount -t fuse.dartfs $(sed -E 's#://[^/@]*@#://#' <<<"$source") $where"
  mount -t fuse.dartfs "$source" "$where" \
    -o "allow_other,cache_dir=$cache,pid_file=$state/node.pid,log_file=$work/node.log"
  echo "$where" >"$state/mountpoint"
}

check_tree() {
  say "Every file through the mount, SHA-256 against the originals"
  (cd "$where" && sha256sum -c "$work/sums")
  say "The squashfs in the mount, loop-mounted out of it"
  mkdir -p "$state/loop"
  mount -o loop,ro "$where/images/root.squashfs" "$state/loop"
  ls -lR "$state/loop"
  cmp "$state/loop/data/random" "$work/contents/data/random"
  echo "data/random in it equals the original"
}

show_passthrough() {
  say "Read again: complete files, once checked, are read by the kernel itself"
  local tries file=$where/images/root.ext4 mounts=
  for ((tries = 0; tries < 50; ++tries)); do
    exec 9<"$file"
    mounts=$(dartfsctl --cache-dir "$cache" mounts)
    exec 9<&-
    grep -q 'reads 0 open files' <<<"$mounts" || break
    sleep 0.1
  done
  echo "$mounts"
}

go_on() {
  say "Mounted on $where"
  cat <<END
look at it        ls -l $where
what is cached    dartfsctl --cache-dir $cache status
one file          dartfsctl --cache-dir $cache explain $where/...
your own origin   mount -t fuse.dartfs https://host/path/ /mnt/x -o allow_other
at boot, in /etc/fstab:
  https://host/path/ /mnt/x fuse.dartfs noauto,x-systemd.automount,_netdev,allow_other 0 0
the manual        man dartfs
stop              sudo $0 --stop
END
}

usage="usage: sudo $0 [SOURCE [MOUNTPOINT]] | --stop"
case "${1:-}" in
  -h | --help)
    echo "$usage"
    exit 0
    ;;
esac
[ "$(id -u)" -eq 0 ] || fail "run as root: sudo $0 $*"
case "${1:-}" in
  --stop)
    stop
    echo "stopped"
    exit 0
    ;;
  "" | http://* | https://*) ;;
  *) fail "$usage; SOURCE is an http:// or https:// URL" ;;
esac
[ $# -le 2 ] || fail "$usage"
source=${1:-}
where=$(cd "$called_from" && realpath -m "${2:-$default_mountpoint}")

stop
mkdir -p "$state" "$work"
build_and_install
if [ -z "$source" ]; then
  cache=$work/cache
  make_tree
  serve_tree
  mount_source
  say "The mount"
  ls -lR "$where"
  check_tree
  show_passthrough
else
  cache=/var/cache/dartfs
  mount_source
  say "The mount"
  ls -l "$where" | head -n 20
fi
say "Bytes by origin and cache"
dartfsctl --cache-dir "$cache" status
go_on
