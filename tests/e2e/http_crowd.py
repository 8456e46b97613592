"""A crowd on the HTTP door: idle keep-alive connections, clients that read 1 KB/s, slowloris; and
what a normal client of 4 KiB has to wait beside it.

    DARTFS_BUILD_DIR=build/release python3 -B tests/e2e/http_crowd.py
"""

import argparse
import resource
import select
import socket
import statistics
import subprocess
import sys
import time
import unittest

import harness
from harness import MIB, SLOW, Case

GIB = 1 << 30
TICKS = 50  # a second
SLOW_BYTES = 1024  # that a slow reader takes each second
PACE = 0.001  # seconds between a normal client's requests


def readable(file, wait_ms=0):
    """select() takes no descriptors above 1023."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(wait_ms))


class Hold:
    """The crowd, in a process of its own. Says "ready" once all are there; ends with stdin."""

    def __init__(self, port, target, slow_target, idle, slow, loris):
        self.port, self.target, self.slow_target = port, target, slow_target
        self.idle = [self.idler() for _ in range(idle)]
        self.slow = [self.slow_reader() for _ in range(slow)]
        self.loris = [self.slow_head() for _ in range(loris)]

    def connect(self, receive=None):
        client = socket.socket()
        if receive:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        client.settimeout(60 * SLOW)
        client.connect(("127.0.0.1", self.port))
        return client

    def head(self, target, more=""):
        return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}\r\n".encode()

    def idler(self):
        client = self.connect()
        client.sendall(self.head(self.target, "Range: bytes=0-0\r\n"))
        said = client.recv(65536)
        if not said.startswith(b"HTTP/1.1 206"):
            sys.exit(f"an idle client was told {said[:80]!r}")
        return client

    def slow_reader(self):
        client = self.connect(receive=4096)
        client.sendall(self.head(self.slow_target))
        return client

    def slow_head(self):
        client = self.connect()
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")
        return client

    def read_slowly(self, client):
        if not client.recv(SLOW_BYTES):
            sys.exit("a slow reader was cut off")

    def write_slowly(self, at):
        client = self.loris[at]
        try:
            client.sendall(b"a")
            refused = readable(client)
        except OSError:
            refused = True
        if refused:  # comes back, as they do
            client.close()
            self.loris[at] = self.slow_head()

    def run(self):
        """Each does something once a second, not all at once."""
        print("ready", flush=True)
        tick = 0
        while not readable(sys.stdin, 1000 // TICKS):
            tick = (tick + 1) % TICKS
            for client in self.slow[tick::TICKS]:
                self.read_slowly(client)
            for at in range(tick, len(self.loris), TICKS):
                self.write_slowly(at)
        for client in self.idle:
            if readable(client):
                sys.exit("an idle connection was closed")


class Crowd:
    def __init__(self, case, http, url, slow_url, idle, slow, loris):
        self.command = [sys.executable, "-B", __file__, "--hold", str(http.port),
                        http.prefix(url).removeprefix(http.url("")),
                        http.prefix(slow_url).removeprefix(http.url("")),
                        str(idle), str(slow), str(loris)]
        self.case = case

    def __enter__(self):
        self.process = self.case.spawn(*self.command, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            raise AssertionError(f"the crowd ended with {self.process.wait()}")
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        code = self.process.wait(timeout=120)
        self.process.stdin = None
        if kind is None and code != 0:
            raise AssertionError(f"the crowd ended with {code}")


def p99_ms(http, url, count):
    """Of requests of 4 KiB, each a moment after the other's answer, on one connection."""
    target = http.prefix(url).removeprefix(http.url("")).encode()
    times = []
    with socket.create_connection(("127.0.0.1", http.port), timeout=60 * SLOW) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count):
            at = number * 7919 * 4096 % (32 * MIB)
            request = (b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=%d-%d\r\n\r\n"
                       % (target, at, at + 4095))
            began = time.perf_counter()
            client.sendall(request)
            said = client.recv(65536)
            while said and len(said) < said.find(b"\r\n\r\n") + 4 + 4096:
                said += client.recv(65536)
            times.append(time.perf_counter() - began)
            if not said.startswith(b"HTTP/1.1 206"):
                raise AssertionError(f"a normal client was told {said[:80]!r}")
            time.sleep(PACE)
    return statistics.quantiles(times, n=100)[98] * 1e3


def measure(case, idle, slow, loris, size, runs, requests, seconds=5):
    """(median p99 without crowd, with it, in ms; bytes by which the node has grown)."""
    _more_files()
    server = case.origin()
    http = case.http_node(log_level="info", cache_size="4GiB")
    url, slow_url = server.url(f"/_gen/{32 * MIB}/1/normal"), server.url(f"/_gen/{size}/2/large")
    http.ask(http.prefix(url))
    p99_ms(http, url, requests)
    before = http.memory()
    alone, beside, grown = [], [], 0
    for _ in range(runs):
        alone.append(p99_ms(http, url, requests))
        with Crowd(case, http, url, slow_url, idle, slow, loris):
            end = time.monotonic() + seconds
            beside.append(p99_ms(http, url, requests))
            grown = max(grown, http.memory() - before)
            while time.monotonic() < end:
                time.sleep(0.2)
                grown = max(grown, http.memory() - before)
    return statistics.median(alone), statistics.median(beside), grown


def _more_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main():
    if sys.argv[1:2] == ["--hold"]:
        _more_files()
        port, target, slow_target, *counts = sys.argv[2:]
        return Hold(int(port), target, slow_target, *map(int, counts)).run()
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("idle", 2000), ("slow", 200), ("loris", 100), ("runs", 5),
                        ("requests", 5000)):
        parser.add_argument("--" + name, type=int, default=count)
    arguments = parser.parse_args()

    class Long(Case):
        limit = 3600

        def runTest(self):
            alone, beside, grown = measure(self, size=GIB, seconds=10, **vars(arguments))
            print(f"p99 of 4 KiB, median of {arguments.runs} runs: {alone:.3f} ms alone, "
                  f"{beside:.3f} ms beside the crowd ({beside / alone:.2f}x); "
                  f"{grown / MIB:.1f} MiB more resident")
            self.assertLess(beside, 3 * alone)
            self.assertLess(grown, 64 * MIB)

    harness.require_environment()
    sys.exit(not unittest.TextTestRunner().run(Long()).wasSuccessful())


if __name__ == "__main__":
    main()
