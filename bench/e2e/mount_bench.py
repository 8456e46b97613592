"""Side by side, round by round, the order turning over: the mount beside curl and the bare file.
Prints one table with ratios; see mount.sh."""

import argparse

import rounds

SIDES = ("cold", "warm", "slow", "threads")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="mount.sh", description=__doc__)
    rounds.add_arguments(parser, SIDES)
    parser.add_argument("--server", choices=("nginx", "test-origin"), default="nginx",
                        help="of the cold side")
    return rounds.parse_arguments(parser, SIDES)


def sides_of(case, arguments):
    import sides
    root = rounds.make_tree(case, arguments.size)
    classes = {"cold": sides.Cold, "warm": sides.Warm, "slow": sides.Slow,
               "threads": sides.Threads}
    return [classes[name](case, root, arguments) for name in arguments.only]


def header():
    from series import HEADER
    return HEADER


def main():
    arguments = parse_arguments()
    rounds.run(arguments, lambda case: sides_of(case, arguments),
               "cache and copy on one file system", header)


if __name__ == "__main__":
    main()
