#!/usr/bin/env python3
"""Behaviour that Holistic Trace Analysis' parser tests and annotation tests assert. Source: expected-numbers.md 1.5, 1.6."""

import unittest

import analyze_program as lockstep

EDGE = ("traces", "hta_edge_cases")


class EdgeCasesTest(lockstep.DataCase):
    def analyze(self, name):
        return lockstep.analyze(lockstep.data_path(*EDGE, name))

    def test_a_single_file_without_a_rank_is_rank_0_and_says_so(self):
        for name in ("rank_not_found.json.gz", "distributed_info_not_found.json.gz"):
            with self.subTest(file=name):
                answer = self.analyze(name)
                self.assertEqual([row["rank"] for row in answer.data["ranks"]], [0])
                self.assertNotEqual(answer.data["ranks"][0]["rank_source"], "distributed_info")
                self.assertTrue(any("rank" in entry["message"] or "rank" in entry["code"] for entry in answer.ledger))

    def test_cpu_only_traces_have_no_device_rows_and_keep_their_rank(self):
        for name in ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", "cpu_only_full_rank-34.json.gz"):
            with self.subTest(file=name):
                answer = self.analyze(name)
                rank = answer.data["ranks"][0]
                self.assertEqual((rank["rank"], rank["world_size"]), (34, 300))
                self.assertEqual(answer.data["kernels"], [])
                self.assertNotEqual(answer.data["breakdown"][0]["basis"], "device")

    def test_a_rank_without_device_events_is_not_shown_as_idle(self):
        answer = self.analyze("rank_non_gpu.json.gz")
        row = answer.data["breakdown"][0]
        self.assertNotEqual(row["basis"], "device")
        self.assertEqual(answer.data["idle"], [])

    def test_rocm_kernels_and_copies_on_stream_0_are_counted(self):
        answer = self.analyze("mi250_minitoy_train_ROCm6_2_kineto.json.gz")
        counts = {}
        for row in answer.data["kernels"]:
            counts[row["kind"]] = counts.get(row["kind"], 0) + row["count"]
        self.assertEqual(counts, {"compute": 14, "memcpy": 2})
        self.assertEqual({row["stream"] for row in answer.data["idle"]}, {0})

    def test_a_triton_kernel_is_counted_once(self):
        self.assertEqual([row["count"] for row in self.analyze("triton_example.json.gz").data["kernels"]], [1])

    def test_an_integer_above_64_bits_does_not_stop_the_load(self):
        answer = self.analyze("large_integer_rank-70.json.gz")
        self.assertEqual(answer.data["breakdown"][0]["communication_ns"], 50_000)
        self.assertEqual(answer.data["ranks"][0]["rank"], 70)

    def test_a_kernel_is_attributed_to_the_operator_of_the_backward_thread(self):
        answer = self.analyze("call_stack_backward_thread.json.gz")
        with_device = [row["name"] for row in answer.data["operators"] if row["device_self_ns"] > 0]
        self.assertEqual(len(with_device), 1)
        self.assertEqual(answer.row("operators", name=with_device[0])["device_self_ns"],
                         sum(row["total_ns"] for row in answer.data["kernels"]))

    def test_old_category_names(self):
        answer = self.analyze("old_category_names_rank1.json.gz")
        self.assertEqual(sum(row["count"] for row in answer.data["kernels"]), 4)
        self.assertEqual(answer.data["ranks"][0]["rank"], 1)

    def test_an_engine_s_own_all_reduce_is_communication_once_it_is_claimed(self):
        """docs/metrics.md#communication-kernels: 73 kernels of tracelens_b200_rank0of8."""
        path = lockstep.data_path("traces", "tracelens_b200_rank0of8", "eager_trace.json.gz")
        plain = lockstep.analyze(path)
        self.assertIn("unclaimed_collectives", plain.ledger_codes())
        row = lockstep.analyze(path, "--communication-kernel", "multimem_all_reduce").data["breakdown"][0]
        self.assertEqual((row["communication_ns"], row["compute_ns"]), (2_141_501, 8_652_137))
        self.assertEqual(row["busy_ns"], plain.data["breakdown"][0]["busy_ns"])

    def test_kernels_below_user_annotations_of_hta_ns_resolution(self):
        """27 kernels are launched inside Optimizer.step#SGD.step in the steps that Holistic Trace Analysis keeps."""
        path = lockstep.data_path("traces", "hta_ns_resolution", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")
        answer = lockstep.analyze_whole(path, "--drop-last-step")
        row = answer.row("operators", name="Optimizer.step#SGD.step")
        self.assertGreater(row["device_total_ns"], 0)
        self.assertEqual(sum(kernel["count"] for kernel in answer.data["kernels"]), 4876)


if __name__ == "__main__":
    unittest.main()
