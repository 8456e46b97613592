"""Side by side, round by round: a cold read through the mount and `curl -o FILE`, then a warm read
on a fresh mount and the bare file. Prints one table with ratios; see mount.sh."""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="mount.sh", description=__doc__)
    parser.add_argument("--size", default="1GiB", help="of the object, like 256MiB")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--server", choices=("nginx", "test-origin"), default="nginx")
    parser.add_argument("--build", default=os.path.join(TOP, "build", "release"))
    parser.add_argument("--dir", default=None, help="where cache, copy and original lie")
    return parser.parse_args()


def parse_size(text):
    number, unit = re.fullmatch(r"(\d+)\s*(|[KMG]i?B)", text).groups()
    powers = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9,
              "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    return int(number) * powers[unit]


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def process_seconds(pid):
    """Of a process and all its threads so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Series:
    """One way of moving the object's bytes: seconds and CPU seconds of each round."""

    def __init__(self, name, size):
        self.name, self.size = name, size
        self.rates, self.cpu = [], []

    def measure(self, command, node=None):
        before = children_seconds() + (process_seconds(node.pid) if node else 0)
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        after = children_seconds() + (process_seconds(node.pid) if node else 0)
        self.rates.append(self.size / seconds)
        self.cpu.append((after - before) / (self.size / 1e9))

    def row(self, against=None):
        best, median = max(self.rates), statistics.median(self.rates)
        row = f"{self.name:<34}{best / 1e6:>10.0f}{median / 1e6:>10.0f}"
        row += f"{statistics.median(self.cpu):>12.2f}"
        if against is not None:
            row += f"{best / max(against.rates):>12.2f}"
            row += f"{median / statistics.median(against.rates):>12.2f}"
        return row


class Bench:
    def __init__(self, case, arguments):
        from harness import BLOCK, run
        self.run, self.block = run, BLOCK
        self.case, self.rounds = case, arguments.rounds
        self.size = parse_size(arguments.size)
        root = case.dir("tree")
        self.original = os.path.join(root, "object")
        import trees
        trees.write_random(self.original, self.size, 1)
        trees.age(root)
        self.server = case.nginx(root) if arguments.server == "nginx" else case.origin(root)
        self.node = case.node(self.server.url(), start=False, log_level="info")
        self.copy = os.path.join(case.temp, "copy")
        self.curl = Series("curl -o FILE", self.size)
        self.cold = Series("cold through the mount", self.size)
        self.until_stored = Series("  until every block is stored", self.size)
        self.bare = Series("bare file, warm", self.size)
        self.warm = Series("fresh mount, backing file warm", self.size)

    def read(self, path):
        return ["dd", f"if={path}", "of=/dev/null", "bs=1M"]

    def one_round(self, number):
        first_the_mount = number % 2 == 1
        for mount in (first_the_mount, not first_the_mount):
            self.run("sync", "-f", self.case.temp, timeout=600)
            if mount:
                self.cold_mount()
            else:
                self.plain_curl()
        self.warm_pair(first_the_mount)

    def plain_curl(self):
        if os.path.exists(self.copy):
            os.unlink(self.copy)
        self.curl.measure(["curl", "-sf", "-o", self.copy, self.server.url("/object")])

    def cold_mount(self):
        self.stop()
        shutil.rmtree(self.node.cache, ignore_errors=True)
        self.node.start()
        self.cold.measure(self.read(self.node.path("object")), self.node)
        began = time.monotonic()
        while True:
            blocks = self.node.explain("object")["object"]["blocks"]
            waited = time.monotonic() - began
            if blocks["held"] == blocks["total"]:
                break
            if waited > 30:
                sys.exit(f"not every block is present: {blocks['held']} of {blocks['total']}")
        self.until_stored.rates.append(self.size / (self.size / self.cold.rates[-1] + waited))
        self.until_stored.cpu.append(self.cold.cpu[-1])

    def warm_pair(self, first_the_mount):
        self.node.settle()
        self.stop()
        backing = self.backing_file()
        for _ in range(2):
            subprocess.run(self.read(backing), check=True, stderr=subprocess.DEVNULL)
        self.node.start()
        os.stat(self.node.path("object"))
        for mount in (first_the_mount, not first_the_mount):
            if mount:
                self.warm.measure(self.read(self.node.path("object")), self.node)
            else:
                self.bare.measure(self.read(backing))

    def backing_file(self):
        import damage
        largest = max(damage.object_files(self.node.cache), key=os.path.getsize)
        self.run("cmp", largest, self.original)
        return largest

    def stop(self):
        if self.node.alive():
            self.node.stop()

    def report(self):
        status = self.node.status()
        print(f"\n{self.size / 1e6:.0f} MB, {self.rounds} rounds, order alternates; read by "
              f"dd bs=1M; cache and copy on one file system; {status['cache']['disk_io']}")
        print("cold: the server's file is in the page cache, the copy's and the cache's pages are "
              "new, nothing is synced in the timed part; warm: the backing file is in the page "
              "cache, the mount's own pages are new")
        print(f"{'':<34}{'best':>10}{'median':>10}{'CPU s/GB':>12}{'ratio':>12}{'ratio':>12}")
        print(f"{'':<34}{'MB/s':>10}{'MB/s':>10}{'median':>12}{'of best':>12}{'of median':>12}")
        print(self.curl.row())
        print(self.cold.row(self.curl))
        print(self.until_stored.row(self.curl))
        print(self.bare.row())
        print(self.warm.row(self.bare), flush=True)


def main():
    arguments = parse_arguments()
    os.environ["DARTFS_BUILD_DIR"] = arguments.build
    if arguments.dir:
        tempfile.tempdir = os.path.abspath(arguments.dir)
    import unittest
    from harness import Case

    class Side(Case):
        limit = 24 * 3600

        def runTest(self):
            bench = Bench(self, arguments)
            for number in range(arguments.rounds):
                bench.one_round(number)
                print(".", end="", flush=True)
            bench.report()

    sys.exit(not unittest.TextTestRunner(verbosity=0).run(
        unittest.defaultTestLoader.suiteClass([Side()])).wasSuccessful())


if __name__ == "__main__":
    main()
