"""How soon a node is ready whose cache index names a million blocks; see start.sh."""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
NAMES = 1000


def parse_arguments():
    parser = argparse.ArgumentParser(prog="start.sh", description=__doc__)
    parser.add_argument("--objects", type=int, default=250_000, help="of four blocks each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default=os.path.join(TOP, "build", "release"))
    parser.add_argument("--dir", default="/var/tmp", help="where the cache lies")
    return parser.parse_args()


def one_start(node, names):
    """Seconds until it is mounted, and until all stats are answered."""
    began = time.monotonic()
    node.start()
    mounted = time.monotonic()
    for name in names:
        assert os.stat(node.path(name)).st_size == len(name)
    return mounted - began, time.monotonic() - began


def measure(case, arguments):
    root = case.dir("tree")
    for number in range(NAMES):
        name = f"file-{number}"
        with open(os.path.join(root, name), "w") as file:
            file.write("x" * len(name))
    origin = case.origin(root, index="json")
    cache = os.path.join(case.temp, "cache")
    make = os.path.join(arguments.build, "bench", "make_index")
    subprocess.run([make, cache, str(arguments.objects)], check=True)
    kept = os.path.join(case.temp, "kept")
    shutil.copytree(cache, kept)
    node = case.node(origin.url(), start=False, cache=cache, cache_size="16TiB", log_level="info")
    names = [f"file-{number}" for number in range(NAMES)]
    for state in ("stopped", "killed"):
        seconds = []
        for _ in range(arguments.rounds):
            shutil.rmtree(cache)
            shutil.copytree(kept, cache)
            if state == "killed":
                os.unlink(os.path.join(cache, "index", "seal"))
            random.shuffle(names)
            seconds.append(one_start(node, names))
            assert node.status()["cache"]["blocks"] == 4 * arguments.objects
            node.stop()
        for what, index in (("mounted", 0), (f"{NAMES} stats answered", 1)):
            values = [each[index] for each in seconds]
            print(f"{state + ', ' + what:<40}{min(values):>8.2f} s best"
                  f"{statistics.median(values):>8.2f} s median", flush=True)


def main():
    arguments = parse_arguments()
    os.environ["DARTFS_BUILD_DIR"] = os.path.abspath(arguments.build)
    tempfile.tempdir = os.path.abspath(arguments.dir)
    import unittest
    from harness import Case

    class Bench(Case):
        limit = 24 * 3600

        def runTest(self):
            print(f"{4 * arguments.objects} blocks in the index, its file in the page cache")
            measure(self, arguments)

    sys.exit(not unittest.TextTestRunner(verbosity=0).run(
        unittest.defaultTestLoader.suiteClass([Bench()])).wasSuccessful())


if __name__ == "__main__":
    main()
