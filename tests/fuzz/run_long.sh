#!/bin/sh
# Fuzzes every target with libFuzzer under the address and undefined behaviour sanitizers.
#   tests/fuzz/run_long.sh [MINUTES PER TARGET, default 10] [TARGET...]
# The corpus grows in build/fuzz/corpus/<target>; a failing input is left in build/fuzz/artifacts.
set -eu

minutes=${1:-10}
[ $# -gt 0 ] && shift
case $minutes in
  '' | *[!0-9]*) echo "usage: $0 [MINUTES] [TARGET...]" >&2; exit 2 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/fuzz

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER="${CC:-clang-14}" -DCMAKE_CXX_COMPILER="${CXX:-clang++-14}" \
  -DDARTFS_FUZZ=ON -DDARTFS_SANITIZE=fuzzer-no-link,address,undefined -DDARTFS_BENCH=OFF
cmake --build "$build" --target fuzzers

if [ $# -eq 0 ]; then
  for source in "$here"/*_fuzz.cc; do
    name=$(basename "$source" _fuzz.cc)
    set -- "$@" "$name"
  done
fi

failed=
for name in "$@"; do
  corpus=$build/corpus/$name
  mkdir -p "$corpus" "$build/artifacts"
  echo "== $name: $minutes min"
  seeds=
  dict=
  [ -d "$here/seeds/$name" ] && seeds=$here/seeds/$name
  [ -f "$here/dict/$name.dict" ] && dict=-dict=$here/dict/$name.dict
  "$build/tests/fuzz/fuzz_$name" -max_total_time=$((minutes * 60)) -timeout=10 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/artifacts/$name-" \
    ${dict:+"$dict"} "$corpus" ${seeds:+"$seeds"} || failed="$failed $name"
done
if [ -n "$failed" ]; then
  echo "failed:$failed (inputs in $build/artifacts)" >&2
  exit 1
fi
