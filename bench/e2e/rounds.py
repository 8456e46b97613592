"""What the comparisons share: where they find things, sizes, and the rounds themselves."""

import os
import re
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))


def parse_size(text):
    number, unit = re.fullmatch(r"(\d+)\s*(|[KMG]i?B)", text).groups()
    powers = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9,
              "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    return int(number) * powers[unit]


def add_arguments(parser, sides):
    parser.add_argument("--size", default="1GiB", help="of the object, like 256MiB")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default=",".join(sides), help=f"of {','.join(sides)}")
    parser.add_argument("--build", default=os.path.join(TOP, "build", "release"))
    parser.add_argument("--dir", default=None, help="where the data lie")


def parse_arguments(parser, sides):
    """With `size` as a number and `only` as a list of names that are all known."""
    arguments = parser.parse_args()
    arguments.size = parse_size(arguments.size)
    arguments.only = arguments.only.split(",")
    unknown = [name for name in arguments.only if name not in sides]
    if unknown:
        parser.error(f"--only knows {', '.join(sides)}, not {', '.join(unknown)}")
    return arguments


def make_tree(case, size):
    """A directory with `object`, of random bytes, not new."""
    import trees
    root = case.dir("tree")
    trees.write_random(os.path.join(root, "object"), size, 1)
    trees.age(root)
    return root


def run(arguments, sides_of, about, header):
    """Each side of sides_of(case) for all rounds, then the tables; ends the process."""
    os.environ["DARTFS_BUILD_DIR"] = os.path.abspath(arguments.build)
    if arguments.dir:
        tempfile.tempdir = os.path.abspath(arguments.dir)
    import unittest
    from harness import Case

    class Bench(Case):
        limit = 24 * 3600

        def runTest(self):
            sides = sides_of(self)
            for side in sides:
                for number in range(arguments.rounds):
                    side.one_round(number)
                    print(".", end="", flush=True)
                side.end()
            print(f"\n{arguments.size / 1e6:.0f} MB, {arguments.rounds} rounds, the order turns "
                  f"over from round to round; {about}")
            for side in sides:
                print(f"\n{side.about}\n{header()}")
                for series, against in side.rows():
                    print(series.row(against))
                sys.stdout.flush()

    sys.exit(not unittest.TextTestRunner(verbosity=0).run(
        unittest.defaultTestLoader.suiteClass([Bench()])).wasSuccessful())
