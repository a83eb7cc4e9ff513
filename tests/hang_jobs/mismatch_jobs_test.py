"""Ranks that call something else than their peers: `lockstep hang` on real jobs of four ranks, live and from dumps."""

import unittest

from hang_jobs import HangJobsCase


class MismatchJobsTest(HangJobsCase):
    jobs = {"skips_collective": {}, "swaps_order": {}, "sizes_differ": {}, "dtypes_differ": {}}

    def test_a_skipped_collective(self):
        self.judge("skips_collective", "skipped_collective", [1], lines=("culprits", "victims"))

    def test_swapped_order(self):
        self.judge("swaps_order", "wrong_order", [1], lines=("culprits", "victims"))

    # Gloo aborts a rank that receives more than it asked for: one next to the culprit, and not the culprit.
    def test_other_sizes(self):
        self.judge("sizes_differ", "size_mismatch", [1], lines=("culprits",), without=(0,))

    def test_other_data_types(self):
        self.judge("dtypes_differ", "dtype_mismatch", [1], lines=("culprits",), without=(0,))


if __name__ == "__main__":
    unittest.main()
