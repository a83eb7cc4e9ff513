#!/usr/bin/env python3
"""Every file of the shared data sets through the program: a sensible answer for PyTorch traces, a clear refusal for the
rest, a crash for none."""

import os
import unittest

import analyze_program as lockstep

# File of a set: (events in the file, device events counted). Source: the sets' READMEs; device events without sets are there
# counted in some, so only presence is compared.
TRACES = {
    "hta_counters_memory": {"cupti_profiler.json.gz": 4222},
    "hta_critical_path": {"alexnet.json.gz": 1408, "cuda_event_sync.json.gz": 92, "cuda_event_sync_multi_stream.json.gz": 149,
                          "simple_add.json.gz": 1348},
    "hta_ddp_nccl_meta": {"rank0.json.gz": 40573},
    "hta_edge_cases": {"benchmark_simple_add_trace.json.gz": 111, "call_stack_backward_thread.json.gz": 7,
                       "cpu_only_full_rank-34.json.gz": 7604, "distributed_info_not_found.json.gz": 2467,
                       "large_integer_rank-70.json.gz": 2, "mi250_minitoy_train_ROCm6_2_kineto.json.gz": 220,
                       "old_category_names_rank1.json.gz": 54, "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": 30,
                       "rank_non_gpu.json.gz": 2467, "rank_not_found.json.gz": 2467, "triton_example.json.gz": 71},
    "hta_ns_resolution": {"rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": 68692},
    "hta_trace_diff": {"control.json.gz": None, "test.json.gz": None, "small_base.json.gz": None, "small_test.json.gz": None},
    "param_dlrm_8rank_v100": {f"kineto/{name}": None for name in (
        "worker0_step_12.1694128201545.pt.trace.json.gz", "worker7_step_12.1694128201553.pt.trace.json.gz")},
    "tb_plugin_resnet50_w0": {"gpu_metrics_input.json.gz": 340, "worker0.1623143089861.pt.trace.json.gz": 75718,
                              "worker0.1623143566756.pt.trace.json.gz": 75718},
    "tracelens_b200_rank0of8": {"eager_trace.json.gz": 24656},
    "tracelens_single_gpu": {"h100_bert_small.json.gz": 2551, "h100_owlv2_large.json.gz": 132152,
                             "h100_qwen1.5_0.5b.json.gz": 18221, "h100_vit_nsfw.json.gz": 5138,
                             "mi300_qwen1.5_0.5b.json.gz": 18090, "mi300_triton_compile.json.gz": 246},
}
# Exports of Nsight Systems, with the ranks that each holds.
NSIGHT = {
    "traces/nsys_2gpu_h100_before_after/mfu_2gpu_before.sqlite.gz": 2,
    "traces/nsys_2gpu_h100_before_after/mfu_2gpu_after.sqlite.gz": 2,
    "nsight/gemm_no_kernels/profile.sqlite.xz": 1, "nsight/jacc/report1.sqlite.xz": 1,
    "nsight/nsightful/power_iteration__baseline.sqlite.xz": 1, "nsight/nsys_ai/healthy_1pct.sqlite.xz": 1,
    "nsight/own_mpirun_4rank/stencil.gpu-node-01.2-of-4.sqlite.xz": 1,
    "nsight/own_torchrun_gloo_4rank/train.gpu-node-02.rank3-of-4.sqlite.xz": 1,
    "nsight/own_torchrun_single_report/node0.sqlite.xz": 4,
    "nsight/pipit/perlmutter-cloverleaf-cuda.sqlite.xz": 1, "nsight/pipit/saxpy-mpi-cuda_nsys_perlmutter0.sqlite.xz": 1,
}
# No traces: other formats, or other programs' JSON.
OTHERS = (
    "chakra_et/chakra.0.json.gz", "chakra_et/small_chakra.0.json.gz", "chakra_et/pytorch_et_1.0.2-chakra.0.0.4.json.gz",
    "chakra_et/feeder_tests_trace.tar.gz", "dlrover_xpu_timer_metrics/hang_xpu_timer_metric_all.prom.gz",
    "hta_counters_memory/memory_timeline.raw.gz", "primus_pp8/config.json.gz",
    "param_dlrm_8rank_v100/pytorch_et/dlrm_eg_0.json.gz",
    "hta_edge_cases/benchmark_simple_add_et.json.gz", "bytedance_stragglers/meta-ST.yaml",
    "README.md",
)


class EverySetTest(lockstep.DataCase):
    def check_trace(self, path, event_count):
        answer = lockstep.analyze(path, timeout=600)
        self.assertIn(answer.status, (lockstep.DONE, lockstep.PARTIAL), answer.error_text)
        self.assertEqual(len(answer.data["ranks"]), 1)
        if event_count is not None:
            self.assertEqual(answer.data["ranks"][0]["event_count"], event_count)
        row = answer.data["breakdown"][0]
        self.assertEqual(row["busy_ns"] + row["idle_ns"], row["span_ns"])
        self.assertEqual(row["compute_ns"] + row["exposed_communication_ns"] + row["exposed_memory_ns"], row["busy_ns"])
        for kernel in answer.data["kernels"]:
            self.assertGreaterEqual(kernel["min_ns"], 0)
            self.assertLessEqual(kernel["max_ns"], kernel["total_ns"])

    def check_set(self, name):
        for file, event_count in TRACES[name].items():
            with self.subTest(file=file):
                self.check_trace(lockstep.data_path("traces", name, *file.split("/")), event_count)

    def test_text_output_of_every_trace_fits_80_columns(self):
        for name, files in TRACES.items():
            for file in files:
                with self.subTest(file=file):
                    path = lockstep.data_path("traces", name, *file.split("/"))
                    process = lockstep.run(["analyze", "--quiet", "--section", "all", path])
                    self.assertIn(process.returncode, (lockstep.DONE, lockstep.PARTIAL))
                    lines = process.stdout.decode("utf-8").splitlines()
                    self.assertGreater(len(lines), 5)
                    self.assertLessEqual(max(len(line) for line in lines), 80)
                    self.assertNotIn("\x1b", process.stdout.decode("utf-8"))

    def test_every_export_of_nsight_systems(self):
        for file, rank_count in NSIGHT.items():
            with self.subTest(file=file):
                path = lockstep.data_path(*file.split("/"))
                answer = lockstep.analyze(path)
                self.assertIn(answer.status, (lockstep.DONE, lockstep.PARTIAL), answer.error_text)
                self.assertEqual(len(answer.data["ranks"]), rank_count)
                process = lockstep.run(["analyze", "--quiet", "--section", "all", path])
                lines = process.stdout.decode("utf-8").splitlines()
                self.assertLessEqual(max(len(line) for line in lines), 80)

    def test_the_eight_ranks_of_dlrm(self):
        answer = lockstep.analyze_whole(lockstep.data_path("traces", "param_dlrm_8rank_v100", "kineto"))
        self.assertEqual([row["rank"] for row in answer.data["ranks"]], list(range(8)))
        self.assertEqual(answer.data["job"]["world_size"], 8)

    def test_a_chrome_trace_that_is_a_list_is_read_or_refused(self):
        path = lockstep.data_path("traces", "bytedance_stragglers", "timeline-ST.json.gz")
        process = lockstep.run(["analyze", "--json", "--quiet", path])
        self.assertIn(process.returncode, (lockstep.DONE, lockstep.FAILED, lockstep.PARTIAL))
        self.assertIsNone(lockstep.CRASH.search(process.stderr.decode("utf-8", "replace")))

    def test_what_is_no_pytorch_trace_is_refused_by_name(self):
        for file in OTHERS:
            with self.subTest(file=file):
                path = lockstep.data_path("traces", *file.split("/"))
                process = lockstep.run(["analyze", "--json", "--quiet", path])
                text = process.stderr.decode("utf-8", "replace")
                self.assertIn(process.returncode, (lockstep.FAILED, lockstep.MISUSED), text)
                self.assertIsNone(lockstep.CRASH.search(text))
                self.assertIn(os.path.basename(file), text)
                self.assertEqual(process.stdout, b"")

    def test_a_folder_of_everything_is_read_and_what_is_no_trace_is_named(self):
        path = lockstep.data_path("traces", "hta_edge_cases")
        answer = lockstep.analyze(path)
        self.assertIn(answer.status, (lockstep.DONE, lockstep.PARTIAL))
        self.assertGreaterEqual(len(answer.data["ranks"]), 10)
        named = " ".join(str(entry["source"]) for entry in answer.ledger)
        self.assertIn("benchmark_simple_add_et", named)


def add_test(name):
    setattr(EverySetTest, "test_" + name, lambda self: self.check_set(name))


for set_name in TRACES:
    add_test(set_name)

if __name__ == "__main__":
    unittest.main()
