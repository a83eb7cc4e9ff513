#!/usr/bin/env python3
"""`lockstep bench collectives` under a real mpirun: every operation right and timed, formulas, planted faults found."""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from bench_jobs import check_rows, check_slow_link, environment, measure_slow_link, read
import mpi_launcher
from lockstep_program import BINARY, DONE, FAILED, MISUSED, RECORDED, SOURCE, run

sys.path.insert(0, str(SOURCE / "tests/support"))
from page_file import Page  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

LARGE_GIB = 10  # Two ranks, each with what it sends, what it receives, and the library's copies.
MPIRUN = " ".join(mpi_launcher.MPIRUN)


def bench(*arguments, ranks=4, timeout=PATIENCE_S, **variables):
    words = [BINARY, "bench", "collectives", "-n", str(ranks), "--launcher", MPIRUN, *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, env=environment(**variables), check=False)


def results(*arguments, status=DONE, **options):
    done = bench(*arguments, "--json", **options)
    if done.returncode != status:
        raise AssertionError(f"{arguments}: exit status {done.returncode}: {done.stderr}")
    return read(done.stdout)


class CollectivesTest(unittest.TestCase):
    def test_every_operation_is_right_and_its_bandwidth_by_the_formula(self):
        for ranks in (2, 3):
            data = results("--sizes", "8,4K,256K", "--iterations", "5", ranks=ranks)
            self.assertEqual(len(data["ranks"]), ranks)
            self.assertEqual(len({rank["pid"] for rank in data["ranks"]}), ranks)
            check_rows(self, data["rows"], ranks)
            self.assertTrue(all(rank["device"] is None for rank in data["ranks"]))

    def test_types_and_reductions(self):
        for dtype in ("uint8", "int32", "int64", "float64"):
            for reduction in ("sum", "min", "max"):
                data = results("all_reduce", "reduce_scatter", "reduce", "--sizes", "1000", "--dtype", dtype, "--reduction", reduction,
                               "--root", "1", "--iterations", "2", ranks=2)
                self.assertEqual([row["out_of_place"]["wrong_count"] for row in data["rows"]], [0, 0, 0], (dtype, reduction))

    def test_the_table_is_that_of_nccl_tests(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder, "table.csv")
            done = bench("all_reduce", "broadcast", "-b", "1K", "-e", "4K", "-f", "2", "--iterations", "3", "--csv", table, ranks=2)
            self.assertEqual(done.returncode, DONE, done.stderr)
            rows = [line.split() for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]
            self.assertEqual([row[:6] for row in rows],
                             [["all_reduce", str(size), str(size // 4), "float32", "sum", "-1"] for size in (1024, 2048, 4096)] +
                             [["broadcast", str(size), str(size // 4), "float32", "none", "0"] for size in (1024, 2048, 4096)])
            self.assertTrue(all(row[9] == row[13] == "0" for row in rows[:3]), done.stdout)
            self.assertEqual(rows[3][6:10], ["-"] * 4, "MPI's broadcast has one buffer")
            self.assertIn("# Out of bounds values : 0 OK", done.stdout)
            with open(table, encoding="utf-8", newline="") as file:
                written = list(csv.DictReader(file))
            self.assertEqual([(row["operation"], row["bytes"], row["in_place"]) for row in written][:2],
                             [("all_reduce", "1024", "0"), ("all_reduce", "1024", "1")])

    @unittest.skipIf(mpi_launcher.IS_MPICH, "MPICH 4 has a call for it, which needs 32 GB of memory: Open MPI's refusal is looked at")
    def test_what_reduces_more_than_mpi_counts_says_so(self):
        data = results("all_reduce", "--sizes", "8G", "--iterations", "1", ranks=2)
        self.assertIn("more than 2147483647 elements in one call", data["rows"][0]["skipped"])

    def test_more_elements_than_an_int_counts(self):
        """One operation of each kind; all of them with LOCKSTEP_TEST_LARGE=1, which takes minutes."""
        has_gib = int(re.search(r"MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) >> 20
        if has_gib < LARGE_GIB:
            self.skipTest(f"needs {LARGE_GIB} GiB of memory, and {has_gib} are free")
        kinds = [["broadcast", "all_gather", "all_to_all", "send_recv"]]
        if mpi_launcher.IS_MPICH:  # Open MPI 4.1 cannot reduce so many.
            kinds.append(["all_reduce", "reduce_scatter", "reduce"])
        for operation in [operation for kind in kinds for operation in (kind if "LOCKSTEP_TEST_LARGE" in os.environ else kind[:1])]:
            data = results(operation, "--sizes", "2049M", "--dtype", "uint8", "--iterations", "1", "--warmup", "0", "--no-in-place", ranks=2, timeout=600)
            timing = data["rows"][0]["out_of_place"] or data["rows"][0]["in_place"]
            self.assertEqual((data["rows"][0]["skipped"], timing["wrong_count"]), (None, 0), operation)

    def test_one_rank_has_no_bus_bandwidth(self):
        data = results("all_reduce", "--sizes", "1K", "--iterations", "2", ranks=1)
        self.assertIsNone(data["rows"][0]["out_of_place"]["busbw_bytes_per_s"])
        self.assertGreater(data["rows"][0]["out_of_place"]["algbw_bytes_per_s"], 0)

    def test_a_rank_whose_results_are_wrong_is_named(self):
        planted = {"LD_PRELOAD": os.environ["LOCKSTEP_CORRUPTING_MPI"], "WRONG_RANK": "2"}
        data = results("all_reduce", "all_gather", "--sizes", "8,4K", "--iterations", "2", status=FAILED, **planted)
        by_row = {(row["operation"], row["bytes"]): row for row in data["rows"]}
        self.assertEqual(by_row["all_reduce", 4096]["out_of_place"]["wrong_count"], 1)
        self.assertEqual(by_row["all_reduce", 4096]["in_place"]["wrong_ranks"], [2])
        self.assertEqual(by_row["all_reduce", 8]["out_of_place"]["wrong_count"], 0)
        self.assertEqual(by_row["all_gather", 4096]["out_of_place"]["wrong_count"], 0)
        done = bench("all_reduce", "--sizes", "4K", "--iterations", "2", **planted)
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stdout, r"# WRONG: all_reduce gave wrong elements on rank 2 \(")
        self.assertIn("Out of bounds values : 2 FAILED", done.stdout)

    def test_a_slow_link_is_found(self):
        def measure():
            return results("--sizes", "8", "broadcast", "--iterations", "1", "--pairs", LD_PRELOAD=os.environ["LOCKSTEP_CORRUPTING_MPI"],
                           SLOW_RANK_A="1", SLOW_RANK_B="3")
        data, slow = measure_slow_link(measure, (1, 3))
        self.assertEqual([(pair["rank_a"], pair["rank_b"]) for pair in data["pairs"]], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
        check_slow_link(self, slow)

    def test_behind_a_launcher_it_is_a_rank(self):
        done = subprocess.run([*MPIRUN.split(), "-np", "2", BINARY, "bench", "collectives", "all_gather", "--sizes", "1K", "--json"],
                              capture_output=True, text=True, timeout=PATIENCE_S, env=environment(), check=False)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["data"]["ranks"]), 2)

    def test_a_trace_is_held_against_it(self):
        with tempfile.TemporaryDirectory() as folder:
            measured = pathlib.Path(folder, "bench.json")
            done = bench("all_reduce", "--sizes", "64K,1M", "--iterations", "3", "--json", ranks=2)
            measured.write_text(done.stdout, encoding="utf-8")
            told = run("analyze", RECORDED, "--json", "--fabric", measured)
            self.assertEqual(told.returncode, DONE, told.stderr)
            data = json.loads(told.stdout)["data"]
            self.assertTrue(data["fabric"])
            sizes = {row["bytes"]: row["out_of_place"]["busbw_bytes_per_s"] for row in json.loads(done.stdout)["data"]["rows"]}
            for row in data["fabric"]:
                self.assertEqual(row["name"], "all_reduce")
                self.assertTrue(min(sizes.values()) <= row["fabric_busbw_bytes_per_s"] <= max(sizes.values()))
                self.assertAlmostEqual(row["ratio"], row["busbw_median_bytes_per_s"] / row["fabric_busbw_bytes_per_s"])
            page_file = pathlib.Path(folder, "page.html")
            self.assertEqual(run("analyze", RECORDED, "-q", "--fabric", measured, "-o", page_file).returncode, DONE)
            page = Page(page_file).data
            self.assertEqual(page["fabric"], data["fabric"])
            self.assertEqual(page["fabric_source"]["rank_count"], 2)
            points = {point["bytes"]: point for point in page["fabric_source"]["points"]}
            self.assertEqual({size: point["busbw_bytes_per_s"] for size, point in points.items()}, sizes)
            for row in json.loads(done.stdout)["data"]["rows"]:
                timing, point = row["out_of_place"], points[row["bytes"]]
                self.assertEqual(point["mean_ns"], timing["mean_ns"])
                for who in ("slowest", "fastest"):
                    self.assertAlmostEqual(point[f"{who}_busbw_bytes_per_s"] * timing[f"{who}_ns"],
                                           timing["busbw_bytes_per_s"] * timing["mean_ns"], delta=timing["mean_ns"] * 1e-3)
            self.assertIsNone(json.loads(run("analyze", RECORDED, "--json").stdout)["data"]["fabric"])
            self.assertIn("of what this fabric can do", run("analyze", RECORDED, "--fabric", measured, "--section", "fabric").stdout)
            self.assertEqual(run("analyze", RECORDED, "--pass", "fabric").returncode, MISUSED)
            self.assertIn("lockstep bench collectives", run("analyze", RECORDED, "--fabric", SOURCE / "README.md").stderr)

    def test_what_was_measured_is_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            measured, page_file = pathlib.Path(folder, "bench.json"), pathlib.Path(folder, "bench.html")

            def measure():
                done = bench("all_reduce", "send_recv", "--sizes", "8,1K,64K", "--iterations", "2", "--pairs", "--json", ranks=3,
                             LD_PRELOAD=os.environ["LOCKSTEP_CORRUPTING_MPI"], SLOW_RANK_A="0", SLOW_RANK_B="2")
                measured.write_text(done.stdout, encoding="utf-8")
                return json.loads(done.stdout)["data"]
            data, _ = measure_slow_link(measure, (0, 2))
            shown = run("bench", "show", measured, "-o", page_file)
            self.assertEqual(shown.returncode, DONE, shown.stderr)
            self.assertIn("3 ranks, MPI", shown.stdout)
            slow = [(pair["rank_a"], pair["rank_b"]) for pair in data["pairs"] if pair["is_slow"]]
            self.assertIn((0, 2), slow)
            self.assertEqual([tuple(map(int, pair)) for pair in re.findall(r"slow link: ranks (\d) and (\d)", shown.stdout)], slow)
            page = Page(page_file).data
            self.assertEqual({(point["operation"], point["bytes"]) for point in page["fabric"]["points"]},
                             {(row["operation"], row["bytes"]) for row in data["rows"]})
            self.assertEqual([(pair["rank_a"], pair["rank_b"], pair["bytes_per_s"], pair["is_slow"]) for pair in page["fabric"]["pairs"]],
                             [(pair["rank_a"], pair["rank_b"], pair["bytes_per_s"], pair["is_slow"]) for pair in data["pairs"]])
            self.assertEqual(page["fabric"]["pair_count"], len(data["pairs"]))
            self.assertIsNone(page["earlier"])
            # The same, drawn by who measures, beside what was measured before.
            direct = bench("all_reduce", "--sizes", "8,1K", "--iterations", "2", "-o", page_file, "--beside", measured, ranks=2)
            self.assertEqual(direct.returncode, DONE, direct.stderr)
            self.assertIn("# Out of bounds values : 0 OK", direct.stdout)
            before = page
            page = page_file.read_text(encoding="utf-8")
            self.assertEqual(Page(page_file).data["earlier"]["points"], before["fabric"]["points"])
            refused = bench("all_reduce", "--sizes", "8", "-o", page_file, "--beside", SOURCE / "README.md", ranks=2)
            self.assertEqual((refused.returncode, refused.stdout), (FAILED, ""))
            self.assertIn("README.md: is not a result of lockstep bench collectives", refused.stderr)
            self.assertEqual(page_file.read_text(encoding="utf-8"), page, "what is there stays")
            for words in (["show"], ["show", measured], ["show", measured, "-o", pathlib.Path(folder, "x.txt")],
                          ["collectives", "-n", "2", "-o", pathlib.Path(folder, "x.txt")], ["collectives", "-n", "2", "--beside", measured]):
                self.assertEqual(run("bench", *words).returncode, MISUSED, words)
            self.assertIn("lockstep bench collectives", run("bench", "show", SOURCE / "README.md", "-o", page_file).stderr)

    def test_misuse_says_what_to_do(self):
        for words, said in (([], "lockstep bench collectives -n 4"), (["collectives"], "-n 4"), (["collectives", "allreduce", "-n", "2"], "all_reduce"),
                            (["collectives", "-n", "2", "--sizes", "x"], "64K"), (["collectives", "-n", "2", "--dtype", "half"], "float32"),
                            (["collectives", "-n", "2", "-b", "8", "--sizes", "8"], "exclude"),
                            (["collectives", "-n", "2", "--iterations", "0"], "iterations")):
            done = run("bench", *words)
            self.assertEqual(done.returncode, MISUSED, (words, done.stderr))
            self.assertIn(said, done.stderr)
        done = bench("--root", "7", "reduce", "--sizes", "8", ranks=2)
        self.assertNotEqual(done.returncode, DONE)
        self.assertIn("root 7 is not a rank of 2", done.stderr)
        done = run("bench", "collectives", "-n", "2", "--launcher", "no-such-launcher")
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("--launcher", done.stderr)


if __name__ == "__main__":
    unittest.main()
