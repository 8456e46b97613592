"""An origin that resets, or ends, its connections at random points of a body: every client has the
right bytes or is told that it has not.

    DARTFS_BUILD_DIR=build/release python3 -B tests/e2e/http_resets.py --rounds 1000
"""

import argparse
import os
import random
import socket
import struct
import sys
import unittest

import harness
from harness import BLOCK, Case, run
from scripted import Scripted

SIZE = 2 * BLOCK + 54321


class Resetting:
    """Serves the same bytes under every path. What happens to an answer is drawn from `seed`, the
    first letter of the path says how often: /s... sometimes, /a... always, /b... is range-blind."""

    def __init__(self, case, seed):
        self.random = random.Random(seed)
        self.data = random.Random(seed + 1).randbytes(SIZE)
        self.broken = 0
        self.server = Scripted(case, self.answer)

    def answer(self, request):
        blind = request.path.startswith("/b")
        wanted = None if blind else request.wanted(SIZE)
        first, last = wanted or (0, SIZE - 1)
        data = self.data[first:last + 1]
        fields = {"Content_Length": len(data), "ETag": '"r"',
                  "Content_Type": "application/octet-stream"}
        if wanted:
            fields["Content_Range"] = f"bytes {first}-{last}/{SIZE}"
        request.head(206 if wanted else 200, **fields)
        with self.server.lock:
            chance = 1.0 if request.path.startswith("/a") else 0.4
            breaks = len(data) > 1 and self.random.random() < chance
            at = self.random.randrange(len(data)) if breaks else len(data)
            resets = self.random.random() < 0.7
            self.broken += breaks
        if request.command == "HEAD":
            return
        request.send(data[:at])
        if breaks:
            end_connection(request, resets)


def end_connection(request, resets):
    request.close_connection = True
    if resets:
        request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(request.connection.detach())


def one_round(case, origin, http, number, draw):
    """True where the client had all; AssertionError where it has other bytes and does not know."""
    path = f"/{draw.choice('ssssab')}{number}"
    kind = draw.choice(("whole", "range", "resume", "proxy"))
    out = os.path.join(case.temp, "got")
    first, last = 0, SIZE - 1
    plain = origin.server.url(path)
    command = ["curl", "-sS", "-f", "--max-time", "100", "-o", out, http.prefix(plain)]
    environment = {**os.environ, "no_proxy": ""}
    with open(out, "wb") as file:
        if kind == "resume":
            file.write(origin.data[:draw.randrange(SIZE)])
            command += ["-C", "-"]
    if kind == "proxy":
        command[-1] = plain
        environment["http_proxy"] = http.url("")
    elif kind == "range":
        first = draw.randrange(SIZE)
        last = draw.randrange(first, SIZE)
        command += ["-r", f"{first}-{last}"]
    done = run(*command, check=False, timeout=110, env=environment)
    if done.returncode != 0:
        return False
    with open(out, "rb") as file:
        got = file.read()
    if got != origin.data[first:last + 1] and not (path[1] == "b" and got == origin.data):
        raise AssertionError(f"{kind} of {path}: curl is content with {len(got)} wrong bytes")
    return True


def rounds(case, count, seed):
    """(rounds in which the client had all, answers of the origin that were broken)."""
    print(f"DARTFS_SEED={seed}", file=sys.stderr)
    draw = random.Random(seed)
    origin = Resetting(case, seed)
    http = case.http_node(log_level="info", timeout="8s")
    good = 0
    for number in range(count):
        good += one_round(case, origin, http, number, draw)
    # Nothing wrong was kept: what has broken is right once the origin is.
    origin.random.random = lambda: 1.0
    for number in range(0, count, 10):
        answer = http.ask(http.prefix(origin.server.url(f"/s{number}")))
        case.assertTrue(answer.status == 200 and answer.body == origin.data, f"/s{number} after")
    return good, origin.broken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    arguments = parser.parse_args()
    seed = int(os.environ.get("DARTFS_SEED", random.randrange(1 << 30)))

    class Long(Case):
        limit = 24 * 3600

        def runTest(self):
            good, broken = rounds(self, arguments.rounds, seed)
            print(f"{arguments.rounds} clients: {good} had all bytes, {arguments.rounds - good} "
                  f"were told of a failure; the origin broke {broken} answers")

    harness.require_environment()
    sys.exit(not unittest.TextTestRunner().run(Long()).wasSuccessful())


if __name__ == "__main__":
    main()
