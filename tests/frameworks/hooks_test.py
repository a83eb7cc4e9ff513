"""What frameworks do that plain programs do not is marked like theirs."""

import json
import os
import pathlib
import subprocess
import unittest

from pytorch import JobCase, job_environment
from waiting import PATIENCE_S

BINARY = os.environ["LOCKSTEP_BINARY"]
HERE = pathlib.Path(__file__).resolve().parent
SLEEP_NS = 2_000_000
STEPS = 24


class HooksTest(JobCase):
    def test_steps_and_stages(self):
        folder = self.folder / "stages"
        done = subprocess.run([self.python, HERE / "as_frameworks_do.py", folder], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env=job_environment(PYTHONPATH=str(pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "python")))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertNotIn("lockstep:", done.stderr)
        self.assertEqual(["rank0"], [path.name.partition("-")[0] for path in folder.glob("*.spans")])
        answer = subprocess.run([BINARY, "stages", "--json", folder], capture_output=True, text=True, check=False)
        data = json.loads(answer.stdout)["data"]
        # Ten steps of the optimizer in one of the engine are one step; the last step's end is the optimizer's.
        self.assertEqual(STEPS, data["step_count"])
        spent_ns = {stage["stage"]: stage["rank_ns"][0] for stage in data["stages"]}
        self.assertGreater(spent_ns["forward"], STEPS * SLEEP_NS)
        for stage in ("validation", "checkpoint"):  # In the second half of each training; what follows the last step is of none.
            self.assertGreater(spent_ns[stage], (STEPS / 2 - 1) * SLEEP_NS, spent_ns)
            self.assertLess(spent_ns[stage], spent_ns["forward"], spent_ns)


if __name__ == "__main__":
    unittest.main()
