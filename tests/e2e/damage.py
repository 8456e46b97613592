"""Damage to a cache directory whose node is stopped, as disks and power cuts do it."""

import os
import random

from harness import BLOCK, GRANULE, KIB


def object_files(cache):
    found = []
    for folder, _, files in os.walk(os.path.join(cache, "objects")):
        found += [os.path.join(folder, name) for name in files]
    return sorted(found)


def index_file(cache):
    return os.path.join(cache, "index", "data.mdb")


def data_extents(path):
    """(start, end) of what is not a hole."""
    extents = []
    fd = os.open(path, os.O_RDONLY)
    try:
        end, size = 0, os.fstat(fd).st_size
        while end < size:
            try:
                start = os.lseek(fd, end, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(fd, start, os.SEEK_HOLE)
            extents.append((start, end))
    finally:
        os.close(fd)
    return extents


def granules(path):
    """(start, length) of the granules of all blocks that have data. A block that is smaller than a
    page less than its length counts: the file's length is the object's."""
    size = os.path.getsize(path)
    found = []
    for start, end in data_extents(path):
        at = start - start % GRANULE
        while at < min(end, size):
            if (at, min(GRANULE, size - at)) not in found[-1:]:
                found.append((at, min(GRANULE, size - at)))
            at += GRANULE
    return found


def flip_bit(path, offset, bit):
    with open(path, "r+b", buffering=0) as file:
        byte = os.pread(file.fileno(), 1, offset)
        os.pwrite(file.fileno(), bytes([byte[0] ^ (1 << bit)]), offset)


def flip_every_granule(cache, seed):
    """One bit of each; how many."""
    dice = random.Random(seed)
    count = 0
    for path in object_files(cache):
        for start, length in granules(path):
            flip_bit(path, start + dice.randrange(length), dice.randrange(8))
            count += 1
    return count


def lose_pages(cache, seed, share=0.05):
    """As after power loss without the writes: pages zeroed, torn in the middle, or of another
    file's content. Returns (block, path) pairs that were hit."""
    dice = random.Random(seed)
    hit = set()
    for path in object_files(cache):
        size = os.path.getsize(path)
        pages = [page for start, end in data_extents(path)
                 for page in range(start, min(end, size), 4 * KIB)]
        for page in dice.sample(pages, max(1, int(len(pages) * share)) if pages else 0):
            length = min(4 * KIB, size - page)
            how = dice.randrange(3)
            with open(path, "r+b", buffering=0) as file:
                if how == 0:
                    os.pwrite(file.fileno(), bytes(length), page)
                elif how == 1:
                    os.pwrite(file.fileno(), dice.randbytes((length + 1) // 2), page)
                else:
                    os.pwrite(file.fileno(), dice.randbytes(length), page)
            hit.add((path, page // BLOCK))
    return hit


def cut(path, keep):
    os.truncate(path, keep)
