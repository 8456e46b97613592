# What has to be installed, by Debian's names (12 and 13). Sourced by quickstart.sh, test.sh and
# .ci/run.
# "a|b" is the first of them that this release has.
# shellcheck shell=bash disable=SC2034

packages_build=(
  build-essential cmake ninja-build pkg-config
  libfuse3-dev libcurl4-openssl-dev liburing-dev libxxhash-dev libssl-dev liblmdb-dev libevent-dev
  libxml2-dev nlohmann-json3-dev prometheus-cpp-dev libcli11-dev
  libboost-dev libspdlog-dev libfmt-dev libsystemd-dev
  libgtest-dev libgmock-dev libbenchmark-dev python3
)
packages_run=(fuse3 ca-certificates util-linux)
packages_quickstart=(squashfs-tools e2fsprogs tar)
packages_test=(
  systemd "nginx-light|nginx" curl squashfs-tools erofs-utils e2fsprogs qemu-utils fio mandoc
  chromium wget aria2 qemu-block-extra docker-registry skopeo containerd apache2-utils openssl
)
packages_ci=(ccache clang-14 clang-format-14 clang-tidy-14)

# install_missing NAME...: installs what is not there yet; needs root only if something is missing.
install_missing() {
  local wanted name missing=()
  for wanted in "$@"; do
    name=$(first_available "$wanted") || {
      echo "no package for '$wanted' in this release's lists" >&2
      return 1
    }
    installed "$name" || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "missing packages, run as root to install them: ${missing[*]}" >&2
    return 1
  fi
  echo "installing: ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The first alternative that is installed, else the first that can be.
first_available() {
  local name alternatives
  IFS='|' read -ra alternatives <<<"$1"
  for name in "${alternatives[@]}"; do
    if installed "$name"; then echo "$name" && return 0; fi
  done
  [ ${#alternatives[@]} -eq 1 ] && echo "${alternatives[0]}" && return 0
  for name in "${alternatives[@]}"; do
    if apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
      echo "$name" && return 0
    fi
  done
  # The lists may never have been fetched.
  echo "${alternatives[0]}"
}
