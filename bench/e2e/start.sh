#!/bin/sh
# How soon a node with a large cache answers: from the start of the process to the mount, and to the
# last of 1,000 stats of random names; after a stop and after a kill.
# start.sh [--objects 250000] [--rounds 5] [--build DIR] [--dir DIR]
# Root only. Leaves nothing behind.
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -B "$here/start_bench.py" "$@"
