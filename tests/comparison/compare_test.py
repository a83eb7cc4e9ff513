"""`lockstep compare` as a program: Holistic Trace Analysis' numbers, exit status, JSON, text, refusals."""

import collections
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from analyze_program import CRASH, DONE, FAILED, FINDING, MISUSED, PARTIAL, SOURCE_ROOT, data_path, generate, read_json, run  # noqa: E402

RECORDED = os.path.join(SOURCE_ROOT, "examples", "recorded")


def compare(*arguments, status=DONE):
    process = run(["compare", "--quiet", *map(str, arguments)])
    text = process.stderr.decode()
    if process.returncode != status or CRASH.search(text):
        raise AssertionError(f"exit status {process.returncode}: {text}")
    return process


def compare_json(*arguments, status=DONE):
    return json.loads(compare("--json", *arguments, status=status).stdout)["data"]


class HolisticTraceTest(unittest.TestCase):
    """Its test of trace comparison: rank 1, iteration 1010 of the small pair."""

    def setUp(self):
        folder = data_path("traces", "hta_trace_diff")
        self.data = compare_json(os.path.join(folder, "small_base.json.gz"), os.path.join(folder, "small_test.json.gz"),
                                 "--steps", "1010")

    def test_changes_of_cpu_events(self):
        signs = collections.Counter()
        for row in self.data["names"]:
            if row["kind"] in ("operator", "runtime"):
                signs[(row["count_b"] > row["count_a"]) - (row["count_b"] < row["count_a"])] += 1
        self.assertEqual({0: 5, 1: 3, -1: 1}, dict(signs))

    def test_counts_and_durations_of_the_base(self):
        rows = {row["name_a"]: row for row in self.data["names"] if row["name_a"] and row["kind"] != "kernel"}
        expected = {"ProfilerStep#": 122149, "aten::as_strided": 0, "aten::empty": 0, "cudaEventQuery": 4,
                    "cudaLaunchKernel": 4, "nccl:all_reduce": 67}
        self.assertEqual(sorted(expected), sorted(rows))
        for name, micros in expected.items():
            self.assertEqual((1, micros * 1000), (rows[name]["count_a"], rows[name]["step_ns_a"]), name)

    def test_added_and_deleted(self):
        names = lambda change: sorted(r["name"] for r in self.data["names"] if r["change"] == change and r["kind"] != "kernel")
        self.assertEqual(["AddmmBackward0", "All2All_Pooled_Req", "CatBackward0"], names("added"))
        self.assertEqual(["nccl:all_reduce"], names("removed"))

    def test_one_kernel_went_and_none_came(self):
        kernels = [row for row in self.data["names"] if row["kind"] == "kernel"]
        self.assertEqual(1, sum(row["count_b"] < row["count_a"] for row in kernels))
        self.assertEqual(0, sum(row["count_b"] > row["count_a"] for row in kernels))


class LargePairTest(unittest.TestCase):
    """Other machine, other device, other job: names must survive, counts are held against the files' own events."""

    def setUp(self):
        folder = data_path("traces", "hta_trace_diff")
        self.a, self.b = (os.path.join(folder, f"{name}.json.gz") for name in ("control", "test"))

    def test_counts_are_those_of_the_files(self):
        numbers = {}
        for path in (self.a, self.b):
            events = read_json(path)["traceEvents"]
            steps = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if str(e.get("name", "")).startswith("ProfilerStep#")
                           and str(e.get("cat", "")).lower() in ("user_annotation", "cpu_op", "operator"))
            counts = collections.Counter()
            for event in events:
                if str(event.get("cat", "")).lower() in ("cpu_op", "operator") and event.get("ph") == "X":
                    if any(start <= event["ts"] < end for start, end in steps):
                        counts[event["name"]] += 1
            numbers[path] = counts
        data = compare_json(self.a, self.b, "--skip-steps", "0", status=PARTIAL)
        rows = {}
        for row in data["names"]:
            if row["kind"] == "operator":
                rows[("a", row["name_a"])] = row["count_a"]
                rows[("b", row["name"])] = row["count_b"]
        for side, path in (("a", self.a), ("b", self.b)):
            wrong = {name: (count, rows.get((side, name))) for name, count in numbers[path].items()
                     if name.startswith("aten::") and rows.get((side, name)) != count}
            self.assertEqual({}, wrong)

    def test_what_one_rank_of_a_job_cannot_tell_is_not_called_zero(self):
        rows = compare_json(self.a, self.b, status=PARTIAL)["collectives"]
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual([None] * 4, [row[key][side] for key in ("transfer_ns", "wait_ns") for side in "ab"], row["name"])
            self.assertIn(row["change"], ("unknown", "added", "removed"))

    def test_it_says_that_the_machines_differ(self):
        data = compare_json(self.a, self.b, status=PARTIAL)
        self.assertTrue(any("different devices" in note for note in data["verdict"]["notes"]))
        self.assertIn(data["verdict"]["change"], ("faster", "slower"))


class ModelPairTest(unittest.TestCase):
    def test_one_model_on_two_makes_of_device(self):
        folder = data_path("traces", "tracelens_single_gpu")
        data = compare_json(os.path.join(folder, "h100_qwen1.5_0.5b.json.gz"),
                            os.path.join(folder, "mi300_qwen1.5_0.5b.json.gz"))
        self.assertEqual("unknown", data["verdict"]["change"])
        self.assertIn("cannot tell: 1 step", data["verdict"]["sentence"])
        linear = next(row for row in data["names"] if row["name"] == "aten::linear")
        self.assertEqual((168, 168, "exact"), (linear["count_a"], linear["count_b"], linear["match"]))
        self.assertIn("attn_fwd", [row["name"] for row in data["names"] if row["change"] == "added"])


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.a, cls.b = (os.path.join(cls.scratch.name, name) for name in "ab")
        generate(cls.a, "--ranks", 4, "--steps", 10, "--layers", 2)
        generate(cls.b, "--ranks", 4, "--steps", 10, "--layers", 2, "--seed", 2, "--kernel-scale", 1.2)

    def test_slower_fails_when_asked(self):
        compare(self.a, self.b, "--fail-on", "slower", status=FINDING)
        compare(self.a, self.b, "--fail-on", "slower:5", status=FINDING)
        compare(self.a, self.b, "--fail-on", "slower:50")
        compare(self.b, self.a, "--fail-on", "slower")
        compare(self.a, self.a, "--fail-on", "slower", "--fail-on", "undecided")
        compare(self.a, self.b, "--steps", "10-11", "--fail-on", "undecided", status=FINDING)

    def test_misuse_is_told(self):
        for arguments in ([], [self.a], [self.a, self.b, self.b], [self.a, self.b, "--fail-on", "faster"],
                          [self.a, self.b, "--fail-on", "slower:x"], [self.a, self.b, "--steps", "9-x"],
                          [self.a, self.b, "--steps", "7777"]):
            self.assertTrue(compare(*arguments, status=MISUSED).stderr)
        self.assertIn(b"absent", compare(self.a, os.path.join(self.scratch.name, "absent"), status=FAILED).stderr)

    def test_the_first_screen_is_short_and_begins_with_the_verdict(self):
        lines = compare(self.a, self.b, "--width", "80", "--ascii").stdout.decode().splitlines()
        self.assertLessEqual(len(lines), 50)
        self.assertTrue(all(len(line) <= 80 for line in lines))
        self.assertRegex(lines[3], r"^> B is \d+ % slower \(99 % interval ")

    def test_threads_change_nothing(self):
        one = compare("--json", self.a, self.b, "--threads", "1").stdout
        self.assertEqual(one, compare("--json", self.a, self.b, "--threads", "4").stdout)

    def test_a_run_does_not_differ_from_itself(self):
        data = compare_json(RECORDED, RECORDED)
        self.assertIn(data["verdict"]["change"], ("none", "unknown"))
        self.assertTrue(all(row["step_delta_ns"] == 0 and row["match"] == "exact" for row in data["names"]))
        self.assertTrue(all(row["state"] == "stayed" for row in data["findings"]))

    def test_csv_has_the_rows_of_the_json(self):
        folder = os.path.join(self.scratch.name, "csv")
        data = compare_json(self.a, self.b, "--csv", folder)
        text = pathlib.Path(folder, "names.csv").read_text()
        self.assertEqual(len(data["names"]) + 1, len(re.findall("\n", text)))
        self.assertEqual({"steps.csv", "parts.csv", "ranks.csv", "names.csv", "collectives.csv", "memory.csv"},
                         set(os.listdir(folder)))


if __name__ == "__main__":
    unittest.main()
