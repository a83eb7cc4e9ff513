#!/usr/bin/env python3
"""Collectives without numbers, of recordings that begin and end apart: each is joined with those that it was joined with in the whole recordings, or stands
alone. No wait is told that the whole recordings do not have."""

import bisect
import os
import random
import shutil
import tempfile
import unittest

import analyze_program as lockstep

NEAR_NS = 150_000  # of one call in two analyses; calls of a rank lie farther apart


class Whole:
    """Which collective each call of the whole recordings is part of."""

    def __init__(self, answer):
        self.calls = {}
        self.waits = {}
        for number, row in enumerate(answer.data["collectives"]):
            for rank, arrival_ns, wait_ns in zip(row["ranks"], row["arrival_ns"], row["wait_ns"]):
                self.calls.setdefault(rank, []).append((arrival_ns, number))
                self.waits[number, rank] = wait_ns
        for calls in self.calls.values():
            calls.sort()

    def number(self, rank, arrival_ns):
        calls = self.calls[rank]
        at = bisect.bisect_left(calls, (arrival_ns, 0))
        nearest = min(calls[max(at - 1, 0):at + 1], key=lambda call: abs(call[0] - arrival_ns))
        return nearest[1] if abs(nearest[0] - arrival_ns) < NEAR_NS else None


class ClippedTest(unittest.TestCase):
    def check(self, whole, clipped):
        """Out: how many collectives of several ranks there are, and how many calls stand alone."""
        joined, alone = 0, set()
        for row in clipped.data["collectives"]:
            numbers = [whole.number(rank, arrival_ns) for rank, arrival_ns in zip(row["ranks"], row["arrival_ns"])]
            self.assertEqual(len(set(numbers)), 1, (row["sequence"], row["ranks"], row["arrival_ns"], numbers))
            self.assertIsNotNone(numbers[0])
            joined += len(numbers) > 1
            if len(numbers) == 1:
                self.assertNotIn(numbers[0], alone, "one collective stands in two pieces")
                alone.add(numbers[0])
            # Of a group of which only some ranks are here: up to the last of these.
            last_waits_ns = min(whole.waits[numbers[0], rank] for rank in row["ranks"])
            for rank, wait_ns in zip(row["ranks"], row["wait_ns"]):
                if wait_ns is not None:
                    self.assertAlmostEqual(wait_ns, whole.waits[numbers[0], rank] - last_waits_ns, delta=NEAR_NS)
        noted = sum(int(entry["message"].split()[0]) for entry in clipped.ledger if entry["code"] == "collectives_unpaired")
        self.assertEqual(noted, len(alone))
        return joined, len(alone)

    def test_two_ranks_of_a_public_job(self):
        folder = lockstep.data_path("traces", "param_dlrm_8rank_v100", "kineto")
        whole = Whole(lockstep.analyze(folder))
        case = lockstep.data_path("..", "cases", "window_clip_2ranks")
        # Rank 2's recording begins in the third of eight, whose operator it lacks.
        self.assertEqual(self.check(whole, lockstep.analyze(case)), (6, 2))
        names = [row["name"] for row in lockstep.analyze(case).data["collectives"]]
        self.assertNotIn("send_recv", names)
        # Beside the six others as they were.
        with tempfile.TemporaryDirectory() as mixed:
            for name in os.listdir(folder):
                clipped = os.path.join(case, name.split("_")[0] + ".pt.trace.json.gz")
                shutil.copy(clipped if os.path.exists(clipped) else os.path.join(folder, name), os.path.join(mixed, name))
            self.assertEqual(self.check(whole, lockstep.analyze(mixed)), (8, 0))

    def test_random_windows(self):
        for seed in range(24):
            choose = random.Random(seed)
            ranks = choose.choice([2, 4, 8])
            options = ["--ranks", ranks, "--steps", choose.choice([2, 3]), "--layers", choose.choice([3, 4]), "--seed", seed, "--style", "torch22",
                       "--bucket-layers", choose.choice([1, 2])]
            options += choose.choice([[], ["--sharded"], ["--tensor-parallel", 2] if ranks > 2 else []])
            with self.subTest(seed=seed, options=options), tempfile.TemporaryDirectory() as folder:
                truth = lockstep.generate(os.path.join(folder, "whole"), *options)
                whole = Whole(lockstep.analyze(os.path.join(folder, "whole")))
                span_us = truth["span_ns"] // 1000
                for rank in range(ranks):
                    if choose.random() < 0.7:
                        begin_us = choose.randrange(span_us // 3) if choose.random() < 0.7 else 0
                        end_us = span_us - (choose.randrange(span_us // 3) if choose.random() < 0.5 else 0)
                        options += ["--clip", f"{rank}:{begin_us}:{end_us}"]
                lockstep.generate(os.path.join(folder, "clipped"), *options)
                self.check(whole, lockstep.analyze(os.path.join(folder, "clipped")))


if __name__ == "__main__":
    unittest.main()
