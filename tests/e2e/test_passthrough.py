"""Complete files that the kernel reads by itself: right bytes whatever becomes of the cache and of
the node, and the ordinary way, with its reason, wherever it is not to be had."""

import hashlib
import json
import mmap
import os
import subprocess
import sys
import time

import damage
import lending
import trees
from harness import (BLOCK, HERE, KIB, MIB, SLOW, Case, exit_status, is_mounted, main, program, run,
                     sized, wait_until)
from users import AsNobody

SIZE = sized(16, 9) * MIB + 77
FILLERS = 6
IMAGE = "image"


class LendingCase(Case):
    limit = 200

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        for seed, name in enumerate(("file", "mapped")):
            trees.write_random(os.path.join(self.root, name), SIZE, seed)
        trees.age(self.root)
        self.wanted = {name: trees.sha256_of(os.path.join(self.root, name))
                       for name in os.listdir(self.root)}
        self.server = self.origin(self.root)

    def make_image(self):
        """A squashfs to be mounted from the mount."""
        self.payload = os.path.join(self.temp, "payload")
        path = os.path.join(self.root, IMAGE)
        trees.make_payload(self.payload)
        run("mksquashfs", self.payload, path, "-quiet", "-no-progress", "-noappend")
        trees.age(self.root)
        self.wanted[IMAGE] = trees.sha256_of(path)

    def read_fillers(self, node, after_each=lambda: None):
        """Other objects, more of them than the cache has room for."""
        for i in range(FILLERS):
            self.server.add_file(f"/filler{i}", size=SIZE, seed=100 + i)
            wanted = hashlib.sha256(self.server.get(f"/filler{i}")[1]).hexdigest()
            self.assertEqual(trees.sha256_of(node.path(f"filler{i}")), wanted)
            after_each()

    def lent(self, node, name):
        """Read whole and checked; a descriptor that the kernel reads by itself."""
        self.assertEqual(trees.sha256_of(node.path(name)), self.wanted[name], name)
        fd = lending.open_lent(node, name)
        self.addCleanup(_close, fd)
        return fd

    def check_fd(self, fd, name, from_disk=True):
        """The whole file through a descriptor, from the disk and not from memory."""
        size = os.path.getsize(os.path.join(self.root, name))
        lending.drop_pages(fd)
        before = lending.disk_bytes_read()
        self.assertEqual(lending.digest_of(fd, size), self.wanted[name], name)
        if from_disk and lending.on_a_disk(self.temp):
            self.assertGreater(lending.disk_bytes_read() - before, size * 9 // 10,
                               "this would not show what lies in the file")

    def check_view(self, view, name):
        view.madvise(mmap.MADV_DONTNEED)
        lending.drop_pages()
        before = lending.disk_bytes_read()
        self.assertEqual(lending.digest_of_mapping(view), self.wanted[name], name)
        if lending.on_a_disk(self.temp):
            self.assertGreater(lending.disk_bytes_read() - before, len(view) // 2)

    def check_loop(self, loop):
        lending.drop_pages()
        run("blockdev", "--flushbufs", loop[1])
        shown, wanted = trees.digest_tree(loop[0]), trees.digest_tree(self.payload)
        self.assertEqual(shown, wanted, trees.first_difference(shown, wanted))

    def mapping(self, fd, name):
        view = mmap.mmap(fd, os.path.getsize(os.path.join(self.root, name)),
                         access=mmap.ACCESS_READ)
        self.addCleanup(view.close)
        return view


def _close(fd):
    try:
        os.close(fd)
    except OSError:
        pass  # the test has done it


class Lent(LendingCase):
    def test_the_kernel_reads_a_complete_file_by_itself(self):
        node = self.node(self.server.url())
        lending.require(self, node)
        fd = self.lent(node, "file")
        self.assertEqual(lending.facts(node)["files"], 1)
        before = lending.reads(node)
        self.check_fd(fd, "file")
        run("cmp", node.path("file"), os.path.join(self.root, "file"))  # a second open
        view = self.mapping(fd, "file")
        self.check_view(view, "file")
        self.assertEqual(lending.reads(node), before, "no read reaches the node")
        self.assertEqual(lending.facts(node)["files"], 1)
        view.close()
        os.close(fd)
        wait_until(lambda: lending.facts(node)["files"] == 0, 10 * SLOW, "the loan ends")
        self.assertEqual(trees.sha256_of(node.path("file")), self.wanted["file"])

    def test_a_loop_mount(self):
        self.make_image()
        node = self.node(self.server.url())
        lending.require(self, node)
        os.close(self.lent(node, IMAGE))
        for direct_io in (False, True):
            with self.subTest(direct_io=direct_io):
                before, opens = lending.reads(node), lending.facts(node)["opens"]
                loop = self.loop_mount(node.path(IMAGE), "squashfs", direct_io)
                self.check_loop(loop)
                self.assertGreater(lending.facts(node)["opens"], opens)
                self.assertEqual(lending.reads(node), before, "no read reaches the node")
                self.unmount_loop(loop)

    def test_after_a_restart(self):
        """What a start finds is checked first, and lent again."""
        node = self.node(self.server.url())
        lending.require(self, node)
        self.lent(node, "file")
        node.settle()
        for stop in (node.kill9, node.stop):
            stop()
            node.start()
            self.server.reset_stats()
            fd = lending.open_lent(node, "file")
            self.check_fd(fd, "file")
            self.assertLess(self.server.body_bytes("/file"), BLOCK, "nothing is fetched again")
            os.close(fd)

    def test_a_damaged_file_is_not_lent(self):
        """A bit that flips while the node is down is found before the kernel gets the file."""
        node = self.node(self.server.url())
        lending.require(self, node)
        os.close(self.lent(node, "file"))
        node.settle()
        node.stop()
        path = max(damage.object_files(node.cache), key=os.path.getsize)
        with open(path, "r+b") as file:
            file.seek(SIZE // 2)
            byte = file.read(1)[0]
            file.seek(SIZE // 2)
            file.write(bytes([byte ^ 4]))
        node.start()
        corrupt = lambda: node.status()["cache"]["corrupt_granules"]
        fd = os.open(node.path("file"), os.O_RDONLY)  # begins the check
        wait_until(lambda: corrupt() > 0, 30 * SLOW, "the check finds it")
        self.assertEqual(lending.facts(node)["opens"], 0)
        self.assertEqual(lending.digest_of(fd, SIZE), self.wanted["file"])
        os.close(fd)
        wait_until(lambda: path not in damage.object_files(node.cache) or node.held("file"),
                   30 * SLOW, "the damaged file goes")
        lending.drop_pages()
        self.assertEqual(trees.sha256_of(node.path("file")), self.wanted["file"])
        self.assertEqual(lending.facts(node)["opens"], 0)


class Pressure(LendingCase):
    def test_eviction_while_it_is_read(self):
        limit = 4 * SIZE
        node = self.node(self.server.url(), cache_size=str(limit))
        lending.require(self, node)
        fd = self.lent(node, "file")
        view = self.mapping(fd, "file")
        node.ctl("evict", node.path("file"))
        self.check_fd(fd, "file")
        self.read_fillers(node, lambda: self.assertLessEqual(
            node.status()["cache"]["used_bytes"], limit))
        self.assertGreater(node.status()["cache"]["evicted_blocks"], 0)
        self.check_view(view, "file")
        view.close()
        self.check_fd(fd, "file")
        node.settle()
        slack = 8 * MIB  # the index and the directories
        wait_until(lambda: lending.allocated(node.cache) <= limit + slack, 20 * SLOW,
                   "the rest stays within the limit")

    def test_more_open_than_may_be_lent(self):
        """Half of the cache: what is beyond it is read through the node, and right."""
        node = self.node(self.server.url(), cache_size=str(4 * SIZE))
        lending.require(self, node)
        names = ["file", "mapped", "third", "fourth", "fifth"]
        for name in names[2:]:
            os.link(os.path.join(self.root, "file"), os.path.join(self.root, name))
            self.wanted[name] = self.wanted["file"]
        for name in names:
            self.assertEqual(trees.sha256_of(node.path(name)), self.wanted[name])
        opened = []
        for _ in range(10):  # those that are checked by now are lent
            for fd in opened:
                os.close(fd)
            time.sleep(0.2)
            opened = [os.open(node.path(name), os.O_RDONLY) for name in names]
            if lending.facts(node)["files"] >= 1:
                break
        lent = lending.facts(node)["files"]
        self.assertIn(lent, (1, 2), "at least one, and no more than half of the limit")
        for fd, name in zip(opened, names):
            self.assertEqual(lending.digest_of(fd, SIZE), self.wanted[name], name)
            os.close(fd)
        self.assertEqual(lending.facts(node)["files"], 0)


class Crash(LendingCase):
    """kill -9 of the node with files open that the kernel reads by itself."""

    def fill_beyond_the_limit(self, node):
        self.read_fillers(node)
        cache = node.settle()["cache"]
        self.assertLessEqual(cache["used_bytes"], cache["limit_bytes"])

    def test_what_the_crash_leaves_open_reads_right_bytes_whatever_is_evicted(self):
        self.make_image()
        node = self.node(self.server.url(), cache_size=str(6 * SIZE))
        lending.require(self, node)
        fd, mapped = self.lent(node, "file"), self.lent(node, "mapped")
        view = self.mapping(mapped, "mapped")
        os.close(mapped)  # the mapping keeps it
        os.close(self.lent(node, IMAGE))
        loop = self.loop_mount(node.path(IMAGE), "squashfs")
        self.assertEqual(lending.facts(node)["files"], 3)
        node.settle()
        node.kill9()
        self.check_fd(fd, "file")

        node.start()
        self.assertTrue(is_mounted(node.mountpoint))
        self.assertEqual(len(node.held("file")), SIZE // BLOCK + 1, "the start found it")
        files = set(damage.object_files(node.cache))
        node.ctl("evict", *(node.path(name) for name in ("file", "mapped", IMAGE)))
        for name in ("file", "mapped", IMAGE):
            self.assertEqual(node.held(name), set(), name)
        wait_until(lambda: not files & set(damage.object_files(node.cache)), 20 * SLOW,
                   "the files are unlinked")
        self.fill_beyond_the_limit(node)
        self.check_all(fd, view, loop)

        # The same names once more, new files beside the old ones.
        for name in ("file", "mapped"):
            self.assertEqual(trees.sha256_of(node.path(name)), self.wanted[name])
        self.check_all(fd, view, loop)
        node.restart()
        self.check_all(fd, view, loop)

    def check_all(self, fd, view, loop):
        self.check_fd(fd, "file")
        self.check_view(view, "mapped")
        self.check_loop(loop)

    def test_pressure_alone(self):
        """The same by filling the cache: what was open at the crash is the oldest and goes."""
        node = self.node(self.server.url(), cache_size=str(5 * SIZE))
        lending.require(self, node)
        fd, mapped = self.lent(node, "file"), self.lent(node, "mapped")
        view = self.mapping(mapped, "mapped")
        node.settle()
        node.kill9()
        node.start()
        self.fill_beyond_the_limit(node)
        for name in ("file", "mapped"):
            os.stat(node.path(name))
            self.assertEqual(node.held(name), set(), name)
        self.check_fd(fd, "file")
        self.check_view(view, "mapped")


class Otherwise(LendingCase):
    """Where it is not to be had: right bytes through the node, and the reason."""

    def check_refused(self, node, *words):
        state = lending.facts(node)["state"]
        for word in words:
            self.assertIn(word, state)
        for _ in range(3):
            self.assertEqual(trees.sha256_of(node.path("file")), self.wanted["file"])
            time.sleep(0.3)  # for a check of the object, which must not come
        fd = os.open(node.path("file"), os.O_RDONLY)
        lending.drop_pages(fd)
        before = lending.reads(node)
        self.assertEqual(lending.digest_of(fd, SIZE), self.wanted["file"])
        self.assertGreater(lending.reads(node), before)
        view = self.mapping(fd, "file")
        self.assertEqual(lending.digest_of_mapping(view), self.wanted["file"])
        os.close(fd)
        facts = lending.facts(node)
        self.assertEqual((facts["files"], facts["opens"]), (0, 0))
        said = [line for line in node.log_text().splitlines() if "no passthrough" in line]
        self.assertEqual(len(said), 1, said)
        for word in words:
            self.assertIn(word, said[0])

    def test_switched_off(self):
        self.check_refused(self.node(self.server.url(), passthrough="off"), "switched off")

    def test_a_cache_on_overlayfs(self):
        stage = self.dir("overlay")
        run("mount", "-t", "tmpfs", "-o", f"size={max(64 * MIB, 4 * SIZE)}", "layers", stage)
        self.addCleanup(run, "umount", "-l", stage)
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(os.path.join(stage, name))
        merged = os.path.join(stage, "merged")
        run("mount", "-t", "overlay", "-o",
            f"lowerdir={stage}/lower,upperdir={stage}/upper,workdir={stage}/work", "over", merged)
        self.addCleanup(run, "umount", "-l", merged)
        node = self.node(self.server.url(), cache=os.path.join(merged, "cache"))
        self.check_refused(node, "overlayfs")
        self.assertEqual(len(node.held("file")), SIZE // BLOCK + 1, "it is cached there")
        node.stop()


class Unprivileged(AsNobody, LendingCase):
    def test_a_user_s_own_node(self):
        point, cache = os.path.join(self.home, "mount"), os.path.join(self.home, "cache")
        log, pid_file = os.path.join(self.home, "log"), os.path.join(self.home, "pid")
        os.mkdir(point)
        os.chown(point, self.NOBODY, self.NOBODY)
        done = self.as_user(program("dartfs"), self.server.url(), point, "--cache-dir", cache,
                            "--log-file", log, "--pid-file", pid_file, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(pid_file) as file:
            pid = int(file.read())
        try:
            for _ in range(3):
                shown = self.as_user("sha256sum", os.path.join(point, "file")).stdout.decode()
                self.assertEqual(shown.split()[0], self.wanted["file"])
                time.sleep(0.3)
            status = json.loads(self.as_user(program("dartfsctl"), "status", "--json",
                                             "--cache-dir", cache).stdout)
            facts = status["mounts"][0]["passthrough"]
            self.assertIn("privilege", facts["state"])
            self.assertEqual(facts["opens"], 0)
            with open(log) as file:
                said = [line for line in file if "no passthrough" in line]
            self.assertEqual(len(said), 1, said)
            self.assertIn("privilege", said[0])
        finally:
            self.as_user("fusermount3", "-u", point)
        wait_until(lambda: exit_status(pid) is not None, 30 * SLOW, "the node ends")


class Mixed(LendingCase):
    """The first open decides for all until the last close; nobody ever sees an error."""

    def compare(self, node, name, count, seconds):
        readers = [self.spawn(sys.executable, "-S", "-B", os.path.join(HERE, "reader.py"),
                              "compare", node.path(name), os.path.join(self.root, name),
                              str(seconds), str(i), stdout=subprocess.PIPE)
                   for i in range(count)]
        for reader in readers:
            self.assertEqual(reader.stdout.readline(), b"ready\n")
        return readers

    def findings(self, readers):
        opens = 0
        for reader in readers:
            said, _ = reader.communicate(timeout=60 * SLOW)
            found = json.loads(said)
            self.assertEqual((found["errors"], found["wrong"]), ({}, []))
            self.assertGreater(found["bytes"], 0)
            opens += found["opens"]
        return opens

    def test_opened_before_it_was_complete(self):
        self.server.set(rate=f"{sized(8, 3)}MB")
        node = self.node(self.server.url(), connections="2")
        lending.require(self, node)
        early = os.open(node.path("file"), os.O_RDONLY)
        self.addCleanup(_close, early)
        os.pread(early, 4 * KIB, 0)
        readers = self.compare(node, "file", 2, 4 * SLOW)
        run("cmp", node.path("file"), os.path.join(self.root, "file"))
        self.assertEqual(len(node.held("file")), SIZE // BLOCK + 1)
        time.sleep(0.5)
        late = os.open(node.path("file"), os.O_RDONLY)
        self.addCleanup(_close, late)
        for fd in (early, late):
            lending.drop_pages(fd)
            self.assertEqual(lending.digest_of(fd, SIZE), self.wanted["file"])
        self.findings(readers)
        facts = lending.facts(node)
        self.assertEqual((facts["files"], facts["opens"]), (0, 0), "the first open decided")
        os.close(early)
        os.close(late)
        fd = lending.open_lent(node, "file")
        self.check_fd(fd, "file")

    def test_opens_and_closes_while_it_completes(self):
        self.server.set(rate=f"{sized(8, 3)}MB")
        node = self.node(self.server.url(), connections="2", fill="all")
        lending.require(self, node)
        readers = self.compare(node, "file", 4, sized(5, 10))
        opens = self.findings(readers)
        facts = lending.facts(node)
        print(f"  {opens} opens, {facts['opens']} of them passthrough, {lending.reads(node)} reads "
              "through the node", flush=True)
        self.assertGreater(lending.reads(node), 0)
        self.assertGreater(facts["opens"], 0, "it was lent in the end")
        self.assertEqual(facts["files"], 0)

    def test_opens_and_closes_under_eviction(self):
        """The file comes and goes, lent and not, under the same four readers."""
        node = self.node(self.server.url(), fill="all")
        lending.require(self, node)
        readers = self.compare(node, "file", 4, sized(5, 10))
        end = time.monotonic() + sized(4, 8)
        while time.monotonic() < end:
            node.ctl("evict", node.path("file"))
            time.sleep(0.1)
        opens = self.findings(readers)
        facts = lending.facts(node)
        print(f"  {opens} opens, {facts['opens']} of them passthrough, {lending.reads(node)} reads "
              "through the node", flush=True)
        self.assertEqual(trees.sha256_of(node.path("file")), self.wanted["file"])


if __name__ == "__main__":
    main()
