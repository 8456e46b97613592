"""Names both ways, byte for byte, through every kind of listing and by looking them up."""

import errno
import os
import time
import urllib.parse

import trees
from harness import Case, main


def wire(name):
    """As a segment of a request line."""
    return urllib.parse.quote_from_bytes(name, safe="-._~!$&'()*+,;=:@")


def is_utf8(name):
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


class Names(Case):
    def setUp(self):
        super().setUp()
        self.root = os.fsencode(self.dir("tree"))
        for i, name in enumerate(trees.ODD_NAMES):
            with open(os.path.join(self.root, name), "wb") as file:
                file.write(b"%d " % i + name)
        trees.age(os.fsdecode(self.root))

    def content(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_listed_names_are_the_original_ones(self):
        for index in ("nginx", "apache", "python", "json"):
            with self.subTest(index):
                server = self.origin(os.fsdecode(self.root), index=index)
                node = self.node(server.url())
                shown = sorted(os.listdir(os.fsencode(node.mountpoint)))
                self.assertEqual(shown, sorted(trees.ODD_NAMES))
                for i, name in enumerate(trees.ODD_NAMES):
                    self.assertEqual(self.content(node.path(name)), b"%d " % i + name)
                node.stop()
                server.stop()

    def test_keys_of_a_bucket(self):
        """Object stores' keys are UTF-8."""
        names = [name for name in trees.ODD_NAMES if is_utf8(name)]
        for name in set(trees.ODD_NAMES) - set(names):
            os.unlink(os.path.join(self.root, name))
        server = self.origin(os.fsdecode(self.root), index="s3")
        node = self.node(server.url())
        self.assertEqual(sorted(os.listdir(os.fsencode(node.mountpoint))), sorted(names))
        for name in names:
            with open(os.path.join(self.root, name), "rb") as file:
                self.assertEqual(self.content(node.path(name)), file.read())

    def test_names_without_any_listing(self):
        server = self.origin(os.fsdecode(self.root), index="none")
        node = self.node(server.url())
        for i, name in enumerate(trees.ODD_NAMES):
            with self.subTest(name):
                self.assertEqual(self.content(node.path(name)), b"%d " % i + name)

    def test_the_bytes_on_the_wire(self):
        server = self.origin(os.fsdecode(self.root), index="none")
        node = self.node(server.url())
        for name in trees.ODD_NAMES:
            os.stat(node.path(name))
        asked = {logged["target"] for logged in server.control("GET", "log")}
        self.assertLessEqual({"/" + wire(name) for name in trees.ODD_NAMES}, asked)

    def test_any_url_as_one_component(self):
        """A deep path and a query, with %2F and %3F."""
        server = self.origin(os.fsdecode(self.root), index="none")
        server.add_file("/a/b%20c/disk.img", text="deep")
        server.add_file("/a%2Fb", text="a slash in a segment")
        server.add_file("//double", text="empty segment")
        node = self.node(server.url())
        names = {"a%2Fb%2520c%2Fdisk.img": "deep",
                 "a%2Fb%2520c%2Fdisk.img%3Fversion=7": "deep",
                 "%=a%252Fb": "a slash in a segment",
                 "%2Fdouble": "empty segment"}
        for name, wanted in names.items():
            with self.subTest(name):
                self.assertEqual(self.content(node.path(name)), wanted.encode())
        asked = {logged["target"] for logged in server.control("GET", "log")}
        self.assertIn("/a/b%20c/disk.img?version=7", asked)
        self.assertIn("/a%2Fb", asked)
        self.assertIn("//double", asked)

    def test_a_presigned_url(self):
        """Longer than any plain name: 600 bytes, and all that the kernel takes."""
        server = self.origin(os.fsdecode(self.root), index="none")
        server.add_file("/disk.img", text="signed")
        node = self.node(server.url())
        for size in (600, 1024):
            name = "disk.img%3FX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature="
            name += "5" * (size - len(name))
            self.assertEqual(self.content(node.path(name)), b"signed")
            asked = {logged["target"] for logged in server.control("GET", "log")}
            self.assertIn("/" + name.replace("%3F", "?"), asked)

    def test_a_name_that_climbs_out_is_none(self):
        server = self.origin(os.fsdecode(self.root))
        server.add_file("/secret", text="outside")
        node = self.node(server.url("/below/"))
        for name in ("..%2Fsecret", "%252e%252e%2Fsecret", "x%2F..%2F..%2Fsecret"):
            with self.subTest(name), self.assertRaises(OSError) as caught:
                os.stat(node.path(name))
            self.assertIn(caught.exception.errno, (errno.ENOENT, errno.EINVAL))
        asked = {logged["target"] for logged in server.control("GET", "log")}
        self.assertNotIn("/secret", asked)

    def test_queries_tell_objects_apart(self):
        server = self.origin(os.fsdecode(self.root), index="none")
        server.add_file("/file", text="x" * 1000)
        node = self.node(server.url())
        first = os.stat(node.path("file%3Fa=1"))
        second = os.stat(node.path("file%3Fa=2"))
        self.assertNotEqual(first.st_ino, second.st_ino)
        self.assertEqual(len(self.content(node.path("file%3Fa=1"))), 1000)

    def test_spellings_outlive_a_restart_without_the_origin(self):
        server = self.origin(os.fsdecode(self.root), index="apache")
        node = self.node(server.url())
        wanted = trees.digest_tree(node.mountpoint)
        node.settle()
        node.kill9()
        server.stop()
        node.start()
        shown = trees.digest_tree(node.mountpoint)
        self.assertEqual(shown, wanted, trees.first_difference(shown, wanted))

    def test_absent_names_cost_no_commit(self):
        """As a program asks that looks for its files everywhere, where nothing is listed."""
        server = self.origin(os.fsdecode(self.root), index="none")
        node = self.node(server.url())
        before = node.settle()["cache"]["commit_seq"]
        for i in range(15):  # longer together than several commits are apart
            with self.assertRaises(FileNotFoundError):
                os.stat(node.path(f"absent-{i}"))
            time.sleep(0.1)
        self.assertEqual(node.status()["cache"]["commit_seq"], before)

    def test_names_too_long(self):
        server = self.origin(os.fsdecode(self.root), index="none")
        node = self.node(server.url())
        with self.assertRaises(OSError) as caught:
            os.stat(node.path("x" * 1025))
        self.assertEqual(caught.exception.errno, errno.ENAMETOOLONG)
        with self.assertRaises(OSError) as caught:
            os.stat(node.path("x" * 300))
        self.assertIn(caught.exception.errno, (errno.ENAMETOOLONG, errno.ENOENT))


if __name__ == "__main__":
    main()
