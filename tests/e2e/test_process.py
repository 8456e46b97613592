"""What the processes around a mount do to it: signals all the time, no descriptors left, walks of
the whole tree, threads side by side, a descriptor of a dead mount."""

import json
import os
import resource
import subprocess
import sys
import threading
import time
import unittest

import lending
import trees
from harness import (BLOCK, HERE, KIB, MIB, SANITIZER, SLOW, Case, is_mounted, main, run, sized,
                     wait_until)

DELAY_MS = 20


class ProcessCase(Case):
    def reader(self, *arguments, **more):
        """A reader.py that is ready to begin."""
        process = self.spawn(sys.executable, "-S", "-B", os.path.join(HERE, "reader.py"),
                             *arguments, stdout=subprocess.PIPE, stdin=subprocess.PIPE, **more)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def findings(self, process, given=None):
        said, _ = process.communicate(given, timeout=100 * SLOW)
        self.assertEqual(process.returncode, 0)
        return json.loads(said)


class Signals(ProcessCase):
    def test_a_thousand_a_second_at_cold_reads(self):
        """As Go sends SIGURG: no read, open or page fault ends early, and none takes for ever."""
        root = self.dir("tree")
        size = sized(48, 16) * BLOCK + 77
        for seed, name in enumerate(("read", "direct", "map")):
            with open(os.path.join(root, name), "wb") as file:
                for offset in range(0, size, 64 * KIB):
                    file.seek(offset)
                    file.write(b"%d at %d" % (seed, offset))
                file.truncate(size)
        trees.age(root)
        server = self.origin(root, delay_ms=DELAY_MS)
        node = self.node(server.url(), read_ahead="0B", fill="off")
        for how in ("read", "direct", "map"):
            with self.subTest(how):
                found = self.findings(self.reader("signalled", node.path(how),
                                                  os.path.join(root, how), how))
                print(f"  {how}: {found['signals']} signals handled around {found['calls']} calls, "
                      f"{found['seconds']:.2f} s", flush=True)
                self.assertEqual((found["errors"], found["wrong"]), ({}, []))
                # Those that come while a call waits are one.
                self.assertGreater(found["signals"], 0.8 * found["calls"], "they did come")
                self.assertLess(found["seconds"], 15 * SLOW)
                sent = server.body_bytes("/" + how)
                self.assertLess(sent, 1.1 * size, "interrupted reads are not begun anew")

    def test_lookups_and_opens(self):
        """Synchronous requests, which the kernel tells the node of when a signal comes."""
        root = self.dir("tree")
        for i in range(40):
            trees.write_random(os.path.join(root, f"f{i}"), 1000 + i, i)
        trees.age(root)
        server = self.origin(root, delay_ms=DELAY_MS)
        node = self.node(server.url())
        found = self.findings(self.reader("looks", node.mountpoint, "40"))
        self.assertEqual((found["errors"], found["wrong"]), ({}, []))
        self.assertGreater(found["signals"], 50)
        interrupts = node.status()["mounts"][0]["requests"].get("interrupt", 0)
        print(f"  {found['signals']} signals, {interrupts} interrupts", flush=True)
        self.assertGreater(interrupts, 0, "the kernel passed none on: this shows nothing")
        self.assertLess(found["seconds"], 20 * SLOW)


@unittest.skipIf("undefined" in SANITIZER, "its check of types needs descriptors (a pipe) itself")
class Descriptors(ProcessCase):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        for i in range(24):
            trees.write_random(os.path.join(self.root, f"f{i}"), 2 * MIB + i, i)
        trees.age(self.root)
        self.server = self.origin(self.root)
        self.mount = self.node(self.server.url())
        self.assertEqual(self.result("f0"), "right")
        self.mount.settle()

    def result(self, name):
        try:
            shown = trees.sha256_of(self.mount.path(name))
        except OSError as error:
            return f"errno {error.errno}"
        self.assertEqual(shown, trees.sha256_of(os.path.join(self.root, name)), "wrong bytes")
        return "right"

    def allow(self, soft):
        _, hard = resource.prlimit(self.mount.pid, resource.RLIMIT_NOFILE)
        before = resource.prlimit(self.mount.pid, resource.RLIMIT_NOFILE, (soft, hard))
        return before[0]

    def test_few_left(self):
        """One connection and one file at a time still fit: all is right."""
        before = self.allow(self.mount.open_files() + 3)
        for i in range(1, 12):
            self.assertEqual(self.result(f"f{i}"), "right", i)
        self.allow(before)
        self.recovered()

    def test_none_left(self):
        """What is cached is served; what is not is right or an error, and never wrong."""
        lending.drop_pages()
        before = self.allow(max(4, self.mount.open_files() - 4))
        self.assertEqual(self.result("f0"), "right", "its file is open")
        results = [self.result(f"f{i}") for i in range(1, 12)]
        print(f"  without descriptors: {dict((r, results.count(r)) for r in results)}", flush=True)
        self.assertTrue(self.mount.alive())
        busy = self.cpu_seconds()
        time.sleep(2)
        self.assertLess(self.cpu_seconds() - busy, 0.2 * SLOW, "it does not spin")
        self.allow(before)
        self.recovered()

    def cpu_seconds(self):
        with open(f"/proc/{self.mount.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def recovered(self):
        """Every file is right, and soon new ones are kept again."""
        time.sleep(1.2)  # an error is remembered for a second
        for i in range(12):
            wait_until(lambda name=f"f{i}": self.result(name) == "right", 20 * SLOW, f"f{i}", 0.2)
        fresh = (f"f{i}" for i in range(12, 24))

        def kept():
            name = next(fresh)
            self.assertEqual(self.result(name), "right")
            return self.mount.held(name) == {0}
        wait_until(kept, 20 * SLOW, "new files are kept", 1)
        self.assertFalse(self.mount.settle()["cache"]["bypass"])


class Parallel(ProcessCase):
    THREADS = 8
    PIECES = 6

    def test_threads_on_disjoint_ranges_do_not_wait_for_one_another(self):
        """128 KiB out of every second block: behind a distant origin, eight go near eight times as
        fast as one."""
        root = self.dir("tree")
        self.size = 2 * (1 + self.THREADS) * self.PIECES * BLOCK
        server = self.origin(root, delay_ms=4 * DELAY_MS)
        ratios = []
        for turn in range(3):
            # Sparse here, whole on the wire; another object each time.
            name = f"sparse{turn}"
            with open(os.path.join(root, name), "wb") as file:
                file.truncate(self.size)
                for i in range(self.size // (2 * BLOCK)):
                    file.seek(2 * i * BLOCK)
                    file.write(b"%d of %d" % (i, turn))
            trees.age(root)
            node = self.node(server.url(), fill="off", read_ahead="0B")
            one = self.timed(node, name, turn, 1, first=0)
            all_of_them = self.timed(node, name, turn, self.THREADS, first=1)
            ratios.append(self.THREADS * one / all_of_them)
            node.stop()
            if ratios[-1] > 5:
                break
        print(f"  {self.THREADS} threads: {', '.join(f'{r:.1f}' for r in ratios)} x one",
              flush=True)
        self.assertGreater(max(ratios), sized(4.5, 2))

    def timed(self, node, name, turn, threads, first):
        """Seconds for `threads` parts; part 0 belongs to the lone thread."""
        wrong = []

        def work(part):
            fd = os.open(node.path(name), os.O_RDONLY)
            for i in range(part * self.PIECES, (part + 1) * self.PIECES):
                wanted = b"%d of %d" % (i, turn)
                got = os.pread(fd, 128 * KIB, 2 * i * BLOCK)
                if got != wanted + bytes(128 * KIB - len(wanted)):
                    wrong.append(i)
            os.close(fd)
        os.stat(node.path(name))
        crew = [threading.Thread(target=work, args=(first + n,)) for n in range(threads)]
        began = time.monotonic()
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
        self.assertEqual(wrong, [])
        return time.monotonic() - began


class Walks(ProcessCase):
    def test_a_walk_without_attributes_asks_for_listings_alone(self):
        """As updatedb and find do it: names and kinds come with the listing."""
        root = self.dir("tree")
        for i in range(20):
            os.makedirs(os.path.join(root, f"d{i}"))
            for k in range(25):
                trees.write_random(os.path.join(root, f"d{i}", f"f{k}"), 100 + k, i * 100 + k)
        trees.age(root)
        for index in ("nginx", "apache", "json"):
            with self.subTest(index):
                server = self.origin(root, index=index)
                node = self.node(server.url())
                shown = run("find", node.mountpoint, "-printf", "%y %P\\n").stdout
                true = run("find", root, "-printf", "%y %P\\n").stdout
                self.assertEqual(sorted(shown.splitlines()), sorted(true.splitlines()))
                asked = server.stats()["paths"]
                files = [path for path in asked if not path.endswith("/")]
                self.assertEqual(files, [], "no file was asked for")
                self.assertEqual(len(asked), 21)
                self.assertLessEqual(server.requests(), 22, "each listing once")
                run("find", node.mountpoint, "-printf", "%y %P\\n")
                self.assertLessEqual(server.requests(), 22, "and no more while they hold")
                node.stop()


class DeadMount(ProcessCase):
    """kill -9 of the node, and a start on the same mountpoint while the dead mount is in use."""

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        for seed, name in enumerate(("file", "stalled")):
            trees.write_random(os.path.join(self.root, name), 2 * BLOCK + 5, seed)
        trees.age(self.root)
        self.server = self.origin(self.root)

    def test_an_open_descriptor(self):
        """It fails at once and does not hang; it is in nobody's way; the new mount is right."""
        node = self.node(self.server.url(), passthrough="off", timeout="none")
        holders = [self.reader("keep", node.path("file"), "0", cwd=node.mountpoint)
                   for _ in range(3)]
        for holder in holders:
            self.assertEqual(holder.stdout.readline(), b"open\n")
        self.server.faults({"fault": "stall-body", "path": "/stalled", "ranged_only": True})
        os.stat(node.path("stalled"))
        waiting = self.spawn("cat", node.path("stalled"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        wait_until(lambda: node.status()["flights"], 20 * SLOW, "it waits for the origin")
        node.kill9()
        waiting.wait(timeout=5 * SLOW)
        self.assertEqual(waiting.returncode, 1, "an error, not a short file")

        for _ in range(2):  # the second time with two generations of dead mounts about
            began = time.monotonic()
            node.start()
            self.assertLess(time.monotonic() - began, 10 * SLOW)
            self.assertTrue(is_mounted(node.mountpoint))
            self.assertEqual(trees.sha256_of(node.path("file")),
                             trees.sha256_of(os.path.join(self.root, "file")))
            holder = holders.pop()
            found = self.findings(holder, b"\n")
            self.assertIn(found["ended"], ("ENOTCONN", "EIO", "ECONNABORTED"))
            self.assertLess(found["seconds"], 2 * SLOW)
            self.assertTrue(is_mounted(node.mountpoint), "its close touches the old mount alone")
            node.kill9()
        node.start()
        found = self.findings(holders.pop(), b"\n")
        self.assertIn(found["ended"], ("ENOTCONN", "EIO", "ECONNABORTED"))
        self.server.faults()
        self.assertEqual(trees.sha256_of(node.path("stalled")),
                         trees.sha256_of(os.path.join(self.root, "stalled")))
        node.stop()
        self.assertFalse(is_mounted(node.mountpoint), "no dead mount is left beneath")


if __name__ == "__main__":
    main()
