#!/usr/bin/env python3
"""The long form of test_crash: crash_rounds.py [--rounds 200] [--seed N]."""

import argparse
import random
import sys
import time
import unittest

from crash import CrashRounds
from harness import Case, require_environment


class Long(Case):
    limit = 24 * 3600

    def runTest(self):
        began = time.monotonic()
        counts = CrashRounds(self, ARGUMENTS.seed).run(ARGUMENTS.rounds)
        counts["seconds"] = round(time.monotonic() - began)
        print(counts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    ARGUMENTS = parser.parse_args()
    require_environment()
    print(f"--rounds {ARGUMENTS.rounds} --seed {ARGUMENTS.seed}", flush=True)
    Long.setUpClass()
    result = unittest.TextTestRunner().run(Long())
    sys.exit(not result.wasSuccessful())
