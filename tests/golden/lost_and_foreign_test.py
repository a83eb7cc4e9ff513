#!/usr/bin/env python3
"""Traces as people have them: times and correlations that a profiler lost cost no finding, and other programs' formats are refused in a sentence. Inputs and
what is right of them: the shared cases."""

import unittest

import analyze_program as lockstep


def case(name):
    return lockstep.data_path("..", "cases", name)


class LostTest(unittest.TestCase):
    def check(self, name, code, count):
        """Rank 1 is the straggler; what it computes is 4 % above the mean of the two."""
        answer = lockstep.analyze(case(name))
        self.assertEqual(answer.status, lockstep.DONE, answer.error_text)
        self.assertEqual(answer.finding("straggler")["ranks"], [1])
        self.assertAlmostEqual(answer.data["imbalance"]["compute_ns"]["ratio"], 0.04)
        self.assertEqual([row["count"] for row in answer.ledger if row["code"] == code], count)

    def test_times_at_zero_are_set_aside(self):
        self.check("analyze_kernel_at_time_zero", "lost_times", [3])

    def test_a_kernel_that_ends_a_week_later_is_set_aside(self):
        self.check("analyze_kernel_a_week_long", "lost_times", [1])

    def test_kernels_without_correlation_are_joined_by_order(self):
        self.check("analyze_rocm_correlation_zero", "guessed_correlations", [6, 6])


class ForeignTest(unittest.TestCase):
    def test_what_is_not_read_is_named(self):
        for name, word in (("analyze_ascend_profiler", "Ascend's profiler"), ("analyze_merged_ranks", "[TP00]"),
                           ("analyze_legacy_autograd", "torch.autograd.profiler")):
            with self.subTest(name):
                done = lockstep.run(["analyze", case(name)])
                self.assertEqual(done.returncode, lockstep.FAILED, done.stdout)
                self.assertIn(word, done.stderr.decode())
                self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
