"""`lockstep scaling` as a program: planted series, labels, refusals, text."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from analyze_program import CRASH, DONE, FAILED, MISUSED, generate, run  # noqa: E402


def scaling(*arguments, status=DONE):
    process = run(["scaling", "--quiet", *map(str, arguments)])
    text = process.stderr.decode()
    if process.returncode != status or CRASH.search(text):
        raise AssertionError(f"exit status {process.returncode}: {text}")
    return process


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.runs = []
        for ranks in (1, 2, 4):
            folder = os.path.join(cls.scratch.name, f"run{ranks}")
            generate(folder, "--ranks", ranks, "--steps", 10, "--layers", 2, "--bucket-layers", 2, "--overlap", 0,
                     "--transfer-us", 600 * 2 * (ranks - 1) / ranks)
            cls.runs.append(folder)

    def test_sizes_come_from_the_files_in_any_order(self):
        data = json.loads(scaling("--json", *reversed(self.runs)).stdout)["data"]
        self.assertEqual([1, 2, 4], [point["ranks"] for point in data["points"]])
        self.assertEqual("weak", data["verdict"]["kind"])
        self.assertAlmostEqual(600e3, data["fit"]["communication_ns"], delta=30e3)

    def test_a_label_goes_before_what_the_files_say(self):
        data = json.loads(scaling("--json", "8=" + self.runs[0], "16=" + self.runs[1]).stdout)["data"]
        self.assertEqual([8, 16], [point["ranks"] for point in data["points"]])

    def test_items_give_throughput(self):
        weak = json.loads(scaling("--json", *self.runs, "--items-per-step", 32).stdout)["data"]["points"][2]
        strong = json.loads(scaling("--json", *self.runs, "--items-per-step", 32, "--strong").stdout)["data"]["points"][2]
        self.assertAlmostEqual(4 * 32e9 / weak["step_ns"], weak["items_per_s"], places=3)
        self.assertAlmostEqual(32e9 / strong["step_ns"], strong["items_per_s"], places=3)

    def test_misuse_is_told(self):
        for arguments in ([], [self.runs[0]], [self.runs[0], self.runs[0]], ["x=" + self.runs[0], self.runs[1]],
                          [*self.runs, "--weak", "--strong"]):
            self.assertTrue(scaling(*arguments, status=MISUSED).stderr)
        self.assertIn(b"size", scaling(*self.runs, "--no-sync", "64=" + self.runs[2], status=FAILED).stderr)

    def test_the_first_screen_is_short(self):
        lines = scaling(*self.runs, "--width", "80", "--ascii", "--no-sync", self.runs[2]).stdout.decode().splitlines()
        self.assertLessEqual(len(lines), 50)
        self.assertTrue(all(len(line) <= 80 for line in lines), [line for line in lines if len(line) > 80])
        self.assertTrue(lines[0].startswith("> 4 ranks run at "))

    def test_csv_has_a_line_for_each_run(self):
        folder = os.path.join(self.scratch.name, "csv")
        scaling(*self.runs, "--csv", folder)
        self.assertEqual(4, len(pathlib.Path(folder, "scaling.csv").read_text().splitlines()))


if __name__ == "__main__":
    unittest.main()
