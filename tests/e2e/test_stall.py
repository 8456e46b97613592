"""24 readers hang on a stalled origin: SIGKILL and ^C end them within a second; meanwhile cached
reads and reads from a healthy origin go on."""

import os
import signal
import statistics
import subprocess
import sys
import threading
import time

import trees
from harness import BLOCK, KIB, SLOW, Case, main, wait_until

READERS = 24
SIZE = 2 * BLOCK
WITHIN = 1.0  # seconds from the signal to the end of the process
OPEN_AND_READ = ("import os, signal, sys; "
                 "signal.signal(signal.SIGINT, signal.SIG_DFL); "  # not Python's own handler
                 "fd = os.open(sys.argv[1], os.O_RDONLY); "
                 "os.pread(fd, 4096, int(sys.argv[2]))")


class Meanwhile:
    """Reads a file over and over in pieces, from a thread, and notes how long each takes."""

    def __init__(self, case, path, original):
        self.case, self.path = case, path
        with open(original, "rb") as file:
            self.wanted = file.read()
        self.took, self.problems = [], []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.is_set():
            try:
                fd = os.open(self.path, os.O_RDONLY)
                try:
                    # Out of the page cache, so that the node is asked.
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    for offset in range(0, len(self.wanted), 512 * KIB):
                        began = time.monotonic()
                        piece = os.pread(fd, 512 * KIB, offset)
                        self.took.append(time.monotonic() - began)
                        if piece != self.wanted[offset:offset + 512 * KIB]:
                            self.problems.append(f"wrong bytes at {offset}")
                finally:
                    os.close(fd)
            except OSError as error:
                self.problems.append(repr(error))
            time.sleep(0.005)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(60 * SLOW)
        self.case.assertFalse(self._thread.is_alive(), "a cached read hangs")
        self.case.assertEqual(self.problems, [])

    def summary(self):
        if not self.took:
            return "none"
        return (f"{len(self.took)} reads, median {statistics.median(self.took) * 1e3:.2f} ms, "
                f"worst {max(self.took) * 1e3:.1f} ms")


class Stall(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        os.makedirs(os.path.join(self.root, "stall"))
        for i in range(READERS):
            trees.write_random(os.path.join(self.root, "stall", f"f{i}"), SIZE, i)
        for name in ("cached", "healthy"):
            trees.write_random(os.path.join(self.root, name), 2 * SIZE, 99)
        trees.age(self.root)
        self.server = self.origin(self.root)

    def mount(self):
        return self.node(self.server.url(), timeout="none")

    def readers(self, node, path, count=READERS):
        """Processes that open `path(i)` and read 4 KiB at an offset of their own."""
        started = []
        for i in range(count):
            started.append(self.spawn(sys.executable, "-S", "-E", "-c", OPEN_AND_READ,
                                      node.path(path(i)), str(64 * KIB * i),
                                      stderr=subprocess.DEVNULL))
        return started

    def all_hang(self, readers, what):
        """In the kernel, waiting for the mount (not still starting)."""
        def hang():
            self.assertTrue(all(r.poll() is None for r in readers), f"a reader of {what} ended")
            if not all(_waits_in_call(r.pid) for r in readers):
                return False
            time.sleep(0.3)
            return all(_waits_in_call(r.pid) for r in readers)
        wait_until(hang, 60 * SLOW, f"all readers of {what} hang", 0.1)

    def end_them(self, readers, what):
        """Every other one by SIGKILL, the rest by ^C; returns the longest time it took."""
        took = []
        for i, reader in enumerate(readers):
            number = signal.SIGKILL if i % 2 == 0 else signal.SIGINT
            began = time.monotonic()
            reader.send_signal(number)
            try:
                reader.wait(timeout=10 * SLOW)
            except subprocess.TimeoutExpired:
                self.fail(f"{what}: not gone after {10 * SLOW} s on {number.name}")
            took.append(time.monotonic() - began)
        self.assertLess(max(took), WITHIN * SLOW, what)
        return max(took)

    def end_together(self, readers, what):
        """All at once, as a shell's ^C or a job's end."""
        began = time.monotonic()
        for i, reader in enumerate(readers):
            reader.send_signal(signal.SIGKILL if i % 2 == 0 else signal.SIGINT)
        for reader in readers:
            reader.wait(timeout=10 * SLOW)
        took = time.monotonic() - began
        self.assertLess(took, WITHIN * SLOW, what)
        return took

    def check_hangs(self, node, path, what, one_by_one=True):
        readers = self.readers(node, path)
        self.all_hang(readers, what)
        if not one_by_one:
            together = self.end_together(readers, what)
            print(f"  {what}: {READERS} together {together * 1e3:.0f} ms", flush=True)
            return
        one_by_one = self.end_them(readers[:READERS // 2], what)
        together = self.end_together(readers[READERS // 2:], what)
        print(f"  {what}: slowest of {READERS // 2} one by one {one_by_one * 1e3:.0f} ms, "
              f"{READERS // 2} together {together * 1e3:.0f} ms", flush=True)

    def test_reads_and_opens_end_at_a_signal_and_others_go_on(self):
        node = self.mount()
        for name in ("cached",):
            self.assertEqual(trees.sha256_of(node.path(name)),
                             trees.sha256_of(os.path.join(self.root, name)))
        for i in range(READERS):
            os.stat(node.path("stall", f"f{i}"))
        cached = os.path.join(self.root, "cached")
        with Meanwhile(self, node.path("cached"), cached) as before:
            time.sleep(2)
        self.server.faults({"fault": "stall-body", "path": "/stall/*", "ranged_only": True})
        with Meanwhile(self, node.path("cached"), cached) as during:
            self.check_hangs(node, lambda i: "stall/f0", "reads of one file")
            # Killed reads stay outstanding in the kernel: later on, their flight asks again.
            wait_until(lambda: sum(o["active"] for o in node.status()["origins"]) == 0, 4 * SLOW,
                       "the transfer that nobody wants is cancelled", 0.1)
            self.check_hangs(node, lambda i: f"stall/f{i}", "reads of many files")
            self.server.faults({"fault": "stall-head", "path": "/stall/*"})
            self.check_hangs(node, lambda i: f"stall/n{i}", "lookups of many names")
            # The kernel lets one look a name up; who else wants it can't be killed meanwhile.
            self.check_hangs(node, lambda i: "stall/same", "lookups of one name", False)
        print(f"  cached reads before: {before.summary()}; during: {during.summary()}", flush=True)
        self.server.faults()
        self.assertEqual(trees.sha256_of(node.path("stall", "f3")),
                         trees.sha256_of(os.path.join(self.root, "stall", "f3")))

    def test_a_healthy_origin_does_not_notice_a_stalled_one(self):
        """One node, two servers: the source's own, and one that stalls behind redirects."""
        stalled = self.origin(self.root)
        self.server.faults({"fault": "redirect", "path": "/stall/f*",
                            "target": stalled.url("{path}")})
        node = self.mount()
        for i in range(READERS):
            os.stat(node.path("stall", f"f{i}"))
        stalled.faults({"fault": "stall-body", "ranged_only": True})
        readers = self.readers(node, lambda i: f"stall/f{i}")
        self.all_hang(readers, "many files")
        self.assertEqual(trees.sha256_of(node.path("healthy")),
                         trees.sha256_of(os.path.join(self.root, "healthy")))
        self.assertTrue(all(r.poll() is None for r in readers))
        self.end_together(readers, "many files behind a redirect")

    def test_a_second_mount_does_not_notice_either(self):
        stalled = self.mount()
        os.stat(stalled.path("stall", "f0"))
        self.server.faults({"fault": "stall-body", "path": "/stall/*", "ranged_only": True})
        readers = self.readers(stalled, lambda i: "stall/f0")
        self.all_hang(readers, "one file")
        healthy = self.mount()
        self.assertEqual(trees.sha256_of(healthy.path("healthy")),
                         trees.sha256_of(os.path.join(self.root, "healthy")))
        self.end_together(readers, "one file")

    def test_a_stop_does_not_wait_for_a_stalled_origin(self):
        node = self.mount()
        os.stat(node.path("stall", "f0"))
        self.server.faults({"fault": "stall-body", "path": "/stall/*", "ranged_only": True})
        readers = self.readers(node, lambda i: f"stall/f{i % 3}", 6)
        self.all_hang(readers, "some files")
        node.stop()
        for reader in readers:
            reader.wait(timeout=10 * SLOW)

    def test_a_handled_signal_does_not_end_a_read(self):
        """SIGUSR1 with a handler (Go's SIGURG, all the time): the read goes on and is right."""
        node = self.mount()
        os.stat(node.path("stall", "f5"))
        self.server.faults({"fault": "stall-body", "path": "/stall/*", "ranged_only": True,
                            "delay_ms": 3000, "times": 1},
                           {"fault": "stall-head", "path": "/late/*", "delay_ms": 3000,
                            "times": 1})
        program = ("import os, signal, sys, hashlib\n"
                   "signal.signal(signal.SIGUSR1, lambda *_: None)\n"
                   "print('ready', flush=True)\n"
                   "print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())\n")
        reader = self.spawn(sys.executable, "-c", program, node.path("stall", "f5"),
                            stdout=subprocess.PIPE)
        self.assertEqual(reader.stdout.readline(), b"ready\n")
        for _ in range(20):
            time.sleep(0.1)
            reader.send_signal(signal.SIGUSR1)
        said, _ = reader.communicate(timeout=60 * SLOW)
        self.assertEqual(said.decode().strip(),
                         trees.sha256_of(os.path.join(self.root, "stall", "f5")))


def _waits_in_call(pid):
    """In open or pread (a reader that still starts does not stay there)."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            return file.read().split(" ")[0] in ("17", "257")  # pread64, openat
    except OSError:
        return False


if __name__ == "__main__":
    main()
