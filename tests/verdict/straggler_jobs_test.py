"""Whom `lockstep analyze` names in random jobs with one planted cause of waiting, or none: 2 to 64 ranks, data, tensor, pipeline and sharded parallel, clocks
that differ, kernels and batches that vary."""

import os
import unittest

import straggler_jobs


class StragglerJobsTest(unittest.TestCase):
    def grade(self, count, seed, all_recorded=True):
        tally = straggler_jobs.Tally()
        for job, answer, result in straggler_jobs.campaign(count, seed, os.cpu_count(), all_recorded):
            tally.add(job, answer, result)
            if result != "right" and (result == "wrong" or straggler_jobs.can_be_told(job, answer)):
                print(straggler_jobs.describe(job, answer, result), flush=True)
        print(tally.text(), flush=True)
        return tally

    def check(self, count, seed):
        tally = self.grade(count, seed)
        self.assertLessEqual(100 * tally.count("wrong"), count, "innocent ranks")
        healthy = tally.count("right", "healthy") + tally.count("wrong", "healthy")
        self.assertLessEqual(tally.count("wrong", "healthy"), max(1, healthy // 100), "healthy jobs that name a rank")
        told = ("chronic", "one_off", "periodic", "link")
        right = tally.count("right", *told)
        self.assertGreaterEqual(right, int(0.98 * (right + tally.count("silent", *told) + tally.count("wrong", *told))), "culprits named")
        self.assertGreater(right, count // 4)

    def check_some_recorded(self, count, seed):
        tally = self.grade(count, seed, all_recorded=False)
        self.assertLessEqual(100 * tally.count("wrong"), count, "innocent ranks")
        told = ("chronic", "one_off", "periodic")  # a link only where the traces of both its ends are there
        right = tally.count("right", *told)
        self.assertGreaterEqual(right, int(0.9 * (right + tally.count("silent", *told) + tally.count("wrong", *told))), "culprits named")
        self.assertGreater(right, count // 10)

    def test_some_jobs_of_which_some_ranks_are_recorded(self):
        self.check_some_recorded(100, seed=9)

    def test_many_jobs_of_which_some_ranks_are_recorded(self):
        self.check_some_recorded(600, seed=10)

    def test_some_jobs(self):
        self.check(100, seed=7)

    def test_many_jobs(self):
        self.check(600, seed=8)


if __name__ == "__main__":
    unittest.main()
