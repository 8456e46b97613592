"""A stock nginx with autoindex: the tree agrees with the original, also after kill -9 of the node
with nginx stopped."""

import checks
import trees
from harness import Case, main


class StockNginx(Case):
    limit = 240

    def test_tree_and_images_cold_and_after_a_crash_without_origin(self):
        root = self.dir("tree")
        payload = trees.make_tree(root, dotted=False)
        server = self.nginx(root)
        node = self.node(server.url())
        self.agree(node, root, payload)
        node.settle()
        node.kill9()
        server.stop()
        node.start()
        self.agree(node, root, payload)
        self.assertEqual(node.status()["bytes"]["origin"], 0)

    def agree(self, node, root, payload):
        self.assertEqual(trees.tool_listing(node.mountpoint), trees.tool_listing(root))
        self.assertEqual(trees.tool_sums(node.mountpoint), trees.tool_sums(root))
        checks.loop_mounts(self, node, payload)
        checks.qemu_img(self, node, root)
        checks.tar(self, node, payload)

    def test_nginx_restarted_under_a_reader(self):
        """Connections that were kept are found closed: nobody but the retry notices."""
        root = self.dir("tree")
        trees.write_random(f"{root}/file", 24 << 20, 5)
        trees.age(root)
        server = self.nginx(root)
        node = self.node(server.url())
        with open(f"{root}/file", "rb") as true, open(node.path("file"), "rb") as shown:
            for piece in range(24):
                if piece % 8 == 4:
                    server.stop()
                    server.start()
                self.assertEqual(shown.read(1 << 20), true.read(1 << 20))


if __name__ == "__main__":
    main()
