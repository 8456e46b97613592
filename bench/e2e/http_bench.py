"""Side by side, round by round, the order turning over: the HTTP door and nginx, the server pinned
to one core and the load to another. Prints one table with ratios; see http.sh."""

import argparse

import rounds

SIDES = ("small", "large", "whole", "slice")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="http.sh", description=__doc__)
    rounds.add_arguments(parser, SIDES)
    parser.add_argument("--seconds", type=float, default=3, help="of wrk in each round")
    parser.add_argument("--connections", type=int, default=16, help="of wrk")
    return rounds.parse_arguments(parser, SIDES)


def sides_of(case, arguments):
    import http_sides
    root = rounds.make_tree(case, arguments.size)
    wanted = arguments.only
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


def header():
    from http_series import HEADER
    return HEADER


def main():
    arguments = parse_arguments()
    rounds.run(arguments, lambda case: sides_of(case, arguments),
               "server on core 0, load on core 1; dartfs with one event thread, nginx with one "
               "worker; ratios are dartfs over nginx, of medians", header)


if __name__ == "__main__":
    main()
