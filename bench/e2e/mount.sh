#!/bin/sh
# The mount beside curl and the bare file: rates, ratios, CPU seconds per GB.
# mount.sh [--size 1GiB] [--rounds 9] [--only cold,warm,slow,threads] [--server nginx|test-origin]
#          [--build DIR] [--dir DIR]
# Root only. Leaves nothing behind.
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -B "$here/mount_bench.py" "$@"
