#!/usr/bin/env python3
"""Bubbles of Primus's eight stages against the same definition computed here from the files. Source: docs/metrics.md."""

import unittest

import analyze_program as lockstep

FOLDER = ("traces", "primus_pp8")


class PipelineBubblesTest(lockstep.DataCase):
    def setUp(self):
        super().setUp()
        self.folder = lockstep.data_path(*FOLDER)
        self.files = [lockstep.read_json(lockstep.data_path(*FOLDER, f"pp_rank_{stage}.json.gz")) for stage in range(8)]
        self.config = lockstep.read_json(lockstep.data_path(*FOLDER, "config.json.gz"))
        self.answer = lockstep.analyze(self.folder)
        self.bubbles = self.answer.data["bubbles"]

    @staticmethod
    def busy_ms(iteration):
        spans = sorted([*zip(iteration["fwd_start"], iteration["fwd_end"]), *zip(iteration["bwd_start"], iteration["bwd_end"])])
        busy, reached = 0.0, float("-inf")
        for start, end in spans:
            busy += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return busy

    def test_every_stage_of_every_iteration(self):
        rows = {(row["stage"], str(row["step"])): row for row in self.bubbles["stages"]}
        self.assertEqual(len(rows), 8 * self.config["train_iters"])
        for stage, iterations in enumerate(self.files):
            for step, iteration in iterations.items():
                row = rows[stage, step]
                self.assertAlmostEqual(row["window_ns"] / 1e6, iteration["total"], places=5)
                self.assertAlmostEqual(row["busy_ns"] / 1e6, self.busy_ms(iteration), places=4)
                self.assertAlmostEqual(row["bubble_ratio"], 1 - self.busy_ms(iteration) / iteration["total"], places=8)
                self.assertAlmostEqual(row["memory_bytes"], iteration["memory"] * 2**30, delta=1)

    def test_every_iteration_against_the_ideal(self):
        for row in self.bubbles["steps"]:
            iterations = [file[str(row["step"])] for file in self.files]
            longest = max(iteration["total"] for iteration in iterations)
            busy = sum(self.busy_ms(iteration) for iteration in iterations)
            self.assertAlmostEqual(row["bubble_ratio"], 1 - busy / (8 * longest), places=8)
            self.assertAlmostEqual(row["ideal_bubble_ratio"], 7 / (self.config["num_mbs"] + 7), places=12)
            self.assertEqual(row["warm_up"], row["step"] == 1)

    def test_what_cannot_be_told_is_absent(self):
        self.assertIsNone(self.answer.data["what_if"])
        self.assertIsNone(self.answer.data["kernels"])
        self.assertEqual(self.answer.status, lockstep.DONE)

    def test_one_file_is_one_stage(self):
        answer = lockstep.analyze(lockstep.data_path(*FOLDER, "pp_rank_0.json.gz"))
        self.assertEqual(answer.data["bubbles"], {"steps": [], "stages": []})

    def test_text_names_the_share(self):
        process = lockstep.run(["analyze", "--quiet", "--section", "bubbles", self.folder])
        self.assertEqual(process.returncode, lockstep.DONE)
        text = process.stdout.decode("utf-8")
        self.assertIn("Step 1 is warm-up", text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 80)


if __name__ == "__main__":
    unittest.main()
