#!/usr/bin/env python3
"""The prefill that vLLM marked in tracelens_b200_rank0of8, against a computation of our own from the file."""

import os
import re
import unittest

import analyze_program as lockstep

FILE = ("traces", "tracelens_b200_rank0of8", "eager_trace.json.gz")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def interval(event):
    start = round(event["ts"] * 1000)
    return start, start + round(event["dur"] * 1000)


class InferenceTest(lockstep.DataCase):
    def setUp(self):
        super().setUp()
        path = lockstep.data_path(*FILE)
        self.events = [event for event in lockstep.read_json(path)["traceEvents"] if event.get("ph") == "X"]
        self.answer = lockstep.analyze(os.path.dirname(path), "--pass", "inference")

    def test_the_marked_prefill(self):
        (mark,) = [event for event in self.events
                   if event["cat"] == "user_annotation" and event["name"].startswith("execute_context_")]
        requests, tokens = map(int, re.match(r"execute_context_(\d+)\((\d+)", mark["name"]).groups())
        start, end = interval(mark)
        launches = {event["args"]["correlation"] for event in self.events
                    if event["cat"] in ("cuda_runtime", "cuda_driver") and event["tid"] == mark["tid"]
                    and start <= interval(event)[0] < end}
        device = [event for event in self.events if event["cat"] in DEVICE]
        end = max([end, *(interval(event)[1] for event in device if event["args"]["correlation"] in launches)])
        busy, covered = 0, start
        for begin, finish in sorted(map(interval, device)):
            finish = min(finish, end)
            busy += max(0, finish - max(begin, covered))
            covered = max(covered, finish)
        (row,) = self.answer.data["inference"]
        self.assertEqual((row["rank"], row["engine"], row["phase"], row["phase_count"]), (0, "vllm", "prefill", 1))
        self.assertEqual((row["mean_request_count"], row["token_count"]), (requests, tokens))
        self.assertEqual((row["total_ns"], row["median_ns"], row["p99_ns"]), (end - start,) * 3)
        self.assertEqual(row["busy_ns"], busy)
        self.assertAlmostEqual(row["tokens_per_s"], tokens * 1e9 / (end - start), places=6)
        self.assertEqual(self.answer.data["inference_requests"], [])

    def test_traces_without_marks_claim_nothing(self):
        answer = lockstep.analyze(lockstep.data_path("traces", "tracelens_single_gpu", "h100_bert_small.json.gz"), "--pass", "inference")
        self.assertEqual(answer.data["inference"], [])


if __name__ == "__main__":
    unittest.main()
