"""Eight ranks, another culprit: that verdicts do not hang on the number of ranks or on which one it is."""

import unittest

from hang_jobs import HangJobsCase

EIGHT = {"ranks": 8, "fault_rank": 5}


class LargeJobsTest(HangJobsCase):
    jobs = {"skips_collective": EIGHT, "send_without_receive": EIGHT, "raises": EIGHT}

    def test_a_skipped_collective(self):
        self.judge("skips_collective", "skipped_collective", [5], lines=("culprits", "victims"))

    def test_a_send_that_nobody_receives(self):
        self.judge("send_without_receive", "unmatched_p2p", [5], lines=("culprits", "victims"))

    def test_a_rank_that_raises(self):
        self.judge("raises", "crash", [5], lines=("culprits", "victims"))


if __name__ == "__main__":
    unittest.main()
