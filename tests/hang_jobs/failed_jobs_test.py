"""Ranks that are stopped, killed, or raise while their peers wait: real jobs, live and from dumps."""

import unittest

from hang_jobs import HangJobsCase


class FailedJobsTest(HangJobsCase):
    jobs = {"stopped": {}, "killed": {}, "raises": {}}

    def test_a_stopped_rank(self):
        self.judge("stopped", "stuck_outside_collective", [1], lines=("victims",), without=(1,))

    def test_a_killed_rank(self):
        self.judge("killed", "crash", [1], lines=("victims",), without=(1,))

    def test_a_rank_that_raises(self):
        self.judge("raises", "crash", [1], lines=("culprits", "victims"))


if __name__ == "__main__":
    unittest.main()
