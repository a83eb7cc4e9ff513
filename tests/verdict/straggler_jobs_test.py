"""Whom `lockstep analyze` names in random jobs with one planted cause of waiting, or none: 2 to 64 ranks, data, tensor, pipeline and sharded parallel, clocks
that differ, kernels and batches that vary."""

import os
import unittest

import straggler_jobs


class StragglerJobsTest(unittest.TestCase):
    def check(self, count, seed):
        tally = straggler_jobs.Tally()
        for job, answer, result in straggler_jobs.campaign(count, seed, os.cpu_count()):
            tally.add(job, answer, result)
            if result != "right" and (result == "wrong" or straggler_jobs.can_be_told(answer)):
                print(straggler_jobs.describe(job, answer, result), flush=True)
        print(tally.text(), flush=True)
        self.assertLessEqual(100 * tally.count("wrong"), count, "innocent ranks")
        healthy = tally.count("right", "healthy") + tally.count("wrong", "healthy")
        self.assertLessEqual(tally.count("wrong", "healthy"), max(1, healthy // 100), "healthy jobs that name a rank")
        told = ("chronic", "one_off", "periodic", "link")
        right = tally.count("right", *told)
        self.assertGreaterEqual(right, int(0.98 * (right + tally.count("silent", *told) + tally.count("wrong", *told))), "culprits named")
        self.assertGreater(right, count // 4)

    def test_some_jobs(self):
        self.check(100, seed=7)

    def test_many_jobs(self):
        self.check(600, seed=8)


if __name__ == "__main__":
    unittest.main()
