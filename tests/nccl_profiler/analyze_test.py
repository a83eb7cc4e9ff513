#!/usr/bin/env python3
"""What the NCCL profiler plugin recorded of four processes, read by `lockstep analyze` and its like, alone and beside a
profiler's trace of the same ranks."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from lockstep_program import DONE, finding, run
from waiting import PATIENCE_S

JOB = os.environ["LOCKSTEP_NCCL_JOB"]
RANKS, ROUNDS, LATE, LATE_MS = 4, 20, 2, 100
NAMES = ["allreduce", "_allgather_base", "_reduce_scatter_base"]
MARGIN_NS = 300_000  # Of one collective: what alignment may add to clocks that agree.


def job(folder, version=6, is_open=False, rounds=ROUNDS, late=LATE, **settings):
    """The truth that the job prints; its rings are in `folder` then."""
    done = subprocess.run([JOB, *map(str, (RANKS, rounds, late, LATE_MS, version, int(is_open)))], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=PATIENCE_S, env={**os.environ, "LOCKSTEP_NCCL_DIR": str(folder), **settings})
    return json.loads(done.stdout)


def analyze(*arguments):
    done = run("analyze", "--json", *arguments)
    assert done.returncode == DONE, done.stderr
    return json.loads(done.stdout)


def codes(report):
    return {row["code"] for row in report["ledger"]}


def write_kineto(path, rank, truth):
    """The collectives of the rank as PyTorch's profiler would have recorded them, each after a kernel that computes."""
    events = []
    base = truth["ranks"][0][0]["start"] // 10**9 * 10**9
    last_end = truth["ranks"][rank][0]["start"] - 900_000
    for i, instant in enumerate(truth["ranks"][rank]):
        start, end = instant["start"], instant["end"]
        if i % 4 == 3 or start == 0:
            continue
        kind, count = i % 4, truth["elements"]
        elements = [(count, count), (count // RANKS, count), (count, count // RANKS)][kind]
        common = {"ph": "X", "pid": rank}
        if start - last_end > 20_000:
            events.append({**common, "cat": "kernel", "name": "gemm", "tid": 7, "ts": (last_end + 5_000 - base) / 1000,
                           "dur": (start - last_end - 10_000) / 1000,
                           "args": {"device": rank, "stream": 7, "correlation": 2 * i + 2}})
        events.append({**common, "cat": "kernel", "name": "ncclDevKernel_" + NAMES[kind], "tid": 20, "ts": (start - base) / 1000,
                       "dur": (end - start) / 1000,
                       "args": {"device": rank, "stream": 20, "correlation": 2 * i + 1, "Collective name": NAMES[kind],
                                "In msg nelems": elements[0], "Out msg nelems": elements[1], "Group size": RANKS,
                                "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg",
                                "Process Group Ranks": str(list(range(RANKS))), "Seq": i + 1}})
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 1000 + rank, "tid": 1000 + rank,
                       "ts": (start - 30_000 - base) / 1000, "dur": 8, "args": {"correlation": 2 * i + 1}})
        last_end = end
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": base, "traceEvents": events,
                                "deviceProperties": [{"id": i, "name": "a device"} for i in range(RANKS)],
                                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS}}))


class RingsAloneTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.truth = job(cls.folder)
        cls.report = analyze(cls.folder)
        cls.data = cls.report["data"]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def named(self, name):
        return [row for row in self.data["collectives"] if row["name"] == name]

    def test_every_collective_is_one_of_all_ranks(self):
        for name in ("all_reduce", "all_gather", "reduce_scatter"):
            rows = self.named(name)
            self.assertEqual(len(rows), ROUNDS)
            for row in rows:
                self.assertTrue(row["complete"] and row["match"] == "sequence" and row["ranks"] == list(range(RANKS)), row)
                self.assertEqual(row["group"], "communicator 0x5eed (default_pg)")

    def test_the_late_rank_is_named_with_what_it_costs(self):
        least_cost = most_cost = late_count = 0  # What the others waited for it, by the clocks of the processes.
        for place, name in enumerate(("all_reduce", "all_gather", "reduce_scatter")):
            for i, row in enumerate(sorted(self.named(name), key=lambda row: row["sequence"])):
                began = [(rank[4 * i + place]["start"], rank[4 * i + place]["started_by"]) for rank in self.truth["ranks"]]
                least = [max(0, max(one[0] for one in began) - own[1]) for own in began]
                most = [max(one[1] for one in began) - own[0] for own in began]
                for rank in range(RANKS):
                    self.assertGreaterEqual(row["wait_ns"][rank], least[rank] - MARGIN_NS)
                    self.assertLessEqual(row["wait_ns"][rank], most[rank] + MARGIN_NS)
                lasts = [rank for rank, own in enumerate(began) if own[1] > max(one[0] for one in began) - 2 * MARGIN_NS]
                if len(lasts) == 1:
                    self.assertEqual(row["last_rank"], lasts[0])
                late_count += place == 0 and lasts == [LATE]
                least_cost += sum(least) if lasts == [LATE] else 0
                most_cost += sum(most) if LATE in lasts else 0
        # A busy machine may make another rank later still.
        self.assertGreaterEqual(late_count, ROUNDS * 3 // 4)
        straggler = finding(self.report, "straggler")
        self.assertEqual(straggler["ranks"][0], LATE)
        row = next(row for row in self.data["stragglers"] if row["rank"] == LATE)
        self.assertGreaterEqual(least_cost, ROUNDS * 3 // 4 * (RANKS - 1) * (LATE_MS - 1) * 1_000_000)
        self.assertGreaterEqual(row["wait_given_ns"], least_cost - 3 * 3 * ROUNDS * MARGIN_NS)
        self.assertLessEqual(row["wait_given_ns"], most_cost + 3 * 3 * ROUNDS * MARGIN_NS)

    def test_bandwidths_follow_from_bytes_and_times(self):
        sizes = {"all_reduce": 4 * self.truth["elements"], "all_gather": 4 * self.truth["elements"],
                 "reduce_scatter": 4 * self.truth["elements"]}
        factors = {"all_reduce": 2 * (RANKS - 1) / RANKS, "all_gather": (RANKS - 1) / RANKS, "reduce_scatter": (RANKS - 1) / RANKS}
        for place, (name, size) in enumerate(sizes.items()):
            rows = sorted(self.named(name), key=lambda row: row["sequence"])
            for i, row in enumerate(rows):
                self.assertEqual(row["bytes"], size)
                # The device's own time of the rank that came last, which is all transfer.
                self.assertEqual(row["transfer_ns"], min(rank[4 * i + place]["device"] for rank in self.truth["ranks"]))
                self.assertAlmostEqual(row["algbw_bytes_per_s"], size * 1e9 / row["transfer_ns"], delta=1)
                self.assertAlmostEqual(row["busbw_bytes_per_s"], row["algbw_bytes_per_s"] * factors[name], delta=1)

    def test_peers_are_ranks_of_the_job(self):
        rows = self.named("send_recv")
        self.assertEqual(len(rows), ROUNDS)
        for row in rows:
            self.assertEqual((row["ranks"], row["bytes"]), ([0, 1], 4 * 4096))
            self.assertIn("0->1", row["group"])

    def test_nothing_is_claimed_of_what_was_not_recorded(self):
        self.assertIn("nccl_operations_only", codes(self.report))
        for absent in ("exposed_communication", "host_bound", "low_overlap", "exposed_gathers"):
            self.assertIsNone(finding(self.report, absent))
        self.assertEqual({row["severity"] for row in self.report["ledger"]}, {"info"}, self.report["ledger"])

    def test_other_commands_read_it(self):
        done = run("query", "--format", "csv", self.folder,
                   "SELECT name, count(*) FROM events WHERE lane = 'device' GROUP BY name ORDER BY name")
        self.assertEqual(done.stdout.splitlines()[1:], [
            f"nccl:all_gather RING SIMPLE 2 channels,{RANKS * ROUNDS}", f"nccl:all_reduce RING SIMPLE 2 channels,{RANKS * ROUNDS}",
            f"nccl:recv 1 channel,{ROUNDS}", f"nccl:reduce_scatter RING SIMPLE 2 channels,{RANKS * ROUNDS}",
            f"nccl:send 1 channel,{ROUNDS}"], done.stderr)
        with tempfile.TemporaryDirectory() as scratch:
            merged = pathlib.Path(scratch) / "job.pftrace"
            self.assertEqual(run("merge", self.folder, "-o", merged).returncode, DONE)
            again = analyze(merged)
            self.assertEqual([(row["name"], row["bytes"], row["ranks"]) for row in again["data"]["collectives"]],
                             [(row["name"], row["bytes"], row["ranks"]) for row in self.data["collectives"]])
            # A timeline has one clock. Where the machine is busy one rank's may seem to run faster, and what it measured is so much shorter.
            drift = [rank["clock"]["drift_ppm"] / 1e6 for rank in self.data["ranks"]]
            for merged_row, row in zip(again["data"]["collectives"], self.data["collectives"], strict=True):
                for rank, merged_ns, own_ns in zip(row["ranks"], merged_row["duration_ns"], row["duration_ns"], strict=True):
                    self.assertAlmostEqual(merged_ns, own_ns * (1 - drift[rank]), delta=1 if drift[rank] else 0)
            page = pathlib.Path(scratch) / "report.html"
            self.assertEqual(run("analyze", self.folder, "-o", page).returncode, DONE)
            self.assertIn("communicator 0x5eed", page.read_text(encoding="utf-8"))


class QualityTest(unittest.TestCase):
    def test_what_is_under_way_has_no_end(self):
        with tempfile.TemporaryDirectory() as folder:
            job(folder, is_open=True, rounds=2)
            report = analyze(folder)
            rows = [row for row in report["ledger"] if row["code"] == "nccl_operations_under_way"]
            self.assertEqual(sorted(row["rank"] for row in rows), [0, 2, 3])
            for row in rows:
                self.assertIn(f"rank {row['rank']}: 1 operation had not ended", row["message"])
                self.assertIn("all_reduce #7 of communicator 0x5eed (default_pg)", row["message"])
            self.assertEqual(len([row for row in report["data"]["collectives"] if row["name"] == "all_reduce"]), 2)

    def test_a_ring_that_went_round_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            job(folder, rounds=40, late=-1, LOCKSTEP_NCCL_OPERATIONS="64")
            report = analyze(folder)
            rows = {row["rank"]: row for row in report["ledger"] if row["code"] == "nccl_ring_wrapped"}
            self.assertEqual({rank: row["count"] for rank, row in rows.items()}, {0: 96, 1: 96, 2: 56, 3: 56})

    def test_old_interfaces_say_less(self):
        for version, expected in ((2, {"nccl_without_kernels", "nccl_sizes_unknown"}),
                                  (3, {"nccl_without_device_time", "nccl_sizes_unknown"})):
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder:
                job(folder, version=version, rounds=3)
                report = analyze(folder)
                self.assertEqual(codes(report) - {"nccl_operations_only"}, expected)
                rows = [row for row in report["data"]["collectives"] if row["name"] == "all_reduce"]
                self.assertEqual([row["ranks"] for row in rows], [list(range(RANKS))] * 3)
                self.assertEqual({row["bytes"] for row in rows}, {4 << 20})


class BesideATraceTest(unittest.TestCase):
    def test_communication_counts_once(self):
        with tempfile.TemporaryDirectory() as scratch:
            rings, traces = pathlib.Path(scratch) / "rings", pathlib.Path(scratch) / "traces"
            rings.mkdir()
            traces.mkdir()
            truth = job(rings)
            for rank in range(RANKS):
                write_kineto(traces / f"rank{rank}.json", rank, truth)
            alone, both = analyze(traces), analyze(traces, rings)
            self.assertEqual(finding(alone, "straggler")["ranks"][0], LATE)
            for section in ("breakdown", "collectives", "stragglers", "wait_states", "idle", "kernels", "launch", "groups", "findings"):
                self.assertEqual(alone["data"][section], both["data"][section], section)
            self.assertNotIn("rank_conflict", codes(both))
            done = run("query", "--format", "csv", traces, rings,
                       "SELECT rank, lane, count(*) FROM events WHERE name LIKE 'nccl:all_reduce RING SIMPLE%' GROUP BY rank, lane")
            self.assertEqual(done.stdout.splitlines()[1:], [f"{rank},other,{ROUNDS}" for rank in range(RANKS)], done.stderr)

    def test_a_trace_of_a_part_takes_what_it_covers(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            truth = job(folder)
            part = {**truth, "ranks": [rank[4 * 5:4 * 10] for rank in truth["ranks"]]}
            for rank in range(RANKS):
                write_kineto(folder / f"trace-rank{rank}.json", rank, part)
            report = analyze(folder)
            self.assertEqual(len([row for row in report["data"]["collectives"] if row["name"] == "all_reduce"]), 5)
            outside = [row for row in report["ledger"] if row["code"] == "nccl_operations_outside_trace"]
            self.assertEqual(len(outside), RANKS)


if __name__ == "__main__":
    unittest.main()
