"""The long form of test_replace: replace_soak.py --minutes 10 [--seed N] [--fill all]
[--passthrough off]."""

import argparse
import random
import sys
import unittest

import replace
from harness import Case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    parser.add_argument("--fill", default="auto")
    parser.add_argument("--passthrough", default="auto")
    parser.add_argument("--rate", default="60MB", help="of a connection")
    parser.add_argument("--cache-size", default="1GiB")
    arguments = parser.parse_args()

    class Soak(Case):
        limit = arguments.minutes * 60 + 120

        def test(self):
            replace.soak(self, arguments.minutes * 60, arguments.seed, fill=arguments.fill,
                         passthrough=arguments.passthrough, rate=arguments.rate,
                         cache_size=arguments.cache_size)

    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Soak))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
