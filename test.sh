#!/usr/bin/env bash
# Installs what is missing, builds, runs every test: sudo ./test.sh [--preset release|dev|asan|tsan]
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh

preset=release
case "${1:-}" in
  --preset) preset=${2:?"--preset needs a name: release, dev, asan or tsan"} ;;
  "") ;;
  *) echo "usage: sudo ./test.sh [--preset release|dev|asan|tsan]" >&2 && exit 1 ;;
esac
if [ "$(id -u)" -ne 0 ]; then
  echo "The tests mount file systems and loop devices: run as root (sudo ./test.sh)." >&2
  exit 1
fi

install_missing "${packages_build[@]}" "${packages_run[@]}" "${packages_test[@]}"

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake --preset "$preset" "${launcher[@]}"
cmake --build --preset "$preset"

# A report of a sanitizer fails the test that caused it.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j2 --timeout 900
