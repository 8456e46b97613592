#!/usr/bin/env python3
"""The long form of test_flips: index_flips.py [--runs 400] [--seed N]."""

import argparse
import random
import sys
import unittest

from flips import IndexFlips
from harness import Case, require_environment


class Long(Case):
    limit = 24 * 3600

    def runTest(self):
        print(IndexFlips(self, ARGUMENTS.seed).run(ARGUMENTS.runs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    ARGUMENTS = parser.parse_args()
    require_environment()
    print(f"--runs {ARGUMENTS.runs} --seed {ARGUMENTS.seed}", flush=True)
    Long.setUpClass()
    result = unittest.TextTestRunner().run(Long())
    sys.exit(not result.wasSuccessful())
