"""Misbehaving origins through the mount: each line of the table of faults, where a user meets it.

A fault is set, the mount is read: the bytes are right or there is an error, within a deadline, and
once the fault has ended everything is right again without a restart.
"""

import errno
import os
import threading
import time

import trees
from harness import BLOCK, KIB, MIB, SLOW, Case, main, sized, wait_until
from servers import Origin

SIZE = 2 * BLOCK + 5  # a tail block of a few bytes


class FaultCase(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        trees.write_random(os.path.join(self.root, "file"), SIZE, 7)
        trees.write_random(os.path.join(self.root, "other"), SIZE, 8)
        trees.write_random(os.path.join(self.root, "empty"), 0, 9)
        trees.age(self.root)
        self.server = self.origin(self.root)

    def mount(self, **options):
        options.setdefault("timeout", f"{10 * SLOW}s")
        return self.node(self.server.url(), **options)

    def assert_right(self, node, name="file"):
        true = trees.sha256_of(os.path.join(self.root, name))
        self.assertEqual(trees.sha256_of(node.path(name)), true)

    def read_or_errno(self, node, name="file"):
        """None if the right bytes came, else the errno; wrong bytes fail the test."""
        try:
            shown = trees.sha256_of(node.path(name))
        except OSError as error:
            return error.errno
        self.assertEqual(shown, trees.sha256_of(os.path.join(self.root, name)), "wrong bytes")
        return None

    def recovers(self, node, name="file"):
        """Right without a restart, once errors are no longer remembered."""
        self.server.faults()
        wait_until(lambda: self.read_or_errno(node, name) is None, 20 * SLOW, "it recovers", 0.3)
        self.assertTrue(node.alive())

    def assert_nothing_wrong_stored(self, node, name="file"):
        """With the origin gone, every block that the cache holds is right."""
        held = node.held(name)
        if not held:
            return
        self.server.faults({"fault": "hang-up"})
        try:
            shown = os.open(node.path(name), os.O_RDONLY)
        except OSError:
            self.server.faults()
            return  # its version is in doubt, and there is nobody to ask
        try:
            with open(os.path.join(self.root, name), "rb") as true:
                for block in held:
                    self.assertEqual(os.pread(shown, 4096, block * BLOCK),
                                     os.pread(true.fileno(), 4096, block * BLOCK))
        finally:
            os.close(shown)
        self.server.faults()


class StillRight(FaultCase):
    """Faults that a reader must not notice at all: the SHA-256 is equal."""

    def each(self, table, **mount):
        for name, rules in table.items():
            with self.subTest(name):
                self.server.faults(*rules)
                node = self.mount(**mount)
                self.assert_right(node)
                for fault, times in self.server.fired().items():
                    self.assertGreater(times, 0, f"{fault} was never met")
                self.server.faults()
                node.stop()

    def test_range_blind_origins_are_spooled(self):
        self.each({
            "always": [{"fault": "ignore-range", "path": "/file"}],
            "always, without length": [{"fault": "ignore-range", "path": "/file"},
                                       {"fault": "chunked", "path": "/file"}],
            "at offsets above 0": [{"fault": "ignore-range", "path": "/file", "min_offset": 1}],
            "every second time": [{"fault": "ignore-range", "path": "/file", "every_k": 2,
                                   "ranged_only": True}],
            "200 with the part": [{"fault": "range-on-200", "path": "/file", "min_offset": 1}],
        })

    def test_range_blind_objects_are_fetched_once(self):
        self.server.faults({"fault": "ignore-range", "path": "/file"})
        node = self.mount()
        self.assert_right(node)
        with open(node.path("file"), "rb") as file:
            file.seek(BLOCK)
            file.read(10)
        sent = self.server.body_bytes("/file")
        self.assertLessEqual(sent, 2 * SIZE + MIB, "once whole, and the probe's answer at most")

    def test_framing_and_connections(self):
        path = {"path": "/file"}
        self.each({
            "no length": [{"fault": "no-length", **path}],
            "chunked": [{"fault": "chunked", **path}],
            "HEAD refused": [{"fault": "head-refused", **path}],
            "GET alone": [{"fault": "get-only", **path}],
            "reset in a block": [{"fault": "reset", **path, "after_bytes": 100000, "times": 2}],
            "reset at the start": [{"fault": "reset", **path, "times": 1, "skip": 1}],
            "short body": [{"fault": "short-body", **path, "after_bytes": 300000, "times": 2}],
            "416 past the end": [{"fault": "past-end-416", **path}],
            "interim 100": [{"fault": "interim-100", **path, "count": 3}],
            "interim 103": [{"fault": "interim-103", **path, "count": 2}],
            "closed on reuse": [{"fault": "close-on-reuse", **path}],
            "closed early": [{"fault": "close-early", **path, "delay_ms": 5}],
            "hung up once": [{"fault": "hang-up", **path, "times": 1, "skip": 1}],
            "one 500": [{"fault": "status", **path, "status": 500, "times": 1, "skip": 1}],
            "503 with Retry-After": [{"fault": "status", **path, "status": 503, "times": 2,
                                      "skip": 1, "retry_after": 1}],
            "429 without": [{"fault": "status", **path, "status": 429, "times": 3, "skip": 1}],
            "slow head": [{"fault": "slow-head", **path}],
            "weak ETag": [{"fault": "weak-etag", **path}],
            "no ETag": [{"fault": "no-etag", **path}],
            "no validator": [{"fault": "no-etag", **path}, {"fault": "no-last-modified", **path}],
            "fresh Last-Modified": [{"fault": "no-etag", **path},
                                    {"fault": "fresh-last-modified", **path}],
        }, timeout=f"{30 * SLOW}s")

    def test_redirects(self):
        other = Origin(self, self.root)
        self.addCleanup(other.stop)
        os.link(os.path.join(self.root, "file"), os.path.join(self.root, "twin"))
        path = {"path": "/file"}
        self.each({
            "relative": [{"fault": "redirect", **path, "target": "twin"}],
            "another host": [{"fault": "redirect", **path, "target": other.url("{path}")}],
            "301": [{"fault": "redirect", **path, "status": 301, "target": other.url("{path}")}],
            "308": [{"fault": "redirect", **path, "status": 308, "target": other.url("{path}")}],
            "chain": [{"fault": "redirect-chain", **path, "count": 4}],
            "signed, each time anew": [{"fault": "redirect-signed", **path}],
            "signed, short-lived": [{"fault": "redirect-signed", **path, "delay_ms": 300}],
        })

    def test_empty_object(self):
        for answer in ("416", "200"):
            with self.subTest(answer):
                self.server.set(empty_range=answer)
                node = self.mount()
                self.assertEqual(os.stat(node.path("empty")).st_size, 0)
                with open(node.path("empty"), "rb") as file:
                    self.assertEqual(file.read(), b"")
                node.stop()

    def test_a_416_that_tells_no_size_is_not_an_empty_object(self):
        self.server.set(empty_range="416-bare")
        node = self.mount()
        with self.assertRaises(OSError):
            os.stat(node.path("empty"))

    def test_one_500_on_the_first_look(self):
        self.server.faults({"fault": "status", "status": 500, "times": 1, "path": "/"})
        node = self.mount()
        try:
            os.listdir(node.mountpoint)
        except OSError:
            time.sleep(1.2)  # an error is remembered for a second
        self.assertIn("file", os.listdir(node.mountpoint))
        self.assert_right(node)


class Refused(FaultCase):
    """Faults that end in an error; nothing wrong is shown or stored, and all is well afterwards."""

    def each(self, table):
        for name, rules in table.items():
            with self.subTest(name):
                self.server.faults(*rules)
                node = self.mount()
                began = time.monotonic()
                code = self.read_or_errno(node)
                self.assertIsNotNone(code, "an error was due")
                self.assertIn(code, (errno.EIO, errno.ETIMEDOUT, errno.EACCES, errno.ENOENT,
                                     errno.ESTALE, errno.EAGAIN, errno.EHOSTUNREACH))
                self.assertLess(time.monotonic() - began, 45 * SLOW)
                self.assert_nothing_wrong_stored(node)
                self.recovers(node)
                node.stop()

    def test_wrong_ranges(self):
        after = {"path": "/file", "min_offset": 1}
        self.each({
            "another range": [{"fault": "wrong-range", **after, "shift": 4096}],
            "shorter than it says": [{"fault": "short-range", **after}],
            "shorter": [{"fault": "truncated-range", **after, "count": 10}],
            "wrong total": [{"fault": "wrong-total", **after, "shift": 3}],
            "no Content-Range": [{"fault": "no-content-range", **after}],
            "multipart": [{"fault": "multipart", **after}],
            "extra length": [{"fault": "duplicate-length", **after}],
            "length and chunked": [{"fault": "length-and-chunked", **after}],
            "always 0-0 of *": [{"fault": "zero-range", "path": "/file"}],
            "gzip": [{"fault": "gzip", **after}],
            "gzip label": [{"fault": "gzip-label", **after}],
        })

    def test_total_never_told(self):
        self.each({"bytes a-b/*": [{"fault": "unknown-total", "path": "/file"}]})

    def test_statuses(self):
        path = {"path": "/file"}
        self.each({
            "404": [{"fault": "status", **path, "status": 404}],
            "403": [{"fault": "status", **path, "status": 403}],
            "401": [{"fault": "auth", **path}],
            "garbage": [{"fault": "garbage", **path}],
            "redirect loop": [{"fault": "redirect-loop", **path}],
            "huge head": [{"fault": "huge-head", **path, "count": 4 * MIB}],
        })

    def test_codes_of_refusal(self):
        for status, wanted in ((403, errno.EACCES), (401, errno.EACCES), (404, errno.ENOENT),
                               (410, errno.ENOENT)):
            with self.subTest(status):
                self.server.faults({"fault": "status", "path": "/file", "status": status})
                node = self.mount()
                with self.assertRaises(OSError) as caught:
                    os.stat(node.path("file"))
                self.assertEqual(caught.exception.errno, wanted)
                self.assert_right(node, "other")
                self.server.faults()
                node.stop()

    def test_a_directory_that_wants_a_login_is_not_empty(self):
        self.server.faults({"fault": "status", "path": "/", "status": 401})
        node = self.mount()
        with self.assertRaises(OSError) as caught:
            os.listdir(node.mountpoint)
        self.assertEqual(caught.exception.errno, errno.EACCES)
        self.assertIn("login", node.log_text())
        self.assertEqual(self.listing_error(node), ("unauthorized", 401))

    def test_a_directory_without_a_listing_says_so(self):
        for status in (403, 404):
            with self.subTest(status):
                self.server.faults({"fault": "status", "path": "/", "status": status})
                node = self.mount()
                for _ in range(2):
                    self.assertEqual(os.listdir(node.mountpoint), [])
                    time.sleep(1.1)
                self.assertEqual(node.log_text().count("names there can only be looked up"), 1)
                self.assertEqual(self.listing_error(node)[1], status)
                self.assert_right(node, "other")
                node.stop()

    def test_a_listing_that_fails_is_explained(self):
        self.server.faults({"fault": "status", "path": "/", "status": 500})
        node = self.mount()
        with self.assertRaises(OSError):
            os.listdir(node.mountpoint)
        self.assertEqual(self.listing_error(node), ("unavailable", 500))

    def listing_error(self, node):
        told = node.explain(self.server.url())["listing"]["last_error"]
        self.assertEqual(told, {**node.explain("")["listing"]["last_error"],
                                "age_ms": told["age_ms"]})
        return told["code"], told["http_status"]

    def test_redirect_to_a_refused_address(self):
        self.server.faults({"fault": "redirect", "path": "/file",
                            "target": "http://169.254.169.254/latest/meta-data"})
        node = self.mount()
        self.assertIsNotNone(self.read_or_errno(node))
        told = node.explain("file")
        self.assertIn("169.254.169.254", str(told.get("last_error")))


class Credentials(FaultCase):
    def test_a_login_in_the_source_and_not_on_another_host(self):
        other = Origin(self, self.root)
        self.addCleanup(other.stop)
        self.server.faults({"fault": "auth", "credential": "user:pass"})
        node = self.node(self.server.url().replace("http://", "http://user:pass@"))
        self.assert_right(node)
        self.server.faults({"fault": "redirect", "path": "/other", "target": other.url("{path}")})
        self.assert_right(node, "other")
        self.assertNotIn("authorization", str(other.control("GET", "log")).lower())


class Unreachable(FaultCase):
    def test_warm_cache_with_the_origin_gone(self):
        """Cached bytes are served past the TTL; never "0 bytes", never deleted."""
        node = self.mount(ttl="1s")
        os.listdir(node.mountpoint)
        self.assert_right(node)
        self.server.stop()
        time.sleep(1.5)
        for _ in range(3):
            self.assertEqual(os.stat(node.path("file")).st_size, SIZE)
            self.assert_right(node)
            time.sleep(0.4)
        self.assertIn("file", os.listdir(node.mountpoint))
        with self.assertRaises(OSError) as caught:
            trees.sha256_of(node.path("other"))
        self.assertIn(caught.exception.errno, (errno.EIO, errno.ETIMEDOUT))
        self.server.start()
        wait_until(lambda: self.read_or_errno(node, "other") is None, 20 * SLOW, "back", 0.3)

    def test_busy_for_a_while(self):
        """429 without Retry-After for seconds: backed off, then fine; no storm of requests."""
        node = self.mount(timeout=f"{60 * SLOW}s")
        os.stat(node.path("file"))
        self.server.reset_stats()
        self.server.faults({"fault": "status", "path": "/file", "status": 429, "for_ms": 3000})
        self.assert_right(node)
        asked = self.server.requests("/file")
        self.assertLess(asked, 80, "backed off")

    def test_resolving_and_connecting(self):
        """A host that does not exist and a port where nobody listens: soon an error, and said."""
        for source in ("http://nothing.invalid/", "http://127.0.0.1:9/"):
            with self.subTest(source):
                node = self.node(source, timeout=f"{10 * SLOW}s")
                with self.assertRaises(OSError) as caught:
                    os.stat(node.path("file"))
                self.assertIn(caught.exception.errno, (errno.EIO, errno.ETIMEDOUT))
                node.stop()


class Stalls(FaultCase):
    def test_headers_then_silence_ends_by_the_deadline(self):
        """Those reads end; cached reads do not notice; then all is well."""
        node = self.mount(timeout="4s")
        self.assert_right(node, "other")
        os.stat(node.path("file"))
        self.server.faults({"fault": "stall-body", "path": "/file", "after_bytes": 0,
                            "ranged_only": True})
        results = []

        def read(index):
            fd = os.open(node.path("file"), os.O_RDONLY)
            began = time.monotonic()
            try:
                os.pread(fd, 4096, index * 64 * KIB)
                results.append(("bytes", 0.0))
            except OSError as error:
                results.append((error.errno, time.monotonic() - began))
            finally:
                os.close(fd)
        readers = [threading.Thread(target=read, args=(i,)) for i in range(sized(64, 16))]
        for reader in readers:
            reader.start()
        self.assert_right(node, "other")
        for reader in readers:
            reader.join(60 * SLOW)
            self.assertFalse(reader.is_alive())
        self.assertEqual({code for code, _ in results} - {errno.ETIMEDOUT, errno.EIO}, set())
        self.assertLess(max(took for _, took in results), 15 * SLOW)
        self.recovers(node)

    def test_a_stall_in_the_middle_is_resumed(self):
        """Silence in a body once: the transfer is given up and resumed, and the bytes are right."""
        self.server.faults({"fault": "stall-body", "path": "/file", "after_bytes": MIB,
                            "min_offset": 1, "times": 1})
        node = self.mount(timeout=f"{60 * SLOW}s")
        self.assert_right(node)

    def test_a_slow_origin_is_not_a_stalled_one(self):
        self.server.faults({"fault": "slow-body", "path": "/file", "rate": 2 * MIB})
        node = self.mount(timeout=f"{60 * SLOW}s")
        self.assert_right(node)


if __name__ == "__main__":
    main()
