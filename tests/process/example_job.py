"""The example job under torchrun, for tests that record it for real."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from lockstep_program import SOURCE

NO_PYTORCH = 3  # exit status of scripts/python_env where PyTorch is not to be had


class ExampleJobTest(unittest.TestCase):
    """Skips its tests where PyTorch is not to be had. `scratch` is a folder of the test's own."""

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([SOURCE / "scripts/python_env"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        cls.no_pytorch = done.returncode == NO_PYTORCH and done.stderr.strip()
        if done.returncode not in (0, NO_PYTORCH):
            raise AssertionError(done.stderr)

    def setUp(self):
        if self.no_pytorch:
            self.skipTest(f"PyTorch cannot be had: {self.no_pytorch}")
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def record(self, name, *options, ranks=4):
        """Runs the job and returns the folder of its traces, one a rank."""
        folder = self.scratch / name
        done = subprocess.run([SOURCE / "scripts/record_example", folder, *options], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, LOCKSTEP_RANKS=str(ranks)))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([f"rank{rank}.json.gz" for rank in range(ranks)], sorted(path.name for path in folder.iterdir()))
        return folder
