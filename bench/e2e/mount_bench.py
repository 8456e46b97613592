"""Side by side, round by round, the order turning over: the mount beside curl and the bare file.
Prints one table with ratios; see mount.sh."""

import argparse
import os
import re
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))

SIDES = ("cold", "warm", "slow", "threads")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="mount.sh", description=__doc__)
    parser.add_argument("--size", default="1GiB", help="of the object, like 256MiB")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--server", choices=("nginx", "test-origin"), default="nginx",
                        help="of the cold side")
    parser.add_argument("--only", default=",".join(SIDES), help=f"of {','.join(SIDES)}")
    parser.add_argument("--build", default=os.path.join(TOP, "build", "release"))
    parser.add_argument("--dir", default=None, help="where cache, copy and original lie")
    return parser.parse_args()


def parse_size(text):
    number, unit = re.fullmatch(r"(\d+)\s*(|[KMG]i?B)", text).groups()
    powers = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9,
              "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    return int(number) * powers[unit]


def sides_of(case, arguments):
    import sides
    import trees
    root = case.dir("tree")
    trees.write_random(os.path.join(root, "object"), parse_size(arguments.size), 1)
    trees.age(root)
    classes = {"cold": sides.Cold, "warm": sides.Warm, "slow": sides.Slow,
               "threads": sides.Threads}
    names = arguments.only.split(",")
    unknown = [name for name in names if name not in classes]
    if unknown:
        sys.exit(f"mount.sh: --only knows {', '.join(SIDES)}, not {', '.join(unknown)}")
    return [classes[name](case, root, arguments) for name in names]


def main():
    arguments = parse_arguments()
    os.environ["DARTFS_BUILD_DIR"] = os.path.abspath(arguments.build)
    if arguments.dir:
        tempfile.tempdir = os.path.abspath(arguments.dir)
    import unittest
    from harness import Case
    from series import HEADER

    class Bench(Case):
        limit = 24 * 3600

        def runTest(self):
            sides = sides_of(self, arguments)
            for side in sides:
                for number in range(arguments.rounds):
                    side.one_round(number)
                    print(".", end="", flush=True)
                side.end()
            print(f"\n{parse_size(arguments.size) / 1e6:.0f} MB, {arguments.rounds} rounds, the "
                  "order turns over from round to round; cache and copy on one file system")
            for side in sides:
                print(f"\n{side.about}\n{HEADER}")
                for series, against in side.rows():
                    print(series.row(against))
                sys.stdout.flush()

    sys.exit(not unittest.TextTestRunner(verbosity=0).run(
        unittest.defaultTestLoader.suiteClass([Bench()])).wasSuccessful())


if __name__ == "__main__":
    main()
