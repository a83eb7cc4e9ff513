"""What-if by doing: the step that `lockstep analyze` foretells without the slow rank, against the job run without it."""

import statistics
import unittest

from example_job import ExampleJobTest
from lockstep_program import analyze_json, finding

# Two ranks: on a machine of two processors more of them would share one, and be quicker while another sleeps.
RANKS = 2
SLOW_RANK = 1
JOB = ("--batch", "16", "--length", "128", "--active-steps", "8")
MOST_ROUNDS = 6
SAME_SPEED = 0.05
ENOUGH_PAIRS = 3
TOLERANCE = 0.10
MOST_CHANCE = 0.03  # Of the tolerance: what the pairs' spread leaves open.
OWN_ERROR = 0.02  # Of the simulation, where nothing is changed.


class Recording:
    """What a recorded job says: its step, the step foretold without the slow rank, and how fast the machine was."""

    def __init__(self, folder):
        report = analyze_json(folder, "--what-if")
        what_if = report["data"]["what_if"]
        levers = {lever["id"]: lever for lever in what_if["levers"]}
        self.report = report
        self.step_ns = what_if["observed_step_ns"]
        self.simulated_step_ns = what_if["simulated_step_ns"]  # Off by its own error.
        self.own_error = what_if["error_ratio"]
        self.without_ns = levers[f"rank_at_median:{SLOW_RANK}"]["step_ns"]
        # Rank 0 does the same work in both jobs.
        self.work_ns = next(row["compute_ns"] for row in report["data"]["breakdown"] if row["rank"] == 0)


def margin_of(values):
    """How far chance may have moved their mean: twice its standard error."""
    return 2 * statistics.stdev(values) / len(values) ** 0.5


class WhatIfTest(ExampleJobTest):
    def run_job(self, name, *options):
        return Recording(self.record(name, *JOB, *options, ranks=RANKS))

    def test_the_step_without_the_slow_rank_is_as_foretold(self):
        slow, even = [], []
        for number in range(MOST_ROUNDS):
            slow.append(self.run_job(f"slow{number}", "--slow-rank", str(SLOW_RANK), "--slow-ms", "150"))
            even.append(self.run_job(f"even{number}", "--slow-rank", str(RANKS)))
            pairs = [(a, b) for a in slow for b in even if abs(a.work_ns / b.work_ns - 1) < SAME_SPEED]
            errors = [with_it.without_ns / without.step_ns - 1 for with_it, without in pairs]
            if len(pairs) >= ENOUGH_PAIRS and margin_of(errors) < MOST_CHANCE:
                break
        else:
            self.skipTest(f"this machine's speed changes from run to run: of {MOST_ROUNDS ** 2} pairs of jobs "
                          f"{len(pairs)} did the same work in the same time, their errors: {errors}")
        for with_it, without in pairs:
            print(f"with the slow rank {with_it.step_ns / 1e6:.1f} ms, foretold without {with_it.without_ns / 1e6:.1f} ms, "
                  f"measured without {without.step_ns / 1e6:.1f} ms")
            self.assertGreater(with_it.step_ns, 1.5 * without.step_ns)
            self.assertLess(with_it.own_error, OWN_ERROR)
            straggler = finding(with_it.report, "straggler")  # Its gain is the same.
            self.assertEqual([SLOW_RANK], straggler["ranks"])
            self.assertEqual(with_it.simulated_step_ns - with_it.without_ns, straggler["gain_ns_per_step"])
        self.assertLess(abs(statistics.fmean(errors)), TOLERANCE, errors)


if __name__ == "__main__":
    unittest.main()
