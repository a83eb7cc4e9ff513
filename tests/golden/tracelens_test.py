#!/usr/bin/env python3
"""TraceLens' timeline (expected/tracelens_gpu_timeline.json) in its tolerance: it adds doubles, so 0.25 us an event at
timestamps near 1.7e15 us. It counts sets as computation, we as memory; the sums agree. Source: expected-numbers.md 2.2."""

import unittest

import analyze_program as lockstep

SETS = ("hta_critical_path", "hta_ddp_nccl_meta", "hta_edge_cases", "hta_ns_resolution", "hta_trace_diff",
        "param_dlrm_8rank_v100", "tracelens_b200_rank0of8", "tracelens_single_gpu")


class TraceLensTest(lockstep.DataCase):
    def find(self, folder, name):
        for parts in ((name,), ("kineto", name)):
            try:
                return lockstep.data_path("traces", folder, *parts)
            except unittest.SkipTest:
                continue
        raise unittest.SkipTest(f"lacks traces/{folder}/{name}")

    def check(self, path, wanted):
        answer = lockstep.analyze(path)
        row = answer.data["breakdown"][0]
        events = sum(kernel["count"] for kernel in answer.data["kernels"])
        whole = all(float(value).is_integer() for value in wanted.values() if value is not None)
        tolerance_us = 0.5 if whole else 0.25 * events + 0.5
        self.assertAlmostEqual(row["span_ns"] / 1000, wanted["total_time"], delta=0.5)
        self.assertAlmostEqual(row["busy_ns"] / 1000, wanted["busy_time"], delta=tolerance_us)
        self.assertAlmostEqual(row["idle_ns"] / 1000, wanted["idle_time"], delta=tolerance_us)
        self.assertAlmostEqual(row["communication_ns"] / 1000, wanted["total_comm_time"], delta=tolerance_us)
        sets_ns = sum(kernel["total_ns"] for kernel in answer.data["kernels"] if kernel["kind"] == "memset")
        compute_ns = row["compute_ns"]
        self.assertGreaterEqual(wanted["computation_time"], compute_ns / 1000 - tolerance_us)
        self.assertLessEqual(wanted["computation_time"], (compute_ns + sets_ns) / 1000 + tolerance_us)
        if sets_ns == 0:
            self.assertAlmostEqual(row["exposed_communication_ns"] / 1000, wanted["exposed_comm_time"], delta=tolerance_us)
            self.assertAlmostEqual(row["exposed_memory_ns"] / 1000, wanted["exposed_memcpy_time"], delta=tolerance_us)

    def check_set(self, folder):
        table = lockstep.read_json(lockstep.data_path("traces", folder, "expected", "tracelens_gpu_timeline.json"))
        for name, wanted in sorted(table["files"].items()):
            if not isinstance(wanted, dict) or "total_time" not in wanted:
                continue   # That tool stopped on this file.
            with self.subTest(file=name):
                self.check(self.find(folder, name), wanted)


def add_test(name):
    setattr(TraceLensTest, "test_" + name, lambda self: self.check_set(name))


for set_name in SETS:
    add_test(set_name)

if __name__ == "__main__":
    unittest.main()
