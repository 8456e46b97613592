"""What every node of a cluster must compute alike, written down a second time: from the protocol's
text, with the standard library alone, sharing nothing with the programs.

reference.py KIND SEED COUNT prints COUNT random cases of KIND, a line each: fields separated by
tabs, the inputs first, the result last. IDs and names hold no tab.
"""

import math
import random
import struct
import sys

MASK = 2**64 - 1


def fnv1a(data):
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) & MASK
    return value


def fmix64(z):
    z ^= z >> 33
    z = (z * 0xff51afd7ed558ccd) & MASK
    z ^= z >> 33
    z = (z * 0xc4ceb9fe1a85ec53) & MASK
    return z ^ (z >> 33)


def node_hash(key, node):
    return fmix64(fnv1a(struct.pack("<Q", key) + node.encode()))


def chunk_key(namespace, name, index):
    fields = namespace.encode() + b"\x1f" + name.encode() + b"\x1f"
    return fmix64(fnv1a(fields + struct.pack(">q", index)))


def epoch(members):
    """Of (ID, weight) pairs with IDs that differ."""
    data = b""
    for node, weight in sorted(members):
        data += node.encode() + b"\x1f" + struct.pack(">d", weight) + b"\x1e"
    return fmix64(fnv1a(data))


def rank(key, members):
    """IDs, the first in rank first. Equal weights: by the hashes themselves."""
    weights = {weight if weight > 0 else 1.0 for _, weight in members}
    if len(weights) == 1:
        return [n for _, n in sorted((-node_hash(key, node), node) for node, _ in members)]

    def score(member):
        node, weight = member
        u = (float(node_hash(key, node)) + 0.5) / 2**64
        return (weight if weight > 0 else 1.0) / -math.log(u)

    return [node for node, _ in sorted(members, key=lambda m: (-score(m), m[0]))]


def parents(size, fanout):
    """The parent of each position of the preorder tree, by cutting the list again and again."""
    found = [-1] * size

    def cut(root, rest):
        count = min(fanout, len(rest))
        at = 0
        for i in range(count):
            length = len(rest) // count + (1 if i < len(rest) % count else 0)
            segment = rest[at:at + length]
            at += length
            found[segment[0]] = root
            cut(segment[0], segment[1:])

    sys.setrecursionlimit(size + 1000)
    cut(0, list(range(1, size)))
    return found


def word(source, least=1, most=24, letters=None):
    letters = letters or [chr(c) for c in range(0x21, 0x7f)]
    return "".join(source.choice(letters) for _ in range(source.randint(least, most)))


def members(source, most):
    names = {word(source) for _ in range(source.randint(1, most))}
    weights = source.choice([[1.0], [1.0, 2.0], [0.0, 1.0, 2.5, 4.0], [source.random() + 0.1]])
    return [(name, source.choice(weights)) for name in sorted(names)]


def text_of(some):
    return " ".join(f"{node} {struct.pack('>d', weight).hex()}" for node, weight in some)


def case(kind, source):
    if kind == "node":
        key, node = source.getrandbits(64), word(source)
        return key, node, node_hash(key, node)
    if kind == "chunk":
        space, name = word(source), "https://" + word(source) + "/" + word(source, most=80)
        index = source.choice([-1, 0, source.randint(0, 2**20), source.randint(0, 2**63 - 1)])
        return space, name, index, chunk_key(space, name, index)
    if kind == "epoch":
        some = members(source, 12)
        return text_of(some), epoch(some)
    if kind == "rank":
        key, some = source.getrandbits(64), members(source, 12)
        return key, text_of(some), " ".join(rank(key, some))
    if kind == "parents":
        size, fanout = source.randint(1, 60), source.randint(1, 9)
        return size, fanout, " ".join(map(str, parents(size, fanout)))
    raise SystemExit(f"reference.py: no kind {kind}")


def main():
    kind, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    source = random.Random(seed)
    for _ in range(count):
        print(*case(kind, source), sep="\t")


if __name__ == "__main__":
    main()
