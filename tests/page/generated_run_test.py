"""The page of a generated job of 256 ranks and 500 steps: within its size, and what was planted is in it. The page stays at
build/PRESET/page-run/report.html, where the tests in a browser find it."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from analyze_program import DONE, GENERATOR, read_json, run
from page_file import Page

RANKS, STEPS, FIRST_STEP = 256, 500, 10
SLOW, ONCE, ONCE_STEP = 37, 99, 250
FOLDER = os.path.join(os.environ.get("LOCKSTEP_BUILD", "build/dev"), "page-run")
OPTIONS = ["--ranks", RANKS, "--steps", STEPS, "--first-step", FIRST_STEP, "--layers", 1, "--bucket-layers", 1, "--lean", "--style",
           "current", "--gz", 1, "--straggler", f"{SLOW}:2000:kernel", "--straggler", f"{ONCE}:9000:host:{ONCE_STEP}"]
MIB = 1 << 20


def make_traces():
    """Makes the traces once; they are made again when the generator or the options are others."""
    stamp = json.dumps([str(option) for option in OPTIONS] + [os.path.getmtime(GENERATOR)])
    stamp_path = os.path.join(FOLDER, "stamp.json")
    if os.path.exists(stamp_path):
        with open(stamp_path) as file:
            if file.read() == stamp:
                return
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    threads = str(os.cpu_count() or 1)
    command = [GENERATOR, "--out", os.path.join(FOLDER, "job"), "--threads", threads, *[str(option) for option in OPTIONS]]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(stamp_path, "w") as file:
        file.write(stamp)


class GeneratedRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make_traces()
        cls.path = os.path.join(FOLDER, "report.html")
        process = run(["analyze", "-q", os.path.join(FOLDER, "job"), "-o", cls.path], timeout=1800)
        assert process.returncode == DONE, process.stderr.decode()
        cls.page = Page(cls.path)
        cls.truth = read_json(os.path.join(FOLDER, "job.truth.json"))

    def test_the_page_is_within_its_size(self):
        self.assertLessEqual(os.path.getsize(self.path), 64 * MIB)
        # What the page holds decoded at one time: every block but the events, of which a bounded part is.
        held = sum(raw for name, (raw, _) in self.page.packed.items() if not name.startswith("events-"))
        self.assertLessEqual(held, 64 * MIB)

    def test_every_rank_and_step_is_there(self):
        shape = self.page.data["step_matrix"]
        self.assertEqual(shape["step_numbers"], list(range(FIRST_STEP, FIRST_STEP + STEPS)))
        self.assertEqual(shape["rank_indices"], list(range(RANKS)))
        self.assertEqual(self.page.data["collective_count"], STEPS)
        self.assertEqual(len(self.page.collectives()), STEPS)

    def test_the_slow_rank_is_slow_in_every_step(self):
        cells = self.page.step_cells()
        for step in range(FIRST_STEP + 1, FIRST_STEP + STEPS, 50):
            slow = cells[SLOW, step, "compute_ns"]
            for rank in (0, 1, 128, 255):
                self.assertAlmostEqual(slow - cells[rank, step, "compute_ns"], 2_000_000, delta=200_000)

    def test_the_one_late_step_is_in_the_waiting(self):
        cells = self.page.step_cells()
        usual = cells[0, FIRST_STEP + 100, "wait_ns"]
        late = max(cells[0, FIRST_STEP + ONCE_STEP + near, "wait_ns"] for near in (-1, 0, 1))
        self.assertGreater(late, usual + 5_000_000)

    def test_the_others_wait_for_the_slow_rank(self):
        given = {}
        for pair in self.page.data["waits"]:
            given[pair["culprit_rank_index"]] = given.get(pair["culprit_rank_index"], 0) + pair["wait_ns"]
        self.assertEqual(max(given, key=given.get), SLOW)
        self.assertEqual(len([pair for pair in self.page.data["waits"] if pair["culprit_rank_index"] == SLOW]), RANKS - 1)

    def test_busy_time_is_the_truth(self):
        for rank in (0, SLOW, ONCE, 255):
            truth, row = self.truth["ranks"][rank]["device"], self.page.data["breakdown"][rank]
            for key in ("busy_ns", "compute_ns", "communication_ns", "memory_ns", "idle_ns"):
                self.assertEqual(row[key], truth[key], key)

    def test_the_overview_adds_up_to_the_truth(self):
        bucket_count, bucket_ns, shares = self.page.timeline()[-1]
        for rank in (3, SLOW):
            mine = shares[rank * bucket_count * 4 : (rank + 1) * bucket_count * 4]
            total = sum(mine[0::4]) / 255 * bucket_ns
            truth = self.truth["ranks"][rank]["device"]["compute_ns"]
            self.assertAlmostEqual(total / truth, 1, delta=0.01)

    def test_single_events_are_there(self):
        names = self.page.names()
        for rank in (0, SLOW):
            kernels = sum(1 for track, events in self.page.events(rank) if track["lane"] == "device"
                          for event in events if not names[event[2]].startswith("Mem"))
            truth = self.truth["ranks"][rank]["device"]
            if not self.page.document["reductions"]:
                self.assertEqual(kernels, truth["kernel_count"])
            self.assertGreater(kernels, STEPS)


if __name__ == "__main__":
    unittest.main()
