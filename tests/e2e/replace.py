"""Objects that are replaced all the time, by as many bytes of another seed, and readers that say
which version they got.

`hot` is replaced every second; `calm0` to `calm2` in turn, each every third second, so that their
versions live long enough to become complete, checked and lent. A version's bytes are those of its
seed (tests/origin/content.h), and are taken from the origin before it publishes them.
  - What is read whole is one version, exactly, and what an open handle reads later is the same
    version.
  - ESTALE comes only where the handle's version is no longer the origin's; open never fails.
  - An open sees no version that had been replaced before its life was over.
"""

import errno
import hashlib
import os
import random
import threading
import time

from harness import MIB, SLOW, sized

TTL = 1.0
LATE = 1.2 * TTL + 0.1  # "give or take a fifth"; the kernel keeps a name so long at least
NAMES = ("hot", "calm0", "calm1", "calm2")
SIZES = {"hot": sized(12, 6) * MIB + 77, "calm0": 5 * MIB + 1, "calm1": 8 * MIB, "calm2": 3}


class Publisher:
    """Replaces, a second at a time; knows every version of every name."""

    def __init__(self, origin):
        self.origin = origin
        self.mu = threading.Lock()
        self.versions = {name: [] for name in NAMES}  # (seed, digest, when published)
        self.digests = {name: {} for name in NAMES}  # digest -> number
        self.changing = dict.fromkeys(NAMES, False)
        self.problems = []
        self._end = threading.Event()
        self._seed = 0
        for name in NAMES:
            self.publish(name)
        self._thread = threading.Thread(target=self._run)

    def publish(self, name):
        self._seed += 1
        seed = self._seed * 1_000_003
        size = SIZES[name]
        digest = hashlib.sha256(self.origin.get(f"/_gen/{size}/{seed}/x")[1]).hexdigest()
        with self.mu:
            self.changing[name] = True
            self.digests[name][digest] = len(self.versions[name])
            self.versions[name].append((seed, digest, None))
        self.origin.add_file(f"/{name}", size=size, seed=seed)
        with self.mu:
            self.versions[name][-1] = (seed, digest, time.monotonic())
            self.changing[name] = False

    def _run(self):
        number = 0
        due = time.monotonic()
        while not self._end.is_set():
            due += 1.0
            try:
                self.publish("hot")
                self.publish(f"calm{number % 3}")
            except Exception as error:  # said by the test's own thread
                self.problems.append(repr(error))
                return
            number += 1
            self._end.wait(max(0.0, due - time.monotonic()))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join(60 * SLOW)

    def number_of(self, name, digest):
        with self.mu:
            return self.digests[name].get(digest)

    def newest(self, name):
        """The number of the last version that was wholly published."""
        with self.mu:
            return len(self.versions[name]) - 1 - self.changing[name]

    def begun(self, name):
        """The number of the last version whose publication has begun."""
        with self.mu:
            return len(self.versions[name]) - 1

    def published_at(self, name, number):
        with self.mu:
            return self.versions[name][number][2]

    def due_at(self, name, moment):
        """The oldest version that an open at that moment may still show."""
        with self.mu:
            due = 0
            for number, (_, _, published) in enumerate(self.versions[name]):
                if published is not None and published + LATE + 0.5 * SLOW < moment:
                    due = number
            return due

    def explain(self, name, pieces):
        """Which versions the 64 KiB of a mix are of, as runs, for a message."""
        with self.mu:
            seeds = [seed for seed, _, _ in self.versions[name]]
        runs = []
        data = b"".join(pieces)
        for offset in range(0, len(data) - 7, 64 << 10):
            word = int.from_bytes(data[offset:offset + 8], "little")
            number = next((n for n, seed in enumerate(seeds)
                           if word_of(seed, offset // 8) == word), None)
            if not runs or runs[-1][0] != number:
                runs.append([number, offset])
        return f"{len(data)} bytes: [version, from offset] {runs[:20]}"


def word_of(seed, index):
    """Word `index` of a generated object."""
    mask = (1 << 64) - 1
    z = (seed + (index + 1) * 0x9e3779b97f4a7c15) & mask
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & mask
    z = (z ^ z >> 27) * 0x94d049bb133111eb & mask
    return z ^ z >> 31


class Readers:
    """Threads that open, read whole, keep it open for a while, and read again."""

    def __init__(self, node, publisher, seed, count=8):
        self.node, self.publisher = node, publisher
        self.mu = threading.Lock()
        self.problems = []
        self.counts = {"whole": 0, "again": 0, "stale": 0}
        self.seen = {name: set() for name in NAMES}
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(seed * 100 + i,))
                         for i in range(count)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        for thread in self._threads:
            thread.join(60 * SLOW)
            if thread.is_alive():
                self.problems.append("a reader hangs")

    def _run(self, seed):
        dice = random.Random(seed)
        while not self._end.is_set() and len(self.problems) < 10:
            name = "hot" if dice.random() < 0.4 else dice.choice(NAMES[1:])
            try:
                self._one(dice, name)
            except Exception as error:  # said by the test's own thread
                self._problem(f"{name}: {error!r}")

    def _problem(self, text):
        with self.mu:
            self.problems.append(text)

    def _count(self, what):
        with self.mu:
            self.counts[what] += 1

    def _one(self, dice, name):
        opened = time.monotonic()
        oldest = self.publisher.due_at(name, opened)
        fd = os.open(self.node.path(name), os.O_RDONLY)
        try:
            number = self._read(fd, name, dice, None)
            if number is not None:
                self._count("whole")
                with self.mu:
                    self.seen[name].add(number)
                if number < oldest:
                    late = opened - self.publisher.published_at(name, number + 1)
                    self._problem(f"{name}: an open saw version {number} {late:.2f} s after it had "
                                  "been replaced")
            for _ in range(dice.randrange(3)):
                if self._end.wait(dice.choice((0.05, 0.5, 1.5))):
                    return
                if dice.random() < 0.5:
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                if self._read(fd, name, dice, number) is not None:
                    self._count("again")
        finally:
            os.close(fd)

    def _read(self, fd, name, dice, before):
        """The version read, or None where the handle is stale."""
        piece = dice.choice((128 << 10, 1 << 20, 5 << 20))
        digest, pieces, offset = hashlib.sha256(), [], 0
        while offset < SIZES[name]:
            newest = self.publisher.begun(name)
            try:
                part = os.pread(fd, piece, offset)
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
                self._stale(name, before, max(newest, self.publisher.begun(name)))
                return None
            if not part:
                self._problem(f"{name}: ends at {offset}")
                return None
            digest.update(part)
            pieces.append(part)
            offset += len(part)
        number = self.publisher.number_of(name, digest.hexdigest())
        if number is None:
            self._problem(f"{name}: a mix of versions, {self.publisher.explain(name, pieces)}")
        elif before is not None and number != before:
            self._problem(f"{name}: a handle of version {before} read version {number}")
        return number

    def _stale(self, name, version, begun):
        """ESTALE: right on a handle whose version has been replaced."""
        self._count("stale")
        if version is not None and version >= begun:
            self._problem(f"{name}: ESTALE on a handle of the newest version, {version}")


def soak(case, seconds, seed, **mount):
    """All of it for so long; what was counted, once nothing was wrong."""
    origin = case.origin(rate=mount.pop("rate", "60MB"))
    publisher = Publisher(origin)
    node = case.node(origin.url(), ttl=f"{TTL:g}s", log_level="info", **mount)
    with publisher, Readers(node, publisher, seed) as readers:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not readers.problems and not publisher.problems:
            time.sleep(0.2)
    case.assertEqual(readers.problems + publisher.problems, [], f"seed {seed}")
    facts = node.status()["mounts"][0]["passthrough"]
    counts = {**readers.counts, "passthrough_opens": facts["opens"],
              "versions_seen": sum(len(seen) for seen in readers.seen.values()),
              "versions": sum(len(known) for known in publisher.versions.values())}
    print(f"  seed {seed}: {counts}", flush=True)
    for name in NAMES:
        case.assertGreater(len(readers.seen[name]), seconds / 8, f"versions of {name} seen")
    node.settle()
    return counts
