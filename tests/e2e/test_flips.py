"""Bits flipped in the cache while its node is stopped. Long form: index_flips.py."""

import os
import random

import damage
import trees
from flips import IndexFlips
from harness import BLOCK, GRANULE, MIB, Case, main, sized


class Data(Case):
    def test_one_bit_in_every_granule_of_every_file(self):
        self.flip_and_read(passthrough="off")

    def test_the_same_where_files_may_be_lent(self):
        """A lent file goes as a whole with its first bad granule: the others are never read."""
        self.flip_and_read(passthrough="auto")

    def flip_and_read(self, passthrough):
        root = self.dir("tree")
        for i, size in enumerate((1, 4096, GRANULE, GRANULE + 1, BLOCK, BLOCK + 1,
                                  sized(30, 9) * MIB + 5)):
            trees.write_random(os.path.join(root, f"f{i}"), size, 60 + i)
        trees.age(root)
        wanted = trees.digest_tree(root)
        server = self.origin(root)
        node = self.node(server.url(), passthrough=passthrough)
        self.assertEqual(trees.digest_tree(node.mountpoint), wanted)
        node.stop()
        total = sum(-(-entry[1] // GRANULE) for entry in wanted.values())
        flipped = damage.flip_every_granule(node.cache, seed=11)
        self.assertEqual(flipped, total, "every granule of every file is in the cache")
        node.start()
        shown = trees.digest_tree(node.mountpoint)
        self.assertEqual(shown, wanted, trees.first_difference(shown, wanted))
        cache = node.settle()["cache"]
        print(f"  {flipped} granules flipped, {cache['corrupt_granules']} counted", flush=True)
        if passthrough == "off":
            self.assertEqual(cache["corrupt_granules"], flipped)
        else:
            self.assertGreaterEqual(cache["corrupt_granules"], len(wanted))
        node.restart()
        server.reset_stats()
        self.assertEqual(trees.digest_tree(node.mountpoint), wanted)
        self.assertEqual(node.status()["cache"]["corrupt_granules"], 0, "mended for good")
        self.assertLess(server.body_bytes(), MIB)


class Index(Case):
    limit = 240

    def test_single_flips(self):
        seed = int(os.environ.get("DARTFS_SEED", random.SystemRandom().randrange(1 << 20)))
        print(f"seed {seed} (DARTFS_SEED)", flush=True)
        print("  " + str(IndexFlips(self, seed).run(sized(20, 10))), flush=True)


if __name__ == "__main__":
    main()
