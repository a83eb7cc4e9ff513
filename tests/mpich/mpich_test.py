#!/usr/bin/env python3
"""What is MPICH's own in `lockstep bench collectives`: its name, NCCL's ranks brought together by it, the wrong launcher."""

import os
import pathlib
import subprocess
import sys
import unittest

from lockstep_program import BINARY, DONE, MISUSED, SOURCE
from mpi_launcher import MPIRUN, mpi_environment

sys.path.insert(0, str(SOURCE / "tests/bench"))
from bench_jobs import check_rows, read  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402


def start(ranks, *words, program=BINARY, **variables):
    return subprocess.run([*MPIRUN, "-n", str(ranks), program, *words], capture_output=True, text=True, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, env=mpi_environment(**variables), check=False)


class MpichTest(unittest.TestCase):
    def test_it_is_mpich_that_is_measured(self):
        done = start(2, "bench", "collectives", "--sizes", "4K", "--iterations", "2", "--json")
        self.assertEqual(done.returncode, DONE, done.stderr)
        data = read(done.stdout)
        self.assertRegex(data["setup"]["backend"], r"^MPI \(MPICH \d+\.\d+(\.\d+)?\)$")
        check_rows(self, data["rows"], 2)

    def test_an_end_that_mpich_does_not_come_back_from_is_no_failure(self):
        done = start(2, "bench", "collectives", "--sizes", "4K", "--iterations", "2", "--json",
                     LD_PRELOAD=os.environ["LOCKSTEP_CORRUPTING_MPI"], STUCK_RANK="0")
        self.assertEqual(done.returncode, DONE, done.stderr)
        check_rows(self, read(done.stdout)["rows"], 2)

    def test_mpich_brings_the_ranks_of_nccl_together(self):
        nccl = ("bench", "collectives", "--backend", "nccl", "--sizes", "4K", "--iterations", "2", "--json")
        gpu = {"LD_LIBRARY_PATH": os.environ["LOCKSTEP_FAKE_GPU"]}
        done = start(3, *nccl, **gpu)
        self.assertEqual(done.returncode, DONE, done.stderr)
        data = read(done.stdout)
        check_rows(self, data["rows"], 3)
        self.assertEqual([rank["device"].split()[1] for rank in data["ranks"]], ["0", "1", "2"])
        done = start(3, *nccl, FAKE_NCCL_ASYNC_ERROR_RANK="2", **gpu)
        self.assertNotEqual(done.returncode, DONE)
        self.assertIn("rank 2: reduce_scatter: remote process exited", done.stderr)

    def test_a_program_for_another_mpi_says_so(self):
        built_for_open_mpi = pathlib.Path(os.environ["LOCKSTEP_BUILT_FOR_OPEN_MPI"]).with_name("lockstep")
        done = start(2, "bench", "collectives", "--sizes", "8", program=built_for_open_mpi)
        self.assertEqual(done.returncode, MISUSED, done.stderr)
        self.assertIn("mpiexec started 2 processes, but MPI in each sees only itself", done.stderr)


if __name__ == "__main__":
    unittest.main()
