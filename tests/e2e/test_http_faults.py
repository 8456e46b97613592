"""The HTTP door between bad origins and bad clients."""

import os
import random
import socket
import struct
import sys
import threading

import http_crowd
import http_resets
from harness import BLOCK, MIB, SLOW, Case, main, sized, wait_until


class Resets(Case):
    limit = 280

    def test_an_origin_that_breaks_off_is_never_taken_for_an_end(self):
        count = sized(100, 25)
        seed = int(os.environ.get("DARTFS_SEED", random.randrange(1 << 30)))
        good, broken = http_resets.rounds(self, count, seed)
        self.assertGreater(broken, count // 4)
        self.assertTrue(0 < good < count, f"{good} of {count}: one of the outcomes is untested")


class Leavers(Case):
    """Clients that ask for all from somewhere on and leave after a byte."""

    count = 64

    def setUp(self):
        super().setUp()
        self.size = self.count * 4 * BLOCK
        self.server = self.origin()
        self.http = self.http_node(log_level="info")

    def leave_after_one_byte(self, target, at, start):
        with socket.create_connection(("127.0.0.1", self.http.port), timeout=60 * SLOW) as client:
            start.wait()
            client.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes={at}-\r\n\r\n"
                           .encode())
            said = b""
            while (head := said.find(b"\r\n\r\n")) < 0 or len(said) == head + 4:
                said += client.recv(1 if head >= 0 else 64)
            self.statuses.append(said[:12])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def all_leave(self, offsets, path):
        self.statuses = []
        start = threading.Barrier(len(offsets))
        target = self.http.prefix(self.server.url(path)).removeprefix(self.http.url(""))
        clients = [threading.Thread(target=self.leave_after_one_byte, args=(target, at, start))
                   for at in offsets]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(self.statuses, [b"HTTP/1.1 206"] * len(offsets))
        self.http.settle()
        wait_until(lambda: self.server.stats()["total"]["active"] <= 1, 30 * SLOW, "all have ended")
        taken = self.server.body_bytes(path)
        sys.stderr.write(f"{taken / BLOCK / len(offsets):.2f} blocks each ")
        return taken

    def test_at_offsets_of_their_own(self):
        path = f"/_gen/{self.size}/1/object"
        taken = self.all_leave([i * 4 * BLOCK + 1000 for i in range(self.count)], path)
        self.assertLessEqual(taken, self.count * (2 * BLOCK + 1) + 1)

    def test_at_one_offset(self):
        path = f"/_gen/{self.size}/2/object"
        self.assertLessEqual(self.all_leave([BLOCK + 1] * self.count, path), 2 * BLOCK + 2)

    def test_of_objects_of_their_own(self):
        paths = [f"/_gen/{8 * BLOCK}/{i}/object" for i in range(sized(16, 4))]
        for path in paths:
            self.assertLessEqual(self.all_leave([17], path), 2 * BLOCK + 2)


class Crowd(Case):
    limit = 280

    def test_a_crowd_takes_no_memory_and_keeps_nobody_out(self):
        """The long form, with the times: http_crowd.py."""
        alone, beside, grown = http_crowd.measure(
            self, idle=sized(400, 100), slow=sized(40, 20), loris=20, size=256 * MIB, runs=2,
            requests=sized(1000, 200))
        sys.stderr.write(f"{alone:.2f} ms alone, {beside:.2f} ms beside, {grown / MIB:.1f} MiB ")
        self.assertLess(grown, sized(64, 256) * MIB)


class Wire(Case):
    """Requests that two readers could read differently, or that are none of a client of ours. Each
    is followed by a second one on its connection, which must not be answered where the first one's
    end can't be known."""

    SECOND = b"GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def setUp(self):
        super().setUp()
        self.server = self.origin()
        self.server.add_file("/a", text="the object")
        self.http = self.http_node(log_level="info")
        self.target = self.http.prefix(self.server.url("/a")).removeprefix(self.http.url(""))

    def head(self, *lines, method="GET", target=None, host="localhost"):
        first = [f"{method} {target or self.target} HTTP/1.1", f"Host: {host}"]
        return "\r\n".join([*first, *lines]).encode() + b"\r\n\r\n"

    def statuses(self, said):
        return [int(piece[:3]) for piece in said.split(b"HTTP/1.1 ")[1:]]

    def refused(self, request, status):
        """Once, and the connection ends."""
        said = self.http.say(request + self.SECOND)
        self.assertEqual(self.statuses(said), [status], (request, said))

    def test_a_normal_request_is_answered(self):
        said = self.http.say(self.head("Connection: close"))
        self.assertEqual(self.statuses(said), [200])
        self.assertTrue(said.endswith(b"\r\n\r\nthe object"))

    def test_pages_of_other_sites(self):
        for name in ("Sec-Fetch-Site: cross-site", "sec-fetch-site: Cross-Site"):
            said = self.http.say(self.head(name, "Connection: close"))
            self.assertEqual(self.statuses(said), [403], name)
            self.assertNotIn(b"the object", said)
        for name in ("Sec-Fetch-Site: none", "Sec-Fetch-Site: same-origin"):
            said = self.http.say(self.head(name, "Connection: close"))
            self.assertEqual(self.statuses(said), [200], name)
        self.assertEqual(self.server.requests("/a"), 2)  # the probe, the block

    def test_names_that_are_not_ours(self):
        for host in ("evil.example", "localhost.evil.example", "evil.example:8145", "",
                     "127.0.0.1.evil.example"):
            said = self.http.say(self.head("Connection: close", host=host))
            self.assertIn(self.statuses(said), ([403], [400]), host)
        for host in ("localhost", "127.0.0.1", f"127.0.0.1:{self.http.port}", "[::1]", "LOCALHOST"):
            said = self.http.say(self.head("Connection: close", host=host))
            self.assertEqual(self.statuses(said), [200], host)

    def test_bodies_of_a_get(self):
        for method in ("GET", "HEAD"):
            self.refused(self.head("Content-Length: 4", method=method) + b"body", 400)
            self.refused(self.head("Transfer-Encoding: chunked", method=method)
                         + b"4\r\nbody\r\n0\r\n\r\n", 400)

    def test_transfer_encodings(self):
        for field in ("Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked",
                      "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: xchunked",
                      "Transfer-Encoding : chunked", "Transfer-Encoding: chunked\r\n x",
                      "Transfer-Encoding:\x0bchunked", "Transfer-Encoding: chunked;q=1",
                      "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: , chunked",
                      "Content-Length: 0\r\nTransfer-Encoding: chunked",
                      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"):
            request = self.head(field) + b"0\r\n\r\n"
            said = self.http.say(request + self.SECOND)
            self.assertIn(self.statuses(said), ([400], [501]), (field, said))

    def test_lengths_and_heads(self):
        for lines in (("Content-Length: 4", "Content-Length: 5"), ("Content-Length: -1",),
                      ("Content-Length: +4",), ("Content-Length: 4, 4",), ("Host: localhost",),
                      ("No colon",), (" folded: x",), ("Name : x",), ("N\x00: x",), ("X: a\x00b",),
                      ("Content-Length: 99999999999999999999",)):
            self.refused(self.head(*lines), 400)
        self.refused(f"GET {self.target} HTTP/1.1\r\n\r\n".encode(), 400)
        self.refused(f"GET  {self.target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), 400)
        said = self.http.say(f"GET {self.target} HTTP/2.0\r\nHost: localhost\r\n\r\n".encode())
        self.assertIn(self.statuses(said), ([400], [505]))

    def test_what_is_no_http_is_refused_at_once(self):
        """Clients try TLS on a plain port first and wait for the refusal before they go on."""
        for said in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2,
                     b"\x16", b"\x00\x01\x02", b"SSH-2.0-OpenSSH_9.2\r\n"):
            with self.subTest(said=said[:8]):
                self.http.say(said, timeout=5)

    def test_long_lines(self):
        fits = self.target + "?" + "q" * (15 << 10)
        self.server.add_file("/a?" + "q" * (15 << 10), text="long")
        said = self.http.say(self.head("Connection: close", target=fits))
        self.assertEqual(self.statuses(said), [200])
        self.refused(self.head(target=self.target + "?" + "q" * (100 << 10)), 414)
        self.refused(self.head("X: " + "y" * (1 << 20)), 431)

    def test_bytes_that_no_url_has(self):
        for bad in ("\x01", "\x7f", "\xe4", "\t"):
            request = f"GET {self.target}{bad} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            self.refused(request.encode("latin-1"), 400)
        for bad in ("%0d%0aX:%20y", "%00", "%20"):
            self.http.say(self.head("Connection: close", target=self.target + bad))
        targets = [logged["target"] for logged in self.server.control("GET", "log")]
        self.assertEqual([t for t in targets if any(ord(c) <= 32 for c in t)], [])
        names = {name for logged in self.server.control("GET", "log")
                 for name, _ in logged["headers"]}
        self.assertNotIn("X", names)

    def test_expect_on_a_refused_method(self):
        """Refused before the body: it is never waited for."""
        said = self.http.say(self.head("Content-Length: 1000000", "Expect: 100-continue",
                                       method="POST"))
        self.assertEqual(self.statuses(said), [405])
        self.assertIn(b"Allow: GET", said)

    def test_pipelined_byte_by_byte_and_half_closed(self):
        request = self.head() * 3 + self.head("Connection: close")
        self.assertEqual(self.http.say(request).count(b"the object"), 4)
        with socket.create_connection(("127.0.0.1", self.http.port), timeout=20 * SLOW) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in self.head():
                client.sendall(bytes([byte]))
            client.shutdown(socket.SHUT_WR)
            said = b""
            while piece := client.recv(4096):
                said += piece
        self.assertTrue(said.endswith(b"the object"), said)

    def test_loops_tunnels_and_addresses_of_the_cloud(self):
        me = self.http.prefix(self.http.url("/dart/" + self.server.url("/a")))
        self.assertIn(self.http.ask(me).status, (502, 508))
        said = self.http.say(self.head("Connection: close", method="CONNECT",
                                       target=self.server.authority))
        self.assertIn(self.statuses(said), ([403], [405], [501]))
        for host in ("169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "[fd00:ec2::254]",
                     "100.100.100.200", "2852039166", "0xa9fea9fe"):
            answer = self.http.ask(self.http.prefix(f"http://{host}/latest/meta-data"))
            self.assertIn(answer.status, (400, 403), host)


if __name__ == "__main__":
    main()
