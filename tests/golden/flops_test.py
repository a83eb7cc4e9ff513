#!/usr/bin/env python3
"""FLOPs, bytes, calls and rates of matrix operators against TraceLens' own reports (expected/*/GEMM.csv.gz and others). It
tells calls apart by strides as well, so its rows of equal shapes are added. Source: expected-numbers.md 1.8."""

import csv
import gzip
import unittest

import analyze_program as lockstep

FOLDER = ("traces", "tracelens_single_gpu")
SETS = ("h100_qwen1.5_0.5b", "mi300_qwen1.5_0.5b", "h100_owlv2_large", "h100_bert_small", "h100_vit_nsfw")


def compact(text):
    return text.replace(" ", "")


def expected_rows(name, sheet):
    """(operator, shapes, type of the factors) -> calls, GFLOP, MiB, TFLOP/s summed over calls, us summed over calls."""
    found = {}
    with gzip.open(lockstep.data_path(*FOLDER, "expected", name, sheet + ".csv.gz"), "rt") as file:
        for row in csv.DictReader(file):
            types = [kind.strip("' []") for kind in row["Input type_first"].split(",")]
            key = (row["name"], compact(row["Input Dims_first"]), types[1 if row["name"] in ("aten::addmm", "aten::baddbmm") else 0])
            count = int(row["name_count"])
            sums = found.setdefault(key, [0, float(row["GFLOPS_first"]), float(row["Data Moved (MB)_first"]), 0.0, 0.0])
            sums[0] += count
            sums[3] += count * float(row["TFLOPS/s_mean"])
            sums[4] += float(row["Kernel Time (µs)_sum"])
    return found


class FlopsTest(lockstep.DataCase):
    answers = {}

    def answer(self, name):
        if name not in self.answers:
            path = lockstep.data_path(*FOLDER, name + ".json.gz")
            self.answers[name] = lockstep.analyze(path, "--pass", "flops").data
        return self.answers[name]

    def check_sheet(self, name, sheet, names=None):
        ours = {}
        for row in self.answer(name)["flops_by_operator"]:
            key = (row["name"], row["dims"], row["dtype"])
            self.assertNotIn(key, ours)
            ours[key] = row
        wanted = expected_rows(name, sheet)
        self.assertTrue(wanted)
        for key, (count, gflop, mebibytes, rate_sum, time_us) in wanted.items():
            if names and key[0] not in names:
                continue
            with self.subTest(set=name, operator=key):
                row = ours[key]
                self.assertEqual(row["call_count"], count)
                self.assertAlmostEqual(row["flops"], gflop * 1e9, delta=0.5)
                self.assertAlmostEqual(row["bytes"], mebibytes * 2**20, delta=0.5)
                # It adds doubles of microseconds since the epoch: 0.25 us an event.
                events = 2 * count
                self.assertAlmostEqual(row["time_ns"] / 1000, time_us, delta=0.25 * events)
                self.assertAlmostEqual(row["mean_flops_per_s"] / 1e12 / (rate_sum / count), 1,
                                       delta=0.002 + 0.5 * count / time_us)

    def test_matrix_products(self):
        for name in SETS:
            self.check_sheet(name, "GEMM")

    def test_the_roofline_example(self):
        rows = [row for row in self.answer("h100_qwen1.5_0.5b")["flops_by_operator"]
                if row["name"] == "aten::mm" and row["dims"] == "[[8944,1024],[1024,2816]]"]
        self.assertEqual(len(rows), 1)
        row = rows[0]
        self.assertEqual(row["flops"], 2 * 8944 * 2816 * 1024)
        self.assertEqual(row["flops"], 51581550592)
        self.assertEqual(row["bytes"] / 2**20, 71.0078125)
        self.assertAlmostEqual(row["intensity"], 692.7688414567059, places=6)
        self.assertEqual(row["precision"], "bf16")
        self.assertTrue(row["compute_bound"])
        self.assertEqual(row["call_count"], 48)
        self.assertAlmostEqual(row["mean_flops_per_s"] / 1e12, 610.67, delta=0.1)
        self.assertAlmostEqual(row["median_flops_per_s"] / 1e12, 610.70, delta=0.1)

    def test_convolutions_and_attention(self):
        self.check_sheet("h100_vit_nsfw", "CONV_fwd")
        for name in ("h100_vit_nsfw", "h100_bert_small", "h100_qwen1.5_0.5b"):
            self.check_sheet(name, "SDPA_fwd", ("aten::_scaled_dot_product_flash_attention",
                                                "aten::_scaled_dot_product_efficient_attention"))

    def test_use_of_the_device_is_bounded(self):
        for name in SETS:
            for row in self.answer(name)["flops"]:
                self.assertGreater(row["flops"], 0)
                if row["device"] is None:  # mi300: events of device 2, properties of device 0 only
                    self.assertIsNone(row["mfu"])
                    continue
                self.assertGreater(row["mfu"], 0)
                self.assertLess(row["mfu"], 1)


if __name__ == "__main__":
    unittest.main()
