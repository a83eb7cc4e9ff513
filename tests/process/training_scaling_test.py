"""The example job for real: at 1, 2 and 4 processes, with and without exchange of gradients, and with a slow rank."""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import unittest

from lockstep_program import SOURCE
from pytorch import python_with_torch

PROGRAM = os.environ["LOCKSTEP_BINARY"]


class TrainingScalingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        for name, ranks, options in (("1", 1, []), ("2", 2, []), ("4", 4, []), ("apart", 2, ["--no-sync"]),
                                     ("slow", 4, ["--slow-rank", "2", "--slow-ms", "250"])):
            command = [SOURCE / "scripts/record_example", cls.folder / name, "--slow-rank", "-1", "--active-steps", "12", *options]
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, LOCKSTEP_RANKS=str(ranks)))
            if done.returncode != 0:
                raise AssertionError(done.stderr)

    def lockstep(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)["data"]

    def test_scaling_over_one_two_and_four_processes(self):
        data = self.lockstep("scaling", *(self.folder / n for n in "124"), "--no-sync", self.folder / "apart")
        self.assertEqual([1, 2, 4], [point["ranks"] for point in data["points"]])
        self.assertTrue(data["fit"]["fitted"])
        self.assertTrue(all(point["step_count"] == 11 for point in data["points"]))
        # The ranks of a run that exchanges nothing have no collective in their steps, those of the full run do.
        self.assertGreater(data["points"][1]["communication_ns"], 0)
        self.assertEqual(1, len(data["no_sync"]))
        self.assertGreater(data["no_sync"][0]["full_ns"], 0)

    def test_compare_finds_the_slow_rank(self):
        data = self.lockstep("compare", self.folder / "4", self.folder / "slow")
        self.assertEqual("slower", data["verdict"]["change"], data["verdict"]["sentence"])
        self.assertEqual(2, data["ranks"][0]["rank"])
        # The machine may have been busier for one of the runs, but then it was so for all four ranks.
        shifts = [rank["own_ns"]["shift"] for rank in data["ranks"]]
        self.assertGreater(shifts[0] - statistics.median(shifts[1:]), 125e6, shifts)
        appeared = [row["id"] for row in data["findings"] if row["state"] == "appeared"]
        self.assertIn("straggler", appeared)


if __name__ == "__main__":
    unittest.main()
