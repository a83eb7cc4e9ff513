#!/usr/bin/env python3
"""What the NCCL profiler plugin left of ranks that were killed in a hang, read by `lockstep hang`."""

import json
import os
import pathlib
import pickle
import signal
import subprocess
import tempfile
import time
import unittest

from lockstep_program import BINARY
from waiting import PATIENCE_S

RANK = os.environ["LOCKSTEP_NCCL_RANK"]


class HangTest(unittest.TestCase):
    def hang(self, *ranks, dumps=()):
        """`dumps`: ranks that also left a dump of PyTorch's, in which they are one call further."""
        with tempfile.TemporaryDirectory() as folder:
            for rank, (done, opened) in enumerate(ranks):
                ended = subprocess.run([RANK, str(rank), str(len(ranks)), str(done), str(opened)], check=False,
                                       env={**os.environ, "LOCKSTEP_NCCL_DIR": folder}, timeout=PATIENCE_S)
                self.assertEqual(ended.returncode, -signal.SIGKILL)
            names = sorted(os.listdir(folder))
            self.assertEqual(len(names), len(ranks))
            self.assertTrue(all(name.startswith(f"lockstep-nccl.rank{rank}.") for rank, name in enumerate(names)), names)
            for rank in dumps:
                entry = {"record_id": 0, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": ranks[rank][0] + 2,
                         "p2p_seq_id": 0, "op_id": 1, "profiling_name": "nccl:all_reduce", "time_created_ns": time.time_ns(),
                         "input_sizes": [[1 << 20]], "output_sizes": [[1 << 20]], "input_dtypes": ["Float"],
                         "output_dtypes": ["Float"], "state": "started", "time_discovered_started_ns": time.time_ns(),
                         "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": False,
                         "frames": []}
                dump = {"version": "2.10", "entries": [entry], "pg_status": {},
                        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(len(ranks))))}}}
                (pathlib.Path(folder) / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
            told = subprocess.run([BINARY, "hang", folder, "--json"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            return json.loads(told.stdout), told

    def test_the_rank_that_never_called_is_named(self):
        told, done = self.hang((7, 1), (7, 1), (7, 0), (7, 1))
        verdict = json.dumps(told["data"]["verdict"])
        self.assertIn("rank 2", verdict.lower(), done.stdout[:3000])
        self.assertIn("all_reduce", verdict)
        self.assertNotIn("rank 1 ", verdict.lower())

    def test_records_of_two_kinds_are_not_compared(self):
        told, done = self.hang((7, 1), (7, 1), (7, 0), (7, 1), dumps=(0, 3))
        self.assertEqual([2], told["data"]["verdict"]["culprit_ranks"], done.stdout[:3000])
        self.assertEqual(8, told["data"]["verdict"]["sequence"])
        # As many dumps as rings: those count, which have stacks; all ranks are in the same call then.
        told, done = self.hang((7, 1), (7, 0), dumps=(0, 1))
        self.assertEqual([9, 9], [rank["last_enqueued"] for rank in told["data"]["groups"][0]["ranks"]], done.stdout[:3000])

    def test_ranks_that_all_wait_in_the_same_one_are_not_blamed(self):
        told, done = self.hang((7, 1), (7, 1), (7, 1))
        self.assertNotIn("never called", json.dumps(told["data"]["verdict"]), done.stdout[:3000])


if __name__ == "__main__":
    unittest.main()
