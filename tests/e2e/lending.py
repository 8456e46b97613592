"""Files that the kernel reads by itself (passthrough), seen from outside: whether an open was
answered so, and reads of what is on the disk rather than in the page cache."""

import hashlib
import os
import random
import time

from harness import MIB, SLOW


def facts(node):
    """{"state", "files", "opens"} of the node's one mount."""
    return node.status()["mounts"][0]["passthrough"]


def reads(node):
    """How many READ requests have reached the node."""
    requests = node.status()["mounts"][0]["requests"]
    return requests.get("read", 0) + requests.get("read_deferred", 0)


def require(case, node):
    """Skips the test where this kernel has no passthrough at all; any other reason is a failure."""
    state = facts(node)["state"]
    if "the kernel has none" in state:
        case.skipTest(state)
    case.assertEqual(state, "on")


def open_lent(node, *names, timeout=30):
    """A descriptor that the kernel reads by itself: opened again and again, as the file's check
    takes a moment."""
    deadline = time.monotonic() + timeout * SLOW
    while True:
        before = facts(node)["opens"]
        fd = os.open(node.path(*names), os.O_RDONLY)
        if facts(node)["opens"] > before:
            return fd
        os.close(fd)
        if time.monotonic() > deadline:
            raise AssertionError(f"{names}: no open was answered with passthrough")
        time.sleep(0.05)


def drop_pages(*descriptors):
    """What is read next comes from the file, not from the page cache."""
    os.sync()
    for fd in descriptors:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3\n")


def digest_of(fd, size, piece=MIB):
    """Of the whole file through a descriptor, without asking for its attributes."""
    digest = hashlib.sha256()
    offset = 0
    while offset < size:
        part = os.pread(fd, piece, offset)
        if not part:
            raise AssertionError(f"ends at {offset} of {size}")
        digest.update(part)
        offset += len(part)
    return digest.hexdigest()


def digest_of_mapping(view, seed=1, piece=64 << 10):
    """Faults the pages in in random order, then takes the digest of all."""
    offsets = list(range(0, len(view), piece))
    random.Random(seed).shuffle(offsets)
    for offset in offsets:
        view[offset]
    digest = hashlib.sha256()
    for offset in range(0, len(view), MIB):
        digest.update(view[offset:offset + MIB])
    return digest.hexdigest()


def disk_bytes_read():
    """By this process so far, from a disk; page cache and memory file systems do not count."""
    with open("/proc/self/io") as file:
        for line in file:
            if line.startswith("read_bytes:"):
                return int(line.split()[1])
    return 0


def on_a_disk(path):
    """Whether reads of it count as above."""
    return os.major(os.stat(path).st_dev) != 0


def allocated(folder):
    """Bytes that the files below take of the disk; files that go meanwhile do not count."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total
