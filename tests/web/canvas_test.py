"""The views that draw on a canvas: what they draw held against plain ways to work it out, and each exercised in Chromium by
keyboard and mouse, on real runs and on the ends of what there is (one rank, no steps, no device, single events left out)."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from analyze_program import GENERATOR, PROGRAM, SOURCE_ROOT, data_path  # noqa: E402


class Canvas(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-canvas-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_program(self, *command, statuses=(0,)):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=SOURCE_ROOT)
        self.assertIn(done.returncode, statuses, done.stderr.decode())

    def exercise(self, path, *flags, **variables):
        web_packages.browser()
        page = os.path.join(self.folder, "report.html")
        self.run_program(PROGRAM, "analyze", path, "-q", "-o", page, *flags, statuses=(0, 4))
        print(web_packages.run_node("canvas.mjs", page, **variables))

    def generate(self, *options):
        out = os.path.join(self.folder, "traces")
        self.run_program(GENERATOR, "--out", out, "--gz", "1", *options)
        return out

    def test_what_is_drawn_is_what_plain_ways_find(self):
        print(web_packages.run_node("canvas_functions.mjs"))

    def test_recorded_job_without_a_device(self):
        self.exercise(os.path.join(SOURCE_ROOT, "examples", "recorded"))

    def test_eight_ranks_with_devices(self):
        self.exercise(data_path("traces", "param_dlrm_8rank_v100", "kineto"))

    def test_one_rank_without_steps(self):
        self.exercise(self.generate("--ranks", "1", "--steps", "3", "--layers", "2"), "--step-name", "NoSuchStep")

    def test_arrows_between_spans_of_two_processes(self):
        spans = os.path.join(self.folder, "spans")
        environment = {**os.environ, "LOCKSTEP_TRACE": spans, "RANK": "0", "WORLD_SIZE": "2"}
        subprocess.run([os.path.join(os.environ["LOCKSTEP_BUILD"], "bin", "lockstep_span_job"), "serve", "6"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=True)
        self.exercise(spans, ARROWS="12")

    def test_missing_rank_and_shifted_clocks(self):
        self.exercise(self.generate("--ranks", "6", "--steps", "8", "--layers", "2", "--missing", "4", "--ranks-per-host", "2",
                                    "--offset-us", "0", "--offset-us", "150", "--straggler", "2:3000:loader"))

    def test_many_ranks_and_no_single_events(self):
        self.exercise(self.generate("--ranks", "150", "--steps", "8", "--layers", "1", "--straggler", "77:1500:host"),
                      "--page-size", "1M")


if __name__ == "__main__":
    unittest.main()
