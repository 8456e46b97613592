"""A memory control group of its own, of version 1 or 2, whichever the machine has."""

import os
import tempfile

from harness import wait_until


def _mounted(kind, option=None):
    """Where a hierarchy is mounted, or None."""
    with open("/proc/self/mountinfo") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            fields = right.split()
            if fields[0] == kind and (option is None or option in fields[2].split(",")):
                return left.split()[4]
    return None


class MemoryGroup:
    """Processes in it may use `limit` bytes together, page cache included."""

    def __init__(self, case, limit):
        self.old = _mounted("cgroup", "memory")
        top = self.old or _mounted("cgroup2")
        own = self._own_group(top)
        if top is None or not self._can_limit(own):
            case.skipTest("no memory control group can be made here")
        self.path = tempfile.mkdtemp(prefix="dartfs-e2e-", dir=own)
        self.parent = own
        case.addCleanup(self.remove)
        self._write("memory.limit_in_bytes" if self.old else "memory.max", limit)

    def _own_group(self, top):
        """Ours, so that the path a container sees is the right one, or the topmost."""
        with open("/proc/self/cgroup") as file:
            for line in file:
                _, names, path = line.rstrip("\n").split(":", 2)
                if ("memory" in names.split(",")) == bool(self.old) and top is not None:
                    if os.path.isdir(top + path) and (self.old or names == ""):
                        return os.path.normpath(top + path)
        return top

    def _can_limit(self, own):
        if self.old:
            return os.access(own, os.W_OK)
        with open(os.path.join(own, "cgroup.subtree_control")) as file:
            return "memory" in file.read().split()

    def _write(self, name, value, path=None):
        with open(os.path.join(path or self.path, name), "w") as file:
            file.write(str(value))

    def _read(self, name):
        with open(os.path.join(self.path, name)) as file:
            return file.read()

    def join(self):
        """This process, and what it starts from now on."""
        self._write("cgroup.procs", os.getpid())

    def leave(self):
        self._write("cgroup.procs", os.getpid(), self.parent)

    def __enter__(self):
        self.join()
        return self

    def __exit__(self, *_):
        self.leave()

    def kills(self):
        """How many processes the kernel has killed for want of memory."""
        name = "memory.oom_control" if self.old else "memory.events"
        facts = dict(line.split() for line in self._read(name).splitlines())
        return int(facts["oom_kill"])

    def remove(self):
        wait_until(lambda: not self._read("cgroup.procs").split(), 20, "the group is empty")
        os.rmdir(self.path)
