#!/usr/bin/env python3
"""Operators and kernels that tb_plugin's own end-to-end test asserts for tb_plugin_resnet50_w0, span 1.
Source: expected-numbers.md 1.7; expected/result_check_*.json.gz."""

import re
import unittest

import analyze_program as lockstep

FOLDER = ("traces", "tb_plugin_resnet50_w0")
TRACE = "worker0.1623143089861.pt.trace.json.gz"
# The plugin leaves out a call directly inside a call of the same name; we count it (docs/metrics.md#operators).
NESTED_IN_ITSELF = {"aten::div": {"count": 6, "cpu_total_ns": 251_000,
                                  "device_total_ns": 144_000}}


class TensorboardPluginTest(lockstep.DataCase):
    def setUp(self):
        super().setUp()
        self.load()

    @classmethod
    def load(cls):
        if hasattr(cls, "answer"):
            return
        cls.answer = lockstep.analyze_whole(lockstep.data_path(*FOLDER, TRACE))

    def expected(self, name):
        return lockstep.read_json(lockstep.data_path(*FOLDER, "expected", f"result_check_{name}.json.gz"))

    def test_kernel_table(self):
        rows = self.expected("kernel_table")["data"]["rows"]
        self.assertEqual(len(rows), 67)
        for name, _, calls, total_us, mean_us, max_us, min_us, *_ in rows:
            ours = self.answer.row("kernels", name=name)
            self.assertEqual([ours["count"], ours["total_ns"], ours["max_ns"], ours["min_ns"]],
                             [calls, 1000 * total_us, 1000 * max_us, 1000 * min_us], name)
            self.assertLessEqual(abs(ours["mean_ns"] / 1000 - mean_us), 0.5 + 1e-9, name)
        self.assertEqual(len([row for row in self.answer.data["kernels"] if row["kind"] == "compute"]), 67)

    def test_operator_table(self):
        rows = self.expected("operation_table")["data"]
        self.assertEqual(len(rows), 76)
        columns = {"count": "calls", "cpu_self_ns": "host_self_duration", "cpu_total_ns": "host_total_duration",
                   "device_self_ns": "device_self_duration", "device_total_ns": "device_total_duration"}
        for row in rows:
            ours = self.answer.row("operators", name=row["name"])
            more = NESTED_IN_ITSELF.get(row["name"], {})
            for column, theirs in columns.items():
                wanted = row[theirs] * (1 if column == "count" else 1000)
                self.assertEqual(ours[column] - more.get(column, 0), wanted, f"{row['name']} {column}")

    def test_step_table(self):
        """Windows, kernels, and copies and sets outside kernels, of every step; the plugin prints the mean as well."""
        overview = self.expected("overview")["steps"]
        columns = [column.get("name") for column in overview["columns"]]
        kernel, memcpy, memset = (columns.index(name) for name in ("Kernel", "Memcpy", "Memset"))
        steps = {row[0]: row for row in overview["rows"]}
        self.assertEqual({str(row["step"]) for row in self.answer.data["steps"]}, set(steps))
        for row in self.answer.data["steps"]:
            wanted = steps[str(row["step"])]
            total_us = int(re.search(r"Total: (\d+)us", wanted[kernel + 1]).group(1))
            self.assertEqual(row["span_ns"], 1000 * total_us)
            self.assertEqual(row["compute_ns"], 1000 * wanted[kernel])
            self.assertEqual(row["exposed_memory_ns"], 1000 * (wanted[memcpy] + wanted[memset]))
        mean_us = sum(row["span_ns"] for row in self.answer.data["steps"]) / 6000
        self.assertEqual(round(mean_us), 177_592)


if __name__ == "__main__":
    unittest.main()
