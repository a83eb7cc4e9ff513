#!/usr/bin/env python3
"""Process groups, gradient buckets and sharded weights of generated jobs: what was planted must come out."""

import os
import tempfile
import unittest

import analyze_program as lockstep

PASSES = ("--pass", "groups,ddp,fsdp,breakdown")


class ParallelismTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def job(self, name, *options):
        path = os.path.join(self.holder.name, name)
        truth = lockstep.generate(path, "--steps", 3, *options)
        return lockstep.analyze(path, *PASSES), truth

    def test_described_groups_of_a_tensor_and_data_parallel_job(self):
        answer, _ = self.job("tensor", "--ranks", 8, "--layers", 4, "--tensor-parallel", 2)
        groups = answer.data["groups"]
        tensor = [row for row in groups if row["kind"] == "tensor"]
        data = [row for row in groups if row["kind"] == "data"]
        self.assertEqual(sorted(row["ranks"] for row in tensor), [[0, 1], [2, 3], [4, 5], [6, 7]])
        self.assertEqual(sorted(row["ranks"] for row in data), [[0, 2, 4, 6], [1, 3, 5, 7]])
        for row in groups:
            self.assertEqual(row["trace_count"], len(row["ranks"]))
            self.assertLessEqual(row["exposed_ns"], row["communication_ns"])
            operations = [operation for operation in answer.data["group_operations"] if operation["group_number"] == row["group_number"]]
            self.assertEqual(sum(operation["call_count"] for operation in operations), row["call_count"])
        for row in tensor:
            self.assertEqual((row["basis"], row["confidence"]), ("description", "high"))
            self.assertEqual(row["calls_per_step"], 4)  # an all_reduce a layer, in the forward pass

    def test_a_plain_job_is_data_parallel_by_what_it_reduces(self):
        answer, _ = self.job("plain", "--ranks", 4, "--layers", 8, "--bucket-layers", 2, "--overlap", "1")
        (group,) = answer.data["groups"]
        self.assertEqual((group["kind"], group["basis"], group["is_world"]), ("data", "traffic", True))
        for row in answer.data["ddp"]:
            self.assertEqual((row["pass_count"], row["buckets_per_pass"]), (3, 4))
            self.assertLessEqual(row["exposed_ns"], row["communication_ns"])
        buckets = answer.data["ddp_buckets"]
        self.assertEqual([row["bucket"] for row in buckets], [0, 1, 2, 3])
        issued = [row["issue_ratio"] for row in buckets]
        self.assertEqual(issued, sorted(issued))
        self.assertEqual([row["call_count"] for row in buckets], [12] * 4)

    def test_exposure_of_the_groups_is_that_of_the_breakdown(self):
        answer, _ = self.job("exposed", "--ranks", 2, "--layers", 4, "--overlap", "0", "--transfer-us", "2000")
        (group,) = answer.data["groups"]
        rows = answer.data["breakdown"]
        self.assertEqual(group["communication_ns"], sum(row["communication_ns"] for row in rows))
        self.assertEqual(group["exposed_ns"], sum(row["exposed_communication_ns"] for row in rows))
        finding = answer.finding("gradient_tail")
        self.assertIsNotNone(finding)
        self.assertGreater(finding["evidence"][0]["value"], 1_000_000)

    def test_sharded_weights_are_gathered_twice(self):
        answer, _ = self.job("sharded", "--ranks", 4, "--layers", 4, "--sharded", "--memory")
        (group,) = answer.data["groups"]
        self.assertEqual(group["kind"], "data")
        self.assertEqual(answer.data["ddp"], [])
        for row in answer.data["fsdp"]:
            self.assertEqual(row["resharding"], "after_forward")
            self.assertEqual(row["step_count"], 3)
            self.assertEqual(row["gather_count"], 2 * row["gather_backward_count"])
            self.assertGreater(row["scatter_count"], 0)
            self.assertGreater(row["peak_reserved_bytes"], 0)

    def test_the_answer_does_not_depend_on_the_number_of_threads(self):
        path = os.path.join(self.holder.name, "threads")
        lockstep.generate(path, "--steps", 2, "--ranks", 4, "--layers", 2, "--tensor-parallel", 2, "--shapes")
        texts = {lockstep.analyze(path, "--pass", "groups,ddp,fsdp,flops", "--threads", str(count)).text for count in (1, 4)}
        self.assertEqual(len(texts), 1)


if __name__ == "__main__":
    unittest.main()
