"""Too little room: on the disk, in the cache's limit, of inodes, in memory. Bytes are right, limits
hold, nothing spins, and all is well once there is room again."""

import hashlib
import os
import threading
import time
import unittest

import lending
from cgroup import MemoryGroup
from harness import BLOCK, KIB, MIB, SLOW, SMALL, Case, main, run, sized, unmount, wait_until

INFLIGHT = 64 * MIB


class PressureCase(Case):
    limit = 200

    def setUp(self):
        super().setUp()
        self.server = self.origin()
        self.digests = {}
        self.published = {}

    def publish(self, name, size, seed):
        if self.published.get(name) != (size, seed):  # again would be a new version
            self.server.add_file("/" + name, size=size, seed=seed)
            self.published[name] = (size, seed)
        key = (size, seed)
        if key not in self.digests:
            body = self.server.get("/" + name)[1]
            self.digests[key] = hashlib.sha256(body).hexdigest()
        return self.digests[key]

    def read(self, node, name, size):
        fd = os.open(node.path(name), os.O_RDONLY)
        try:
            return lending.digest_of(fd, size)
        finally:
            os.close(fd)

    def check(self, node, name, size, seed):
        wanted = self.publish(name, size, seed)
        self.assertEqual(self.read(node, name, size), wanted, name)

    def disk(self, size, *mkfs):
        """An ext4 of its own, mounted."""
        image = os.path.join(self.temp, f"disk-{size}")
        run("truncate", "-s", str(size), image)
        run("mkfs.ext4", "-q", "-F", "-m", "0", *mkfs, image)
        point = self.dir(f"on-{size}")
        wait_until(lambda: run("mount", "-o", "loop", image, point, check=False).returncode == 0,
                   30, "a loop device", 0.2)
        self.addCleanup(unmount, point)
        return point

    def assert_idle(self, node, seconds=3):
        time.sleep(1)
        before = self.cpu_seconds(node)
        time.sleep(seconds)
        used = self.cpu_seconds(node) - before
        self.assertLess(used / seconds, 0.05 * SLOW, "the node does nothing, and is not idle")

    def cpu_seconds(self, node):
        with open(f"/proc/{node.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Sampler:
    """What the cache directory takes of the disk, fifty times a second."""

    def __init__(self, folder):
        self.folder, self.most, self.count = folder, 0, 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._end.wait(0.02):
            self.most = max(self.most, lending.allocated(self.folder))
            self.count += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


class Limit(PressureCase):
    FILES = 10

    def test_ten_open_files_and_much_more_than_fits(self):
        limit = sized(256, 64) * MIB
        size = sized(410, 26) * MIB + 77
        node = self.node(self.server.url(), cache_size=str(limit), inflight=str(INFLIGHT),
                         log_level="info")
        wanted = {f"f{i}": self.publish(f"f{i}", size, i) for i in range(self.FILES)}
        results = {}

        def read(name, fd):
            try:
                results[name] = lending.digest_of(fd, size)
            except (OSError, AssertionError) as error:
                results[name] = repr(error)
        opened = {name: os.open(node.path(name), os.O_RDONLY) for name in wanted}
        readers = [threading.Thread(target=read, args=each) for each in opened.items()]
        with Sampler(node.cache) as sampler:
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
        status = node.settle()
        for fd in opened.values():
            os.close(fd)
        print(f"  at most {sampler.most / MIB:.0f} MiB in {sampler.count} looks, limit "
              f"{limit // MIB} MiB", flush=True)
        self.assertEqual(results, wanted)
        self.assertGreater(sampler.count, 5)
        self.assertGreater(sampler.most, limit // 2, "the cache was used")
        self.assertLessEqual(sampler.most, limit + INFLIGHT)
        self.assertLessEqual(status["cache"]["used_bytes"], limit)
        self.assertGreater(status["cache"]["evicted_blocks"], 0)
        self.assertFalse(status["cache"]["bypass"])
        self.assertLessEqual(lending.allocated(node.cache), limit + 8 * MIB)


class SmallDisk(PressureCase):
    """64 MiB for a cache that may take ten GiB."""

    def check_all(self, cache):
        node = self.node(self.server.url(), cache=cache, log_level="info")
        for i in range(4):
            self.check(node, f"f{i}", sized(256, 32) * MIB + i, i)
        facts = node.status()["cache"]
        print(f"  evicted {facts['evicted_blocks']}, bypass {facts['bypass']}, write errors "
              f"{facts['write_errors']}", flush=True)
        self.assertTrue(facts["bypass"] or facts["evicted_blocks"] > 0, facts)
        self.assertEqual(facts["corrupt_granules"], 0)
        if facts["bypass"]:
            self.assertNotEqual(facts["bypass_reason"], "")
            self.assertIn(facts["bypass_reason"], node.log_text())
        self.assert_idle(node)
        self.check(node, "f0", sized(256, 32) * MIB, 0)
        node.stop()
        node.start()
        self.check(node, "f1", sized(256, 32) * MIB + 1, 1)
        node.stop()

    def test_tmpfs(self):
        point = self.dir("tmpfs")
        run("mount", "-t", "tmpfs", "-o", f"size={64 * MIB}", "small", point)
        self.addCleanup(unmount, point)
        self.check_all(os.path.join(point, "cache"))

    def test_ext4(self):
        self.check_all(os.path.join(self.disk(64 * MIB), "cache"))


class SharedDisk(PressureCase):
    """Somebody else fills the disk that the cache lies on."""

    SIZE = sized(24, 8) * MIB + 77

    def check_new(self, node, number):
        self.check(node, f"new{number}", self.SIZE, 1000 + number)

    def recovers(self, node, first):
        """By itself: what is read is kept again, within a little more than a retry."""
        number = iter(range(first, first + 40))

        def kept():
            n = next(number)
            self.check_new(node, n)
            held = len(node.held(f"new{n}"))
            return held == self.SIZE // BLOCK + 1
        wait_until(kept, 20 * SLOW, "new objects are kept", 1)
        self.assertFalse(node.settle()["cache"]["bypass"])

    def test_a_file_that_takes_all(self):
        point = self.disk(256 * MIB)
        node = self.node(self.server.url(), cache=os.path.join(point, "cache"), log_level="info")
        for i in range(4):
            self.check_new(node, i)
        before = node.settle()["cache"]
        self.assertGreaterEqual(before["used_bytes"], 4 * self.SIZE)
        filler = os.path.join(point, "filler")

        # Nearly all: the node makes room of its own blocks.
        free = os.statvfs(point).f_bavail * os.statvfs(point).f_frsize
        run("fallocate", "-l", str(free - 2 * MIB), filler)
        wait_until(lambda: node.status()["cache"]["used_bytes"] < before["used_bytes"], 20 * SLOW,
                   "own blocks go")
        for i in range(4, 8):
            self.check_new(node, i)

        # And all of it, again and again, whatever the node gives back.
        def take_the_rest():
            with open(filler, "ab") as file:
                try:
                    while True:
                        file.write(bytes(64 * KIB))
                        file.flush()
                except OSError:
                    pass
                finally:
                    try:
                        file.close()
                    except OSError:
                        pass
        for _ in range(20):
            take_the_rest()
            if node.status()["cache"]["used_bytes"] == 0:
                break
            time.sleep(0.5)
        take_the_rest()
        for i in range(8, 12):
            self.check_new(node, i)
        facts = node.status()["cache"]
        self.assertTrue(facts["bypass"], facts)
        self.assertIn(facts["bypass_reason"], node.log_text())
        self.assertLessEqual(facts["used_bytes"], 8 * MIB)
        self.assert_idle(node)
        self.check_new(node, 12)

        os.unlink(filler)
        self.recovers(node, 13)
        node.stop()
        node.start()
        self.check_new(node, 60)

    def test_no_inodes_left(self):
        point = self.disk(256 * MIB, "-N", "600")
        node = self.node(self.server.url(), cache=os.path.join(point, "cache"), log_level="info")
        for i in range(4):
            self.check_new(node, i)
        node.settle()
        taken = os.path.join(point, "taken")
        os.mkdir(taken)

        def take_the_rest():
            for number in range(10000):
                try:
                    with open(os.path.join(taken, f"{time.monotonic_ns()}-{number}"), "w"):
                        pass
                except OSError:
                    return
        take_the_rest()
        for i in range(4, 8):
            self.check_new(node, i)
            take_the_rest()
        facts = node.status()["cache"]
        print(f"  no inodes: bypass {facts['bypass']} ({facts['bypass_reason']}), evicted "
              f"{facts['evicted_blocks']}", flush=True)
        self.assertTrue(facts["bypass"] or facts["evicted_blocks"] > 0)
        self.assert_idle(node)
        run("rm", "-rf", taken)
        self.recovers(node, 20)


class Memory(PressureCase):
    """512 processes, each with a file of its own, in a control group of 512 MiB with the node."""

    READERS = sized(512, 48)
    SIZE = 4 * MIB + 99
    GROUP = sized(512, 1024) * MIB  # a sanitizer's own memory comes on top
    OWN = 64 * MIB  # all that the node needs besides the bytes under way

    def load(self):
        """(node, control group), after all readers have come to their end with the right bytes."""
        group = MemoryGroup(self, self.GROUP)
        wanted = {}
        for i in range(self.READERS):
            wanted[f"f{i}"] = self.publish(f"f{i}", self.SIZE, i % 16)
        node = self.node(self.server.url(), start=False, log_level="info", timeout="120s")
        script = ('cd "$1" || exit 1\n'
                  'for i in $(seq 0 $(($2 - 1))); do sha256sum f$i & done\n'
                  "wait\n")
        with group:
            node.start()
            began = time.monotonic()
            done = run("sh", "-c", script, "sh", node.mountpoint, str(self.READERS),
                       timeout=150, check=False)
        print(f"  {self.READERS} readers: {time.monotonic() - began:.1f} s, the node at most "
              f"{self.peak(node) / MIB:.0f} MiB", flush=True)
        shown = dict(reversed(line.split()) for line in done.stdout.decode().splitlines())
        self.assertEqual(shown, wanted, done.stderr.decode()[-500:])
        return node, group

    def test_many_readers_in_a_small_control_group(self):
        """All come to their end, and nobody is killed."""
        node, group = self.load()
        self.assertEqual(group.kills(), 0, "nobody is killed")
        inflight = node.status()["inflight"]
        self.assertEqual(inflight["limit_bytes"], self.GROUP // 8, "an eighth of the group's limit")
        self.assertLessEqual(inflight["bytes"], inflight["limit_bytes"])
        self.assertEqual(self.read(node, "f1", self.SIZE), self.digests[self.SIZE, 1])
        node.stop()

    @unittest.skipIf(SMALL, "a sanitizer's own memory is not the node's")
    def test_the_node_s_own_memory_under_many_readers(self):
        node, _ = self.load()
        limit = node.status()["inflight"]["limit_bytes"]
        peak = self.peak(node)
        self.assertLessEqual(peak, limit + self.OWN,
                             f"VmHWM {peak / MIB:.0f} MiB with --inflight {limit / MIB:.0f} MiB")

    def peak(self, node):
        with open(f"/proc/{node.pid}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * KIB
        raise AssertionError("no VmHWM")


if __name__ == "__main__":
    main()
