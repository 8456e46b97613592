"""Side by side, round by round, the order turning over: the HTTP door and nginx, the server pinned
to one core and the load to another. Prints one table with ratios; see http.sh."""

import argparse
import os
import sys
import tempfile

from mount_bench import TOP, parse_size

SIDES = ("small", "large", "whole", "slice")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="http.sh", description=__doc__)
    parser.add_argument("--size", default="1GiB", help="of the object, like 256MiB")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3, help="of wrk in each round")
    parser.add_argument("--connections", type=int, default=16, help="of wrk")
    parser.add_argument("--only", default=",".join(SIDES), help=f"of {','.join(SIDES)}")
    parser.add_argument("--build", default=os.path.join(TOP, "build", "release"))
    parser.add_argument("--dir", default=None, help="where cache and original lie")
    arguments = parser.parse_args()
    arguments.size = parse_size(arguments.size)
    unknown = [name for name in arguments.only.split(",") if name not in SIDES]
    if unknown:
        parser.error(f"--only knows {', '.join(SIDES)}, not {', '.join(unknown)}")
    return arguments


def sides_of(case, arguments):
    import http_sides
    import trees
    root = case.dir("tree")
    trees.write_random(os.path.join(root, "object"), arguments.size, 1)
    trees.age(root)
    wanted = arguments.only.split(",")
    sides = []
    if {"small", "large", "whole"} & set(wanted):
        warm = http_sides.WarmServers(case, root)
        makers = {"small": lambda: http_sides.Ranges(warm, arguments, 4 << 10),
                  "large": lambda: http_sides.Ranges(warm, arguments, 4 << 20),
                  "whole": lambda: http_sides.Whole(warm, arguments)}
        sides = [makers[name]() for name in makers if name in wanted]
    if "slice" in wanted:
        sides.append(http_sides.Slice(case, root, arguments))
    return sides


def main():
    arguments = parse_arguments()
    os.environ["DARTFS_BUILD_DIR"] = os.path.abspath(arguments.build)
    if arguments.dir:
        tempfile.tempdir = os.path.abspath(arguments.dir)
    import unittest
    from harness import Case

    class Bench(Case):
        limit = 24 * 3600

        def runTest(self):
            from http_series import HEADER
            sides = sides_of(self, arguments)
            for side in sides:
                for number in range(arguments.rounds):
                    side.one_round(number)
                    print(".", end="", flush=True)
            print(f"\n{arguments.size / 1e6:.0f} MB, {arguments.rounds} rounds, the order turns "
                  "over from round to round; server on core 0, load on core 1; dartfs with one "
                  "event thread, nginx with one worker; ratios are dartfs over nginx, of medians")
            for side in sides:
                print(f"\n{side.about}\n{HEADER}")
                for series, against in side.rows():
                    print(series.row(against))
                sys.stdout.flush()

    sys.exit(not unittest.TextTestRunner(verbosity=0).run(
        unittest.defaultTestLoader.suiteClass([Bench()])).wasSuccessful())


if __name__ == "__main__":
    main()
