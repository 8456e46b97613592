#!/bin/sh
# The HTTP door beside nginx: requests and bytes a second, server CPU for each, ratios.
# http.sh [--size 1GiB] [--rounds 9] [--seconds 3] [--only small,large,whole,slice]
#         [--build DIR] [--dir DIR]
# Needs two cores, root, nginx and wrk. Leaves nothing behind.
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -B "$here/http_bench.py" "$@"
