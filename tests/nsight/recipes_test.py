#!/usr/bin/env python3
"""docs/nsight.md: its commands on real reports of Nsight Systems, their figures against `nsys stats` of the same reports."""
import collections
import csv
import glob
import gzip
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import analyze_program as lockstep
from waiting import PATIENCE_S

DOCUMENT = pathlib.Path(lockstep.SOURCE_ROOT) / "docs/nsight.md"
MPI_JOB = ("nsight", "own_mpirun_4rank")
CLOVERLEAF = ("nsight", "pipit", "perlmutter-cloverleaf-cuda.sqlite.xz")
SAXPY = ("nsight", "pipit", "saxpy-mpi-cuda_nsys_perlmutter0.sqlite.xz")
TWO_DEVICES = ("traces", "nsys_2gpu_h100_before_after", "mfu_2gpu_before.sqlite.gz")


def commands():
    """(heading, words) of every command that the document shows on a line of its own."""
    heading, found = "", []
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line.startswith("    lockstep "):
            found.append((heading, shlex.split(line)[1:]))
    return found


def run(words):
    done = subprocess.run([lockstep.PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode not in (lockstep.DONE, lockstep.PARTIAL):
        raise AssertionError(f"{words}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def rows_of(heading, report):
    (words,) = [words for title, words in commands() if title == heading]
    return json.loads(run([report if word == "nsys/" else word for word in words] + ["--format", "json", "-q"]))["rows"]


def table(name):
    """Rows of one of nsys's own tables, as text."""
    path = lockstep.data_path("nsight", "stats", name)
    with gzip.open(path, "rt", newline="") if path.endswith(".gz") else open(path, newline="") as file:
        return list(csv.DictReader(file))


class RecipesTest(unittest.TestCase):
    def test_every_command_runs(self):
        for report in (MPI_JOB, TWO_DEVICES):
            path = lockstep.data_path(*report)
            for _, words in commands():
                self.assertTrue(run([path if word == "nsys/" else word for word in words]))
        sections = re.findall(r"`lockstep analyze nsys/ --section ([a-z_,]+)`", DOCUMENT.read_text())
        self.assertGreater(len(sections), 5)
        for section in sections:
            self.assertTrue(run(["analyze", lockstep.data_path(*TWO_DEVICES), "--section", section]))

    def test_kernels(self):
        for report, name in ((CLOVERLEAF, "cloverleaf"), (TWO_DEVICES, "mfu_2gpu_before")):
            ours = {row["name"]: row for row in rows_of("kernels", lockstep.data_path(*report))}
            theirs = table(f"{name}_cuda_gpu_kern_sum.csv.gz")
            self.assertEqual({row["Name"] for row in theirs}, set(ours))
            for row in theirs:
                own = ours[row["Name"]]
                self.assertEqual([int(row[key]) for key in ("Instances", "Total Time (ns)", "Min (ns)", "Max (ns)")],
                                 [own[key] for key in ("instances", "total_ns", "min_ns", "max_ns")], row["Name"])

    def test_memory_operations(self):
        ours = rows_of("memory operations", lockstep.data_path(*CLOVERLEAF))
        theirs = table("cloverleaf_cuda_gpu_mem_time_sum.csv.gz")
        self.assertEqual([(int(row["Count"]), int(row["Total Time (ns)"])) for row in theirs],
                         [(row["instances"], row["total_ns"]) for row in ours])

    def test_calls(self):
        ours = rows_of("calls", lockstep.data_path(*CLOVERLEAF))
        for categories, name in ((("runtime", "driver"), "cuda_api_sum"), (("other",), "osrt_sum")):
            calls = {row["name"]: (row["calls"], row["total_ns"], row["max_ns"]) for row in ours if row["category"] in categories}
            theirs = {re.sub(r"_v\d+$", "", row["Name"]): (int(row["Num Calls"]), int(row["Total Time (ns)"]), int(row["Max (ns)"]))
                      for row in table(f"cloverleaf_{name}.csv.gz")}
            for call, figures in theirs.items():
                self.assertEqual(figures, calls.get(call), call)

    def test_ranges_of_each_rank(self):
        ours = rows_of("ranges", lockstep.data_path(*MPI_JOB))
        paths = sorted(glob.glob(os.path.join(lockstep.data_path("nsight", "stats"), "stencil.*_nvtx_sum.csv")))
        self.assertEqual(4, len(paths))
        for rank, path in enumerate(paths):
            own = {row["name"]: (row["count"], row["total_ns"]) for row in ours if row["rank"] == rank}
            for row in table(os.path.basename(path)):
                if not row["Range"].startswith("step "):  # those are steps, not regions
                    self.assertEqual((int(row["Instances"]), int(row["Total Time (ns)"])), own[row["Range"]], row["Range"])

    def test_ranges_on_the_device(self):
        (ours,) = [row for row in rows_of("ranges", lockstep.data_path(*SAXPY)) if row["name"] == "saxpy"]
        (theirs,) = table("saxpy_nvtx_gpu_proj_sum.csv")
        self.assertEqual((int(theirs["Range Instances"]), int(theirs["Total Range Time (ns)"]), int(theirs["Total Proj Time (ns)"])),
                         (ours["count"], ours["total_ns"], ours["projected_ns"]))

    def test_waiting_inside_a_range_does_not_hide_the_slow_rank(self):
        with open(os.path.join(lockstep.data_path(*MPI_JOB), "expected.json")) as file:
            self.assertIn("rank 2", file.read())
        backward = {row["rank"]: row for row in rows_of("ranges", lockstep.data_path(*MPI_JOB)) if row["name"] == "backward"}
        totals = [row["total_ns"] for row in backward.values()]
        self.assertLess(max(totals), 1.05 * min(totals))
        own = sorted(backward.values(), key=lambda row: row["own_ns"])
        self.assertEqual(2, own[-1]["rank"])
        # It sleeps 14 ms more in each of six.
        self.assertAlmostEqual(6 * 14e6, own[-1]["own_ns"] - own[1]["own_ns"], delta=15e6)

    def test_calls_of_mpi(self):
        ours = rows_of("mpi", lockstep.data_path(*MPI_JOB))
        for rank, path in enumerate(sorted(glob.glob(os.path.join(lockstep.data_path("nsight", "stats"), "stencil.*_mpi_event_trace.csv")))):
            theirs = collections.Counter()
            for row in table(os.path.basename(path)):
                theirs[row["Event"]] += int(row["Duration (ns)"])
            own = {row["name"]: row["total_ns"] for row in ours if row["rank"] == rank}
            for call in ("MPI_Allreduce", "MPI_Barrier"):
                self.assertEqual(theirs[call], own[f"mpi:{call}"], f"rank {rank} {call}")

    def test_pace(self):
        rows = rows_of("pace", lockstep.data_path(*MPI_JOB))
        regions = {row["rank"]: row for row in rows_of("ranges", lockstep.data_path(*MPI_JOB)) if row["name"] == "backward"}
        for rank, region in regions.items():
            paces = sorted(row["pace_ns"] for row in rows if row["rank"] == rank and row["pace_ns"] is not None)
            self.assertEqual(5, len(paces))
            self.assertAlmostEqual(paces[2], region["pace_ns"], delta=1000)  # the clock of the run against the rank's own


if __name__ == "__main__":
    unittest.main()
