"""The main job on the scripted origin: a tree, cold, warm, over a restart, and after a crash with
the origin gone."""

import errno
import os
import random
import stat

import trees
from harness import BLOCK, KIB, MIB, Case, is_mounted, main, run, sized, wait_until


class MainJob(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        trees.make_tree(self.root)
        self.server = self.origin(self.root)
        self.server.set(empty_range="200")  # a 416 need not have a Last-Modified
        self.sums = trees.tool_sums(self.root)

    def check(self, node):
        self.assertEqual(trees.tool_sums(node.mountpoint), self.sums)

    def test_tree_cold_warm_restarted_and_after_a_crash_without_origin(self):
        node = self.node(self.server.url())
        self.check(node)
        self.assertEqual(trees.tool_listing(node.mountpoint), trees.tool_listing(self.root))

        bytes_cold = self.server.body_bytes()
        self.check(node)
        listings = 300 * KIB
        self.assertLess(self.server.body_bytes() - bytes_cold, listings, "warm reads fetch nothing")

        inodes = self.inodes(node)
        node.restart()
        self.check(node)
        self.assertLess(self.server.body_bytes() - bytes_cold, 2 * listings)
        self.assertEqual(self.inodes(node), inodes, "inode numbers hold over remounts")

        node.settle()
        node.kill9()
        self.server.stop()
        node.start()
        self.check(node)
        self.assertEqual(trees.tool_listing(node.mountpoint), trees.tool_listing(self.root))
        self.assertEqual(self.inodes(node), inodes)
        self.assertEqual(node.status()["cache"]["corrupt_granules"], 0)

    def inodes(self, node):
        root = os.fsencode(node.mountpoint)
        found = {os.path.relpath(os.path.join(folder, name), root):
                 os.lstat(os.path.join(folder, name)).st_ino
                 for folder, dirs, files in os.walk(root) for name in dirs + files}
        self.assertEqual(len(set(found.values())), len(found), "each name has its own")
        return found

    def test_descriptors_and_threads_do_not_grow(self):
        node = self.node(self.server.url())
        self.check(node)
        node.settle()
        before, threads = node.open_files(), node.threads()
        for _ in range(3):
            self.check(node)
        node.settle()
        self.assertLessEqual(node.open_files(), before + 4)
        # libfuse starts its fixed number of threads as they are needed.
        self.assertLessEqual(node.threads(), threads + 4)


class Attributes(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        trees.make_files(self.root)
        trees.age(self.root)
        self.server = self.origin(self.root)

    def test_files_and_directories(self):
        node = self.node(self.server.url(), uid=1234, gid=4321, umask="027")
        self.server.set(empty_range="200")  # a 416 need not have a Last-Modified
        for name in ("s0", "s1", f"s{BLOCK}", f"s{BLOCK + 1}"):
            shown = os.stat(node.path("sizes", name))
            true = os.stat(os.path.join(self.root, "sizes", name))
            self.assertEqual(shown.st_size, true.st_size)
            self.assertEqual(int(shown.st_mtime), int(true.st_mtime), "mtime is Last-Modified")
            self.assertEqual(shown.st_blocks, (true.st_size + 511) // 512)
            self.assertEqual(shown.st_mode, stat.S_IFREG | 0o440)
            self.assertEqual((shown.st_uid, shown.st_gid), (1234, 4321))
            self.assertEqual(shown.st_nlink, 1)
        folder = os.stat(node.path("sizes"))
        self.assertEqual(folder.st_mode, stat.S_IFDIR | 0o550)
        self.assertEqual((folder.st_uid, folder.st_gid), (1234, 4321))

    def test_default_modes(self):
        node = self.node(self.server.url())
        self.assertEqual(os.stat(node.path("sizes", "s1")).st_mode, stat.S_IFREG | 0o444)
        self.assertEqual(os.stat(node.path("sizes")).st_mode, stat.S_IFDIR | 0o555)
        self.assertEqual(os.stat(node.mountpoint).st_mode, stat.S_IFDIR | 0o555)

    def test_nothing_can_be_changed(self):
        node = self.node(self.server.url())
        path, folder = node.path("sizes", "s1"), node.path("sizes")
        tries = {
            "write": lambda: os.open(path, os.O_WRONLY),
            "read and write": lambda: os.open(path, os.O_RDWR),
            "create": lambda: os.open(node.path("new"), os.O_CREAT | os.O_WRONLY, 0o644),
            "truncate": lambda: os.truncate(path, 0),
            "unlink": lambda: os.unlink(path),
            "rename": lambda: os.rename(path, path + "2"),
            "mkdir": lambda: os.mkdir(node.path("folder")),
            "rmdir": lambda: os.rmdir(folder),
            "symlink": lambda: os.symlink("x", node.path("link")),
            "link": lambda: os.link(path, path + "2"),
            "chmod": lambda: os.chmod(path, 0o644),
            "utime": lambda: os.utime(path),
            "setxattr": lambda: os.setxattr(path, "user.x", b"y"),
            "removexattr": lambda: os.removexattr(path, "user.dartfs.url"),
        }
        for what, attempt in tries.items():
            with self.subTest(what), self.assertRaises(OSError) as caught:
                attempt()
            self.assertEqual(caught.exception.errno, errno.EROFS, what)

    def test_extended_attributes(self):
        node = self.node(self.server.url())
        path = node.path("sizes", f"s{BLOCK + 1}")
        url = os.getxattr(path, "user.dartfs.url").decode()
        self.assertEqual(url, self.server.url(f"/sizes/s{BLOCK + 1}"))
        self.assertIn("user.dartfs.url", os.listxattr(path))
        with open(path, "rb") as file:
            file.read()
            version = os.getxattr(path, "user.dartfs.version").decode()
            self.assertTrue(version.startswith("e:"), version)
            node.settle()
            self.assertEqual(os.getxattr(path, "user.dartfs.cached_bytes"),
                             str(BLOCK + 1).encode())
        with self.assertRaises(OSError) as caught:
            os.getxattr(path, "user.dartfs.nothing")
        self.assertEqual(caught.exception.errno, errno.ENODATA)

    def test_statfs(self):
        node = self.node(self.server.url())
        facts = os.statvfs(node.mountpoint)
        self.assertGreaterEqual(facts.f_namemax, 255)
        self.assertTrue(facts.f_flag & os.ST_RDONLY)
        self.assertTrue(facts.f_flag & os.ST_NOSUID)
        self.assertTrue(facts.f_flag & os.ST_NODEV)
        run("df", node.mountpoint)

    def test_absent_names(self):
        node = self.node(self.server.url())
        for name in ("nothing", "sizes/nothing", "sizes/s1/below"):
            with self.subTest(name), self.assertRaises(OSError) as caught:
                os.stat(node.path(name))
            wanted = errno.ENOTDIR if "below" in name else errno.ENOENT
            self.assertEqual(caught.exception.errno, wanted)
        self.assertEqual(os.listdir(node.path("empty")), [])

    def test_a_file_that_appears_is_found(self):
        node = self.node(self.server.url())
        self.assertFalse(os.path.exists(node.path("late")))
        with open(os.path.join(self.root, "late"), "w") as file:
            file.write("here")

        def appears():
            return os.path.exists(node.path("late"))
        wait_until(appears, 10, "absence is remembered for a second, not longer", 0.3)


class Reads(Case):
    def test_random_reads_against_the_original(self):
        seed = int(os.environ.get("DARTFS_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"seed {seed} (DARTFS_SEED)", flush=True)
        dice = random.Random(seed)
        root = self.dir("tree")
        size = sized(40, 12) * MIB + 4321
        trees.write_random(os.path.join(root, "file"), size, seed)
        trees.age(root)
        server = self.origin(root)
        node = self.node(server.url())
        with open(os.path.join(root, "file"), "rb") as file:
            original = file.read()
        shown = os.open(node.path("file"), os.O_RDONLY)
        self.addCleanup(os.close, shown)
        edges = [0, 1, size, size - 1] + [k * BLOCK for k in range(1, size // BLOCK + 1)]
        for _ in range(sized(600, 200)):
            near = dice.choice(edges) + dice.randrange(-3, 4)
            start = max(0, dice.choice([near, dice.randrange(size + 10)]))
            length = dice.choice([1, 7, 512, 4096, 4097, 128 * KIB, MIB + 1, BLOCK + 1])
            self.assertEqual(os.pread(shown, length, start), original[start:start + length],
                             f"seed {seed}: {length} bytes at {start}")

    def test_a_link_of_the_tree_through_a_subdirectory_source(self):
        """The source may be any directory of a server."""
        root = self.dir("tree")
        trees.make_files(root)
        trees.age(root)
        server = self.origin(root)
        node = self.node(server.url("/sizes/"))
        self.assertEqual(trees.digest_tree(node.mountpoint),
                         trees.digest_tree(os.path.join(root, "sizes")))

    def test_listings_of_all_kinds_show_the_same_tree(self):
        root = self.dir("tree")
        trees.make_files(root)
        trees.age(root)
        wanted = trees.digest_tree(root)
        for index in ("nginx", "apache", "python", "json"):
            with self.subTest(index):
                server = self.origin(root, index=index)
                node = self.node(server.url())
                shown = trees.digest_tree(node.mountpoint)
                self.assertEqual(shown, wanted, trees.first_difference(shown, wanted))
                node.stop()
                server.stop()

    def test_an_unmount_from_outside_ends_the_node(self):
        root = self.dir("tree")
        trees.make_files(root)
        server = self.origin(root)
        node = self.node(server.url())
        run("umount", node.mountpoint)
        self.assertEqual(node.wait_ended(), 0)
        self.assertFalse(is_mounted(node.mountpoint))


if __name__ == "__main__":
    main()
