"""The example job under torchrun, for tests that record it for real."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from lockstep_program import SOURCE
from pytorch import python_with_torch


class ExampleJobTest(unittest.TestCase):
    """`scratch` is a folder of the test's own."""

    @classmethod
    def setUpClass(cls):
        python_with_torch()

    def setUp(self):
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
