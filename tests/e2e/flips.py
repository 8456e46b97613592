"""One bit flipped in the index, a start, every file read; over and over."""

import os
import random
import shutil
import time

import damage
import trees
from harness import BLOCK, GRANULE, KIB, run, sized


class IndexFlips:
    """Makes a cache once; each run damages a copy of it. `case` gives directory and servers."""

    def __init__(self, case, seed):
        self.case, self.seed = case, seed
        self.dice = random.Random(seed)
        root = case.dir("tree")
        trees.write_random(os.path.join(root, "big"), BLOCK + GRANULE + 7, 1)
        for i in range(sized(12, 6)):
            folder = os.path.join(root, f"d{i % 3}")
            os.makedirs(folder, exist_ok=True)
            trees.write_random(os.path.join(folder, f"f{i}"), 1000 + 5000 * i, 2 + i)
        trees.write_random(os.path.join(root, "two"), 2 * GRANULE + 100, 20)
        trees.age(root)
        self.wanted = trees.digest_tree(root)
        self.origin = case.origin(root)
        self.node = case.node(self.origin.url())
        self.case.assertEqual(trees.digest_tree(self.node.mountpoint), self.wanted)
        self.node.stop()
        self.saved = self.node.cache + "-saved"
        os.rename(self.node.cache, self.saved)
        self.counts = {"runs": 0, "starts": 0, "set_aside": 0, "died": 0, "corrupt_records": 0,
                       "corrupt_granules": 0, "fetched_runs": 0, "seconds": 0}

    def run(self, runs):
        began = time.monotonic()
        for number in range(runs):
            self._one(number)
        self.counts["seconds"] = round(time.monotonic() - began, 1)
        return self.counts

    def _one(self, number):
        shutil.rmtree(self.node.cache, ignore_errors=True)
        run("cp", "-a", "--sparse=always", self.saved, self.node.cache)
        index = damage.index_file(self.node.cache)
        offset, bit = self._place(index)
        damage.flip_bit(index, offset, bit)
        what = f"seed {self.seed}, run {number}: bit {bit} of byte {offset}"
        self.origin.reset_stats()
        self._read_through_deaths(what)
        cache = self.node.status()["cache"]
        self.counts["corrupt_records"] += cache["corrupt_records"]
        self.counts["corrupt_granules"] += cache["corrupt_granules"]
        self.counts["fetched_runs"] += self.origin.body_bytes() > 100 * KIB
        self.counts["set_aside"] += any("bad" in name for name in os.listdir(self.node.cache))
        self.node.stop()
        self.counts["runs"] += 1

    def _place(self, index):
        """Half of the flips in pages that are not empty, half anywhere."""
        with open(index, "rb") as file:
            content = file.read()
        if self.dice.random() < 0.5:
            return self.dice.randrange(len(content)), self.dice.randrange(8)
        while True:
            offset = self.dice.randrange(len(content))
            if content[offset] != 0:
                return offset, self.dice.randrange(8)

    def _read_through_deaths(self, what):
        """As under a service manager; a node that dies three times is a crash loop."""
        for _ in range(4):
            code, said = self.node.try_start()
            self.counts["starts"] += 1
            if code != 0:
                self.counts["died"] += 1
                self.case.assertNotEqual(said.strip(), "", f"{what}: no reason told")
                continue
            try:
                shown = trees.digest_tree(self.node.mountpoint)
            except OSError as error:
                if self.node.alive():
                    self.node.show_log()
                    raise AssertionError(f"{what}: {error!r}") from error
                self.counts["died"] += 1
                continue
            self.case.assertEqual(shown, self.wanted,
                                  f"{what}: {trees.first_difference(shown, self.wanted)}")
            self.case.assertTrue(self.node.alive(), what)
            return
        self.case.fail(f"{what}: a crash loop")
