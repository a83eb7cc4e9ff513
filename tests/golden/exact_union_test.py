#!/usr/bin/env python3
"""Breakdown of every real trace against exact integer unions (expected/exact_gpu_union.json of each set), to 1 ns.
Source: expected-numbers.md, section 2, kind X."""

import unittest

import analyze_program as lockstep

SETS = ("hta_critical_path", "hta_ddp_nccl_meta", "hta_edge_cases", "hta_ns_resolution", "hta_trace_diff",
        "param_dlrm_8rank_v100", "tb_plugin_resnet50_w0", "tracelens_b200_rank0of8", "tracelens_single_gpu")


class ExactUnionTest(lockstep.DataCase):
    def check(self, path, expected):
        answer = lockstep.analyze(path)
        self.assertIn(answer.status, (lockstep.DONE, lockstep.PARTIAL))
        row = answer.data["breakdown"][0]
        self.assertEqual(row["basis"], "device")
        wanted = {"span_ns": "total_us", "busy_ns": "busy_union_us", "idle_ns": "idle_us", "compute_ns": "compute_union_us",
                  "communication_ns": "comm_union_us", "memory_ns": "mem_union_us",
                  "overlapped_communication_ns": "overlap_comm_compute_us"}
        for ours, theirs in wanted.items():
            self.assertLessEqual(abs(row[ours] - lockstep.to_ns(expected[theirs])), 1, ours)
        self.assertEqual(row["exposed_communication_ns"] + row["overlapped_communication_ns"], row["communication_ns"])
        self.assertEqual(row["compute_ns"] + row["exposed_communication_ns"] + row["exposed_memory_ns"], row["busy_ns"])
        if expected["overlap_pct_of_comm"] is None or row["communication_ns"] == 0:
            self.assertIsNone(row["communication_overlap_ratio"])
        else:
            self.assertAlmostEqual(100 * row["communication_overlap_ratio"], expected["overlap_pct_of_comm"], delta=1e-4)
        counts = {"compute": 0, "communication": 0, "memcpy": 0, "memset": 0}
        for kernel in answer.data["kernels"]:
            counts[kernel["kind"]] += kernel["count"]
        self.assertEqual([counts["compute"], counts["communication"], counts["memcpy"], counts["memset"]],
                         [expected["n_compute"], expected["n_comm"], expected["n_memcpy"], expected["n_memset"]])

    def check_set(self, name):
        table = lockstep.read_json(lockstep.data_path("traces", name, "expected", "exact_gpu_union.json"))
        for file, expected in sorted(table.items()):
            with self.subTest(file=file):
                self.check(lockstep.data_path("traces", name, *file.split("/")), expected)


def add_test(name):
    setattr(ExactUnionTest, "test_" + name, lambda self: self.check_set(name))


for set_name in SETS:
    add_test(set_name)

if __name__ == "__main__":
    unittest.main()
