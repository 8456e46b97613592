"""Crashes of the node, and writes that the disk lost below the index. Long form:
crash_rounds.py."""

import os
import random
import shutil

import damage
import trees
from crash import CrashRounds
from harness import BLOCK, GRANULE, MIB, Case, main, run, sized


class Killed(Case):
    limit = 200

    def test_rounds(self):
        seed = int(os.environ.get("DARTFS_SEED", random.SystemRandom().randrange(1 << 20)))
        print(f"seed {seed} (DARTFS_SEED)", flush=True)
        counts = CrashRounds(self, seed).run(sized(5, 3))
        print("  " + str(counts), flush=True)
        self.assertGreater(counts["read_bytes"], 0)


class LostWrites(Case):
    """The index is whole, what lies below it is not."""

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        for i, size in enumerate((1, 5000, GRANULE + 1, BLOCK, 2 * BLOCK + 99, sized(20, 9) * MIB)):
            trees.write_random(os.path.join(self.root, f"f{i}"), size, 40 + i)
        trees.age(self.root)
        self.server = self.origin(self.root)
        self.wanted = trees.digest_tree(self.root)
        self.mounted = self.node(self.server.url())
        self.assertEqual(trees.digest_tree(self.mounted.mountpoint), self.wanted)
        self.mounted.settle()
        self.mounted.kill9()

    def all_right(self):
        self.mounted.start()
        shown = trees.digest_tree(self.mounted.mountpoint)
        self.assertEqual(shown, self.wanted, trees.first_difference(shown, self.wanted))
        return self.mounted.settle()["cache"]

    def kept_now(self):
        """Everything was stored anew: right once more, with the origin gone."""
        self.mounted.stop()
        self.server.stop()
        cache = self.all_right()
        self.assertEqual(cache["corrupt_granules"], 0)

    def test_lost_and_torn_pages(self):
        hit = damage.lose_pages(self.mounted.cache, seed=5)
        cache = self.all_right()
        self.assertGreaterEqual(cache["corrupt_granules"], len(hit))
        self.kept_now()

    def test_files_cut_short_or_empty(self):
        files = damage.object_files(self.mounted.cache)
        for i, path in enumerate(files):
            damage.cut(path, [0, 1, os.path.getsize(path) // 2][i % 3])
        self.all_right()
        self.kept_now()

    def test_files_gone(self):
        for path in damage.object_files(self.mounted.cache)[::2]:
            os.unlink(path)
        self.all_right()
        self.kept_now()

    def test_files_exchanged(self):
        """Right length, wrong content: two files' bytes change places."""
        files = damage.object_files(self.mounted.cache)
        with open(files[0], "rb") as file:
            first = file.read()
        for path in files[1:]:
            size = os.path.getsize(path)
            with open(path, "r+b") as file:
                file.write((first * (size // max(1, len(first)) + 1))[:size] or b"")
        self.all_right()
        self.kept_now()

    def test_files_that_nobody_knows(self):
        folder = os.path.dirname(damage.object_files(self.mounted.cache)[0])
        with open(os.path.join(folder, "0" * 30), "wb") as file:
            file.write(bytes(100000))
        with open(os.path.join(self.mounted.cache, "objects", "leftover"), "wb") as file:
            file.write(b"?")
        self.all_right()
        self.kept_now()

    def test_index_lost(self):
        """Every form of it: the cache begins empty, or says why not; bytes are right."""
        index = os.path.dirname(damage.index_file(self.mounted.cache))
        saved = self.mounted.cache + "-saved"
        run("cp", "-a", "--sparse=always", self.mounted.cache, saved)
        ways = {
            "gone": lambda: shutil.rmtree(index),
            "empty": lambda: damage.cut(damage.index_file(self.mounted.cache), 0),
            "cut": lambda: damage.cut(damage.index_file(self.mounted.cache), 5000),
            "half": lambda: damage.cut(
                damage.index_file(self.mounted.cache),
                os.path.getsize(damage.index_file(self.mounted.cache)) // 8192 * 4096),
            "zeros": lambda: _overwrite(damage.index_file(self.mounted.cache), 0, bytes(8192)),
            "noise": lambda: _overwrite(damage.index_file(self.mounted.cache), 0,
                                        random.Random(3).randbytes(8192)),
        }
        for name, way in ways.items():
            with self.subTest(name):
                shutil.rmtree(self.mounted.cache)
                run("cp", "-a", "--sparse=always", saved, self.mounted.cache)
                way()
                starts = start_like_a_service(self.mounted)
                shown = trees.digest_tree(self.mounted.mountpoint)
                self.assertEqual(shown, self.wanted, trees.first_difference(shown, self.wanted))
                self.assertLessEqual(starts, 3)
                self.mounted.stop()


def _overwrite(path, offset, content):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)


def start_like_a_service(node, most=3):
    """Starts it, again if it dies, as a service manager does; how many starts it took."""
    for attempt in range(1, most + 1):
        code, said = node.try_start()
        if code == 0:
            return attempt
    raise AssertionError(f"no start in {most}: {code} {said}")


if __name__ == "__main__":
    main()
