#!/usr/bin/env python3
"""What the NCCL profiler plugin left of ranks that were killed in a hang, read by `lockstep hang`."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

from lockstep_program import BINARY

RANK = os.environ["LOCKSTEP_NCCL_RANK"]


class HangTest(unittest.TestCase):
    def hang(self, *ranks):
        with tempfile.TemporaryDirectory() as folder:
            for rank, (done, opened) in enumerate(ranks):
                ended = subprocess.run([RANK, str(rank), str(len(ranks)), str(done), str(opened)], check=False,
                                       env={**os.environ, "LOCKSTEP_NCCL_DIR": folder}, timeout=60)
                self.assertEqual(ended.returncode, -signal.SIGKILL)
            names = sorted(os.listdir(folder))
            self.assertTrue(all(name.startswith(f"lockstep-nccl.rank{rank}.") for rank, name in enumerate(names)), names)
            told = subprocess.run([BINARY, "hang", folder, "--json"], capture_output=True, text=True, timeout=60, check=False)
            return json.loads(told.stdout), told

    def test_the_rank_that_never_called_is_named(self):
        told, done = self.hang((7, 1), (7, 1), (7, 0), (7, 1))
        verdict = json.dumps(told["data"]["verdict"])
        self.assertIn("rank 2", verdict.lower(), done.stdout[:3000])
        self.assertIn("all_reduce", verdict)
        self.assertNotIn("rank 1 ", verdict.lower())

    def test_ranks_that_all_wait_in_the_same_one_are_not_blamed(self):
        told, done = self.hang((7, 1), (7, 1), (7, 1))
        self.assertNotIn("never called", json.dumps(told["data"]["verdict"]), done.stdout[:3000])


if __name__ == "__main__":
    unittest.main()
