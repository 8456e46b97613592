"""Objects that are replaced every second under eight readers: never a mix of two versions. Long
form: replace_soak.py."""

import os
import random

import lending
import replace
from harness import Case, main, sized

SECONDS = sized(10, 20)


class Replaced(Case):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("DARTFS_SEED", random.SystemRandom().randrange(1 << 20)))

    def test_complete_versions_are_lent(self):
        counts = replace.soak(self, SECONDS, self.seed)
        self.assertGreater(counts["again"], 0)
        node = self.nodes[0]
        lending.require(self, node)
        self.assertGreater(counts["passthrough_opens"], 0, "some versions were read by the kernel")

    def test_everything_opened_is_completed(self):
        """Fills of a version under way while the next one comes."""
        replace.soak(self, SECONDS, self.seed, fill="all", passthrough="off", rate="20MB")


if __name__ == "__main__":
    main()
