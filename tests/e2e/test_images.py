"""Real images read with ordinary tools: cold, warm, and after a crash with the origin stopped."""

import os

import checks
import trees
from harness import MIB, Case, main, sized

FIO_SIZE = sized(48, 12) * MIB


class Images(Case):
    limit = 240

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        self.payload = trees.make_tree(self.root)
        checks.make_fio_file(self.root, FIO_SIZE)
        self.server = self.origin(self.root)
        # A 416 has no validator: the empty file would be forgotten at a restart.
        self.server.set(empty_range="200")

    def test_cold(self):
        """Each use on bytes that nobody has read yet."""
        uses = {
            "loop": lambda node: checks.loop_mounts(self, node, self.payload),
            "qemu-img": lambda node: checks.qemu_img(self, node, self.root),
            "tar": lambda node: checks.tar(self, node, self.payload),
            "cp": lambda node: checks.copies(self, node, self.root),
            "mmap": lambda node: checks.mapped_pages(self, node, self.root),
            "threads": lambda node: checks.threads_on_one_descriptor(self, node, self.root),
            "fio": lambda node: checks.fio(self, node, FIO_SIZE),
        }
        for what, use in uses.items():
            with self.subTest(what):
                node = self.node(self.server.url())
                use(node)
                node.stop()

    def all_uses(self, node):
        checks.loop_mounts(self, node, self.payload)
        checks.qemu_img(self, node, self.root)
        checks.tar(self, node, self.payload)
        checks.copies(self, node, self.root)
        checks.mapped_pages(self, node, self.root)
        checks.threads_on_one_descriptor(self, node, self.root)
        checks.fio(self, node, FIO_SIZE)

    def test_warm_and_after_a_crash_without_origin(self):
        node = self.node(self.server.url())
        sums = trees.tool_sums(node.mountpoint)
        self.assertEqual(sums, trees.tool_sums(self.root))
        self.all_uses(node)
        node.settle()
        node.kill9()
        self.server.stop()
        node.start()
        self.all_uses(node)
        self.assertEqual(trees.tool_sums(node.mountpoint), sums)
        self.assertEqual(node.status()["bytes"]["origin"], 0)

    def test_loop_with_direct_io(self):
        """Works, or is refused cleanly: losetup falls back by itself where it can't."""
        node = self.node(self.server.url())
        checks.loop_mounts(self, node, self.payload, direct_io=True)

    def test_a_loop_mount_through_a_crash(self):
        """Its reads fail while the node is gone; nothing hangs, and a new mount is right."""
        node = self.node(self.server.url())
        loop = self.loop_mount(node.path("images", "root.squashfs"), "squashfs")
        trees.digest_tree(os.path.join(loop[0], "d0"))
        node.kill9()
        try:
            trees.digest_tree(loop[0])
        except OSError:
            pass  # EIO is the honest answer
        self.unmount_loop(loop)
        node.start()
        checks.loop_mounts(self, node, self.payload)


if __name__ == "__main__":
    main()
