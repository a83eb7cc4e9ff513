#!/usr/bin/env python3
"""`lockstep bench collectives --backend nccl` over stand-ins for NCCL and CUDA's driver: ranks of its own, by the environment,
torchrun and mpirun; faults planted in each."""

import os
import pathlib
import signal
import socket
import subprocess
import unittest

from bench_jobs import check_rows, check_slow_link, environment, measure_slow_link, read
from lockstep_program import BINARY, DONE, FAILED, MISUSED
from mpi_launcher import MPIRUN, MPIRUN_PATH
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

FAKE_GPU = os.environ["LOCKSTEP_FAKE_GPU"]
LACKING = os.environ["LOCKSTEP_FAKE_NCCL_LACKING"]


def with_gpu(**variables):
    return environment(LD_LIBRARY_PATH=FAKE_GPU, **variables)


def bench(*arguments, ranks=3, timeout=PATIENCE_S, variables=None):
    words = [BINARY, "bench", "collectives", "--backend", "nccl", *(["-n", str(ranks)] if ranks else []), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                          env=with_gpu() if variables is None else variables, check=False)


def free_port():
    """A port of which the next is free as well, at least just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1] - 1


def start_rank(rank, size, port, *arguments, **variables):
    place = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return subprocess.Popen([BINARY, "bench", "collectives", "--backend", "nccl", *arguments], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=with_gpu(**{name: str(value) for name, value in place.items()}, **variables))


class NcclTest(unittest.TestCase):
    def results(self, *arguments, status=DONE, **options):
        done = bench(*arguments, "--json", **options)
        self.assertEqual(done.returncode, status, done.stderr)
        return read(done.stdout)

    def refused(self, said, *arguments, status=FAILED, **options):
        done = bench(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(said, done.stderr)
        return done.stderr

    def test_every_operation_is_right_and_its_bandwidth_by_the_formula(self):
        for ranks in (2, 3):
            data = self.results("--sizes", "8,4K,256K", "--iterations", "5", ranks=ranks)
            check_rows(self, data["rows"], ranks)
            self.assertEqual(data["setup"]["backend"], "NCCL 2.21.5 (CUDA driver 12.4)")
            self.assertEqual([rank["device"].split()[:2] for rank in data["ranks"]], [["device", str(rank)] for rank in range(ranks)])
            for row in data["rows"]:
                has_in_place = row["operation"] not in ("all_to_all", "send_recv")
                self.assertEqual((row["out_of_place"] is not None, row["in_place"] is not None), (True, has_in_place), row)
                # Calls are queued: nobody knows the time of a single one.
                self.assertIsNone(row["out_of_place"]["median_ns"])

    def test_one_rank_alone(self):
        data = self.results("--sizes", "1K", "--iterations", "2", ranks=1)
        self.assertEqual(len(data["rows"]), 7)
        for row in data["rows"]:
            self.assertEqual(row["out_of_place"]["wrong_count"], 0, row)
            self.assertIsNone(row["out_of_place"]["busbw_bytes_per_s"])

    def test_types_and_reductions(self):
        for dtype in ("uint8", "int32", "int64", "float64"):
            for reduction in ("sum", "min", "max"):
                data = self.results("all_reduce", "reduce_scatter", "reduce", "--sizes", "1000", "--dtype", dtype, "--reduction", reduction,
                                    "--root", "1", "--iterations", "2", ranks=2)
                for row in data["rows"]:
                    self.assertEqual((row["out_of_place"]["wrong_count"], row["in_place"]["wrong_count"]), (0, 0), (dtype, reduction, row))

    def test_the_environment_brings_ranks_together_past_a_port_that_is_taken(self):
        with socket.socket() as other:  # Another service where rank 0 would listen.
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1] - 1
            ranks = [start_rank(rank, 3, port, "all_gather", "broadcast", "--sizes", "4K", "--iterations", "2", "--root", "2", "--json")
                     for rank in (2, 0, 1)]
            said = [rank.communicate(timeout=PATIENCE_S) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [DONE] * 3, said)
        self.assertEqual([out for out, _ in (said[0], said[2])], ["", ""])
        data = read(said[1][0])
        self.assertEqual([rank["pid"] for rank in data["ranks"]], [ranks[1].pid, ranks[2].pid, ranks[0].pid])
        self.assertEqual([row["out_of_place"]["wrong_count"] for row in data["rows"]], [0, 0])

    def test_torchrun_brings_ranks_together(self):
        torchrun = [python_with_torch(), "-m", "torch.distributed.run"]
        done = subprocess.run([*torchrun, "--standalone", "--nproc-per-node", "3", "--no-python", BINARY, "bench", "collectives", "--backend", "nccl",
                               "--sizes", "64K", "--iterations", "2", "--json"], capture_output=True, text=True, timeout=PATIENCE_S, env=with_gpu(), check=False)
        self.assertEqual(done.returncode, DONE, done.stderr)
        check_rows(self, read(done.stdout)["rows"], 3)

    def mpirun(self, *words, **variables):
        if MPIRUN_PATH is None or not pathlib.Path(BINARY).with_name("lockstep-mpi-bench").exists():
            self.skipTest("mpirun or lockstep-mpi-bench is not there: scripts/packages.txt has Open MPI's packages")
        return subprocess.run([*MPIRUN, "-np", "3", BINARY, "bench", "collectives", "--backend", "nccl", "--json", *words],
                              capture_output=True, text=True, timeout=PATIENCE_S, env=with_gpu(**variables), check=False)

    def test_mpi_brings_ranks_together(self):
        done = self.mpirun("--sizes", "4K", "--iterations", "2")
        self.assertEqual(done.returncode, DONE, done.stderr)
        check_rows(self, read(done.stdout)["rows"], 3)
        done = bench("all_reduce", "--sizes", "4K", "--iterations", "2", "--json", "--launcher", " ".join(MPIRUN), ranks=2)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(len(read(done.stdout)["ranks"]), 2)

    def test_a_rank_that_fails_ends_an_mpi_job(self):
        done = self.mpirun("reduce_scatter", "--sizes", "4K", FAKE_NCCL_ASYNC_ERROR_RANK="2")
        self.assertNotEqual(done.returncode, DONE)
        self.assertIn("rank 2: reduce_scatter: remote process exited", done.stderr)

    def test_a_rank_whose_results_are_wrong_is_named(self):
        planted = with_gpu(FAKE_NCCL_WRONG_RANK="2")
        data = self.results("all_reduce", "all_gather", "--sizes", "8,4K", "--iterations", "2", status=FAILED, variables=planted)
        by_row = {(row["operation"], row["bytes"]): row for row in data["rows"]}
        self.assertEqual(by_row["all_reduce", 4096]["out_of_place"]["wrong_count"], 1)
        self.assertEqual(by_row["all_reduce", 4096]["in_place"]["wrong_ranks"], [2])
        self.assertEqual(by_row["all_reduce", 8]["out_of_place"]["wrong_count"], 0)
        self.assertEqual(by_row["all_gather", 4096 // 48 * 48]["out_of_place"]["wrong_count"], 0)
        done = bench("all_reduce", "--sizes", "4K", "--iterations", "2", variables=planted)
        self.assertRegex(done.stdout, r"# WRONG: all_reduce gave wrong elements on rank 2 \(")
        self.assertRegex(done.stdout, r"#  Rank  2 Pid +\d+ on \S+ device 2 \[0000:02:00.0\] Stand-in")

    def test_a_slow_link_is_found(self):
        def measure():
            return self.results("--sizes", "8", "broadcast", "--iterations", "1", "--pairs", ranks=4,
                                variables=with_gpu(FAKE_NCCL_SLOW_RANK_A="1", FAKE_NCCL_SLOW_RANK_B="3"))
        data, slow = measure_slow_link(measure, (1, 3))
        self.assertEqual(len(data["pairs"]), 6)
        check_slow_link(self, slow)

    def test_sizes_that_do_not_fit_are_passed_over(self):
        data = self.results("all_reduce", "--sizes", "4K,64M", "--iterations", "2", variables=with_gpu(FAKE_CUDA_MEMORY_BYTES="40000000"))
        self.assertIsNone(data["rows"][0]["skipped"])
        self.assertIn("memory", data["rows"][1]["skipped"])

    def test_what_is_not_there_is_named_with_what_to_do(self):
        self.refused("--nccl-library PATH", "--sizes", "8", "--nccl-library", "/no/such/libnccl.so.2")
        self.refused("/no/such/libnccl.so.2", "--sizes", "8", "--nccl-library", "/no/such/libnccl.so.2")
        said = self.refused("it has no ncclReduceScatter", "--sizes", "8", "--nccl-library", LACKING)
        self.assertEqual(said.count("\n"), 1, "ranks that say the same are one line")
        self.assertIn(f"ranks 0-2: {LACKING}", said)
        self.refused("this is NCCL 2.4.8, which has no send and receive", "--sizes", "8", variables=with_gpu(FAKE_NCCL_VERSION="2408"))
        self.refused("CUDA_ERROR_NO_DEVICE", "--sizes", "8", variables=with_gpu(FAKE_CUDA_DEVICES="0"))

    def test_two_ranks_on_one_device_are_refused(self):
        self.refused("ranks 0 and 2 are on the same device (device 0", "--sizes", "8", variables=with_gpu(FAKE_CUDA_DEVICES="2"))

    def test_ranks_with_other_libraries_are_refused(self):
        port = free_port()
        ranks = [start_rank(rank, 2, port, "--sizes", "8", FAKE_NCCL_VERSION=("22105", "22204")[rank]) for rank in (0, 1)]
        said = [rank.communicate(timeout=PATIENCE_S)[1] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [FAILED] * 2)
        self.assertIn("rank 0 has NCCL 2.21.5, rank 1 has 2.22.4", said[0])
        self.assertEqual(said[1], "", "rank 0 says it for all")

    def test_nothing_hangs_when_a_rank_fails_or_is_stuck(self):
        for fault, said in (("INIT_ERROR", "ncclCommInitRank"), ("STUCK_INIT", "ncclCommInitRank did not come back in 5 s"),
                            ("STUCK", "reduce_scatter did not end in 5 s"), ("STUCK_CALL", "reduce_scatter did not come back in 5 s"),
                            ("ASYNC_ERROR", "rank 1: reduce_scatter: remote process exited or there was a network error: planted")):
            with self.subTest(fault):
                self.refused(said, "reduce_scatter", "--sizes", "8", "--timeout", "5", variables=with_gpu(**{f"FAKE_NCCL_{fault}_RANK": "1"}))

    def test_a_rank_that_never_comes_is_named(self):
        port = free_port()
        ranks = [start_rank(rank, 4, port, "--sizes", "8", "--timeout", "5") for rank in (0, 1)]
        said = [rank.communicate(timeout=PATIENCE_S)[1] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [FAILED] * 2)
        self.assertIn("ranks 2, 3 of 4 did not come to 127.0.0.1 port", said[0])

    def test_a_rank_that_is_killed_ends_the_others(self):
        port = free_port()
        ranks = [start_rank(rank, 3, port, "all_reduce", "--sizes", "8", "--iterations", "1000000", "--timeout", "15") for rank in range(3)]
        # Once it has a device, and so is past the meeting. In the middle of NCCL's own meeting the others know by the timeout alone.
        wait_until(lambda: "fake_gpu" in pathlib.Path(f"/proc/{ranks[2].pid}/maps").read_text(encoding="utf-8"), "its device", ranks[2])
        ranks[2].send_signal(signal.SIGKILL)
        self.addCleanup(lambda: [rank.kill() for rank in ranks])
        said = [rank.communicate(timeout=PATIENCE_S)[1] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [FAILED, FAILED, -signal.SIGKILL], said)
        self.assertIn("rank 0: ", said[0])

    def test_who_ignores_ended_children_has_an_end_all_the_same(self):
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Ranks and the program inherit it.
        try:
            started = subprocess.Popen([BINARY, "bench", "collectives", "--backend", "nccl", "-n", "2", "all_reduce", "--sizes", "8"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=with_gpu(), restore_signals=False)
        finally:
            signal.signal(signal.SIGCHLD, before)
        self.addCleanup(started.kill)
        said, _ = started.communicate(timeout=PATIENCE_S)
        self.assertEqual(started.returncode, DONE)
        self.assertIn("all_reduce", said)

    def test_ranks_end_with_who_started_them(self):
        parent = subprocess.Popen([BINARY, "bench", "collectives", "--backend", "nccl", "-n", "2", "all_reduce", "--sizes", "8"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=with_gpu(FAKE_NCCL_STUCK_INIT_RANK="1"))
        children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        pids = wait_until(lambda: len(found := children.read_text(encoding="utf-8").split()) == 2 and found, "two ranks", parent)
        parent.kill()
        parent.wait()
        wait_until(lambda: not [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()], "the ranks' end")

    def test_misuse_says_what_to_do(self):
        for words, said in ((["-n", "2", "--backend", "ncl"], "did you mean 'nccl'"), ([], "-n 8"), (["-n", "2", "--timeout", "0"], "--timeout"),
                            (["-n", "2", "--bootstrap", "tcp"], "env, mpi"), (["-n", "2", "--backend", "mpi", "--nccl-library", "x"], "--backend nccl")):
            if "--backend" not in words:
                words = ["--backend", "nccl", *words]
            done = subprocess.run([BINARY, "bench", "collectives", *words], capture_output=True, text=True, timeout=PATIENCE_S, env=with_gpu(), check=False)
            self.assertEqual(done.returncode, MISUSED, (words, done.stderr))
            self.assertIn(said, done.stderr)
        lost = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
        self.assertIn("set MASTER_ADDR", bench(ranks=0, variables=with_gpu(**lost)).stderr)
        done = bench("--root", "7", "reduce", "--sizes", "8", ranks=2)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("root 7 is not a rank of 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
