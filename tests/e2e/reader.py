"""A process that reads, for tests that need more than one: reader.py HOW ... prints "ready", does
its work, and prints its findings as one line of JSON.

    compare PATH ORIGINAL SECONDS SEED   opens, reads here and there, closes, over and over
    signalled PATH ORIGINAL HOW          every 67th piece, so one or none of a block, in random
                                         order, at 1000 signals a second; HOW: read, direct, map
    looks FOLDER COUNT                   stat, open, fstat, read of f0, f1, ... at the same rate
    keep PATH OFFSET                     one byte; then keeps it open until a line comes on stdin,
                                         and tells how the next read ends
"""

import ctypes
import errno
import json
import mmap
import os
import random
import signal
import sys
import time

KIB = 1 << 10
PIECE = 64 * KIB


def compare(path, original, seconds, seed):
    dice = random.Random(int(seed))
    with open(original, "rb") as file:
        wanted = file.read()
    found = {"opens": 0, "bytes": 0, "errors": {}, "wrong": []}
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            _count(found["errors"], "open " + errno.errorcode[error.errno])
            continue
        found["opens"] += 1
        try:
            _compare_some(fd, wanted, dice, found)
        finally:
            os.close(fd)
        time.sleep(dice.choice((0, 0, 0.002, 0.02)))
    return found


def _compare_some(fd, wanted, dice, found):
    for _ in range(dice.randrange(1, 6)):
        offset = dice.randrange(len(wanted))
        length = dice.choice((1, 4 * KIB, 100 * KIB, 1024 * KIB))
        try:
            part = os.pread(fd, length, offset)
        except OSError as error:
            _count(found["errors"], "read " + errno.errorcode[error.errno])
            continue
        found["bytes"] += len(part)
        if part != wanted[offset:offset + length]:
            found["wrong"].append([offset, length])


def _count(counts, what):
    counts[what] = counts.get(what, 0) + 1


class Alarms:
    """SIGALRM a thousand times a second, handled, with calls interrupted where the kernel does."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        signal.signal(signal.SIGALRM, self._handle)
        signal.siginterrupt(signal.SIGALRM, False)  # SA_RESTART, as Go's SIGURG has it
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        return self

    def _handle(self, *_):
        self.count += 1

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)


def signalled(path, original, how):
    """The C library's own calls: Python would hide an EINTR."""
    true = os.open(original, os.O_RDONLY)
    size = os.fstat(true).st_size
    libc = ctypes.CDLL(None, use_errno=True)
    libc.pread.restype = ctypes.c_ssize_t
    libc.pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong)
    found = {"errors": {}, "wrong": [], "signals": 0, "seconds": 0.0, "calls": 0}
    offsets = [offset for offset in range(0, size, PIECE) if offset // PIECE % 67 == 0]
    found["calls"] = len(offsets)
    random.Random(3).shuffle(offsets)
    began = time.monotonic()
    with Alarms() as alarms:
        flags = os.O_RDONLY | (os.O_DIRECT if how == "direct" else 0)
        fd = libc.open(os.fsencode(path), flags)
        if fd < 0:
            _count(found["errors"], "open " + errno.errorcode[ctypes.get_errno()])
            return found
        buffer = mmap.mmap(-1, PIECE)  # aligned, for O_DIRECT
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        view = mmap.mmap(fd, size, access=mmap.ACCESS_READ) if how == "map" else None
        for offset in offsets:
            if view is not None:
                part = view[offset:offset + PIECE]
            else:
                got = libc.pread(fd, address, PIECE, offset)
                if got < 0:
                    _count(found["errors"], "pread " + errno.errorcode[ctypes.get_errno()])
                    continue
                part = buffer[:got]
            if part != os.pread(true, PIECE, offset):
                found["wrong"].append([offset, len(part)])
    found["signals"] = alarms.count
    found["seconds"] = time.monotonic() - began
    return found


def looks(folder, count):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.access.argtypes = (ctypes.c_char_p, ctypes.c_int)
    found = {"errors": {}, "wrong": [], "signals": 0, "seconds": 0.0}
    began = time.monotonic()
    with Alarms() as alarms:
        for i in range(int(count)):
            path = os.fsencode(os.path.join(folder, f"f{i}"))
            fd = -1
            if libc.access(path, os.R_OK) != 0:
                _count(found["errors"], "access " + errno.errorcode[ctypes.get_errno()])
            else:
                fd = libc.open(path, os.O_RDONLY)
            if fd < 0:
                _count(found["errors"], "open " + errno.errorcode[ctypes.get_errno()])
                continue
            if os.fstat(fd).st_size != 1000 + i or len(os.pread(fd, 5000, 0)) != 1000 + i:
                found["wrong"].append(i)
            os.close(fd)
    found["signals"] = alarms.count
    found["seconds"] = time.monotonic() - began
    return found


def keep(path, offset):
    fd = os.open(path, os.O_RDONLY)
    os.pread(fd, 1, int(offset))
    print("open", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        ended = len(os.pread(fd, 4 * KIB, 0))
    except OSError as error:
        ended = errno.errorcode[error.errno]
    try:
        os.close(fd)
    except OSError:
        pass  # closed all the same
    return {"ended": ended, "seconds": time.monotonic() - began}


def main(arguments):
    ways = {"compare": compare, "signalled": signalled, "looks": looks, "keep": keep}
    work = ways[arguments[0]]
    print("ready", flush=True)
    print(json.dumps(work(*arguments[1:])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
