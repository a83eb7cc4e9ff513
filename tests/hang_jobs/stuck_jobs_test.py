"""Ranks that wait, for each other or outside communication, and ranks that do not: real jobs, live and from dumps."""

import unittest

from hang_jobs import HangJobsCase


class StuckJobsTest(HangJobsCase):
    jobs = {"sleeps_in_loader": {}, "crosswise_deadlock": {}, "send_without_receive": {}, "slow_rank": {"keeps_on": True},
            "healthy": {"keeps_on": True, "steps": 300}}  # One delay of few steps makes a straggler.

    def test_a_rank_asleep_in_its_data_loader(self):
        self.judge("sleeps_in_loader", "stuck_outside_collective", [1], lines=("culprits", "victims"))

    def test_two_groups_used_crosswise(self):
        self.judge("crosswise_deadlock", "deadlock", [1], lines=("culprits", "victims"))

    def test_a_send_that_nobody_receives(self):
        self.judge("send_without_receive", "unmatched_p2p", [1], lines=("culprits", "victims"))

    def test_a_slow_rank_is_not_stuck(self):
        self.judge("slow_rank", "straggler", [1])

    def test_a_healthy_job(self):
        self.judge("healthy", "healthy", [])


if __name__ == "__main__":
    unittest.main()
