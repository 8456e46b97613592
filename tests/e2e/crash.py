"""kill -9 at random moments under load, round after round.

Each round: readers compare random ranges with the original; some time later the node is killed;
it is started again on the same mountpoint and cache directory, and then
  - every byte read was right, before and after;
  - what was durable at the last commit that was seen before the kill is held, and none of it is
    asked of the origin again (by the ranges in the origin's log).
What was durable: what a start found in the index; and a block that `explain` names while the
commit number is n is in the index once the number is n + 2, since commit n + 2 began after it was
present.
A cache directory lives for some rounds; some have so small a limit that blocks are evicted all the
time, and in these only the bytes are checked.
"""

import os
import random
import shutil
import threading
import time

import trees
from harness import BLOCK, KIB, MIB, SLOW, sized, wait_until

FILES = 6


class Load:
    """Threads that read and compare until told to end. Errors count only before `killed`."""

    def __init__(self, node, root, seed, threads=4):
        self.node, self.root = node, root
        self.problems, self.read_bytes = [], 0
        self.killed = threading.Event()
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(seed * 100 + i,))
                         for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, seed):
        dice = random.Random(seed)
        while not self._end.is_set():
            name = f"f{dice.randrange(FILES)}"
            try:
                self._read_some(dice, name)
            except OSError as error:
                if self.killed.is_set():
                    return
                time.sleep(0.05)  # the kill may be a moment ahead of its mark
                if self.killed.is_set():
                    return
                self.problems.append(f"{name}: {error!r}")
                return

    def _read_some(self, dice, name):
        shown = os.open(self.node.path(name), os.O_RDONLY)
        true = os.open(os.path.join(self.root, name), os.O_RDONLY)
        try:
            size = os.fstat(true).st_size
            start = dice.randrange(size)
            for _ in range(dice.randrange(1, 24)):
                length = dice.choice([4 * KIB, 64 * KIB, MIB, 3 * MIB])
                got, wanted = os.pread(shown, length, start), os.pread(true, length, start)
                self.read_bytes += len(got)
                if len(got) < len(wanted) and self.killed.wait(0.5):
                    wanted = wanted[:len(got)]  # the kill came in the middle of this read
                if got != wanted:
                    self.problems.append(f"{name}: wrong bytes in {length} at {start}")
                start += length
                if start >= size or self._end.is_set():
                    break
        finally:
            os.close(shown)
            os.close(true)

    def end(self):
        self._end.set()
        for thread in self._threads:
            thread.join(60 * SLOW)
            if thread.is_alive():
                self.problems.append("a reader hangs")


class CrashRounds:
    """`case` gives the temporary directory, the origin and the node."""

    def __init__(self, case, seed):
        self.case, self.seed = case, seed
        self.dice = random.Random(seed)
        self.root = case.dir("tree")
        for i in range(FILES):
            size = sized(48, 16) * MIB + 12345 * i
            trees.write_random(os.path.join(self.root, f"f{i}"), size, seed + i)
        trees.age(self.root)
        self.origin = case.origin(self.root, rate=f"{sized(12, 6)}MB")
        self.total = sum(os.path.getsize(os.path.join(self.root, f"f{i}")) for i in range(FILES))
        self.node = None
        self.life = 0  # rounds left for this cache directory
        self.counts = {"rounds": 0, "lives": 0, "durable_blocks": 0, "read_bytes": 0,
                       "evicting_rounds": 0, "rounds_with_durable": 0}

    def _new_life(self):
        if self.node is not None:
            self.node.stop()
            shutil.rmtree(self.node.cache, ignore_errors=True)
        self.life = self.dice.randrange(2, 7)
        self.evicting = self.dice.random() < 0.25
        limit = self.total // 3 if self.evicting else 10 * self.total
        cache = os.path.join(self.case.temp, f"cache-{self.counts['lives']}")
        if self.node is None:
            self.node = self.case.node(self.origin.url(), start=False, cache=cache)
        self.node.cache = cache
        self.node.options["cache_size"] = str(max(limit, 32 * MIB))
        self.node.start()
        self.counts["lives"] += 1
        self.recovered = {}

    def run(self, rounds):
        for number in range(rounds):
            if self.life == 0:
                self._new_life()
            self.life -= 1
            self._round(number)
        self._last_round()
        return self.counts

    def _round(self, number):
        what = f"seed {self.seed}, round {number}"
        load = Load(self.node, self.root, self.seed * 1000 + number)
        durable = self._watch_until_kill(self.dice.uniform(0.05, sized(1.6, 3.0)))
        load.killed.set()  # a moment early rather than late: errors after it are the kill's
        self.node.kill9()
        load.end()
        self.case.assertEqual(load.problems, [], what)
        self.counts["rounds"] += 1
        self.counts["read_bytes"] += load.read_bytes
        self.counts["evicting_rounds"] += self.evicting
        self.node.start()
        self.case.assertTrue(self.node.alive(), what)
        if not self.evicting:
            self._check_durable(durable, what)

    def _watch_until_kill(self, seconds):
        """{file: blocks} that the last commit seen holds."""
        end = time.monotonic() + seconds
        candidates = []  # (commit number, what was present then)
        durable = self.recovered
        self.last_seq = 0
        while time.monotonic() < end:
            present = {f"f{i}": self.node.held(f"f{i}") for i in range(FILES)}
            # Asked after: commits go on while the files are asked for, one after the other.
            seq = self.node.status()["cache"]["commit_seq"]
            while candidates and candidates[0][0] + 2 <= seq:
                durable = candidates.pop(0)[1]
            self.last_seq = seq
            candidates.append((seq, present))
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))
        return durable

    def _check_durable(self, durable, what):
        held = {}
        for name in durable:
            os.stat(self.node.path(name))
            held[name] = self.node.held(name)  # before anything is read
            self.case.assertGreaterEqual(held[name], durable[name],
                                         f"{what}: {name} lost durable blocks")
        self.case.assertGreaterEqual(self.node.status()["cache"]["commit_seq"], self.last_seq, what)
        self.recovered = held
        count = sum(len(blocks) for blocks in durable.values())
        self.counts["durable_blocks"] += count
        self.counts["rounds_with_durable"] += count > 0
        self.origin.reset_stats()
        self._read_blocks(durable, what)
        self.assert_not_refetched(durable, what)

    def _read_blocks(self, durable, what):
        for name, blocks in durable.items():
            if not blocks:
                continue  # perhaps never opened: unknown with the origin stopped
            shown = os.open(self.node.path(name), os.O_RDONLY)
            true = os.open(os.path.join(self.root, name), os.O_RDONLY)
            try:
                for block in sorted(blocks):
                    for offset in range(block * BLOCK, (block + 1) * BLOCK, MIB):
                        self.case.assertEqual(os.pread(shown, MIB, offset),
                                              os.pread(true, MIB, offset), f"{what}: {name}")
            finally:
                os.close(shown)
                os.close(true)

    def assert_not_refetched(self, durable, what):
        for path, first, last in self.origin.ranges():
            if (first, last) == (0, 0):
                continue  # the probe of size and version
            blocks = durable.get(path.lstrip("/"), set())
            asked = set(range(first // BLOCK, last // BLOCK + 1))
            self.case.assertFalse(asked & blocks, f"{what}: {path} {first}-{last} asked again")

    def _last_round(self):
        """With the origin stopped: everything durable is served."""
        if self.evicting:
            self.life = 0
            self.evicting = False
            self.node.stop()
            shutil.rmtree(self.node.cache, ignore_errors=True)
            self.node.options["cache_size"] = str(10 * self.total)
            self.node.start()
        load = Load(self.node, self.root, self.seed + 77)
        wait_until(lambda: load.read_bytes > 24 * MIB or load.problems, 60 * SLOW, "some load")
        load.end()
        self.case.assertEqual(load.problems, [])
        self.node.settle()
        durable = {f"f{i}": self.node.held(f"f{i}") for i in range(FILES)}
        self.node.kill9()
        self.origin.stop()
        self.node.start()
        self._read_blocks(durable, f"seed {self.seed}, origin stopped")
        self.case.assertEqual(self.node.status()["cache"]["corrupt_granules"], 0)
