#!/usr/bin/env python3
"""`torchrun -m lockstep.bench`: PyTorch's own collectives over Gloo, with the sizes, the check and the table of `lockstep bench collectives`."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from bench_jobs import check_rows, environment, read
from lockstep_program import DONE, FAILED, MISUSED, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from page_file import Page  # noqa: E402
from pytorch import python_with_torch  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

CORRUPTING = pathlib.Path(__file__).with_name("torch_corrupting.py")
MODULE = ("-m", "lockstep.bench")


def alone(*arguments, **variables):
    return subprocess.run([python_with_torch(), *MODULE, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, env=environment(**variables),
                          check=False)


def bench(*arguments, ranks=2, program=MODULE, **variables):
    words = [python_with_torch(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *program, *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, env=environment(OMP_NUM_THREADS="1", **variables), check=False)


def results(*arguments, **options):
    done = bench(*arguments, "--json", **options)
    if done.returncode != DONE:
        raise AssertionError(f"{arguments}: exit status {done.returncode}: {done.stderr}")
    return read(done.stdout)


class TorchBenchTest(unittest.TestCase):
    def test_every_operation_is_right_and_its_bandwidth_by_the_formula(self):
        for ranks in (2, 3):
            data = results("--sizes", "8,4K,256K", "--iterations", "3", ranks=ranks)
            self.assertEqual(len({rank["pid"] for rank in data["ranks"]}), ranks)
            self.assertEqual([rank["device"] for rank in data["ranks"]], [None] * ranks)
            self.assertRegex(data["setup"]["backend"], r"^PyTorch [0-9.]+\S* \(gloo\)$")
            self.assertEqual([row["skipped"] for row in data["rows"]], [None] * len(data["rows"]))
            check_rows(self, data["rows"], ranks)
            self.assertTrue(all((row["in_place"] is None) != (row["out_of_place"] is None) for row in data["rows"]), "each has one form with Gloo")

    def test_types_reductions_and_roots(self):
        for dtype, reduction in (("uint8", "max"), ("int32", "min"), ("int64", "sum"), ("float64", "sum")):
            data = results("all_reduce", "reduce_scatter", "reduce", "broadcast", "--sizes", "1000", "--dtype", dtype, "--reduction", reduction,
                           "--root", "1", "--iterations", "2")
            timings = [row["in_place"] or row["out_of_place"] for row in data["rows"]]
            self.assertEqual([timing["wrong_count"] for timing in timings], [0] * 4, (dtype, reduction))

    def test_the_table_the_csv_and_the_page_are_those_of_lockstep_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            earlier, page_file, table = (pathlib.Path(folder, name) for name in ("earlier.json", "bench.html", "bench.csv"))
            earlier.write_text(bench("all_reduce", "reduce", "--sizes", "64K", "--iterations", "2", "--json").stdout, encoding="utf-8")
            done = bench("all_reduce", "send_recv", "--sizes", "8,64K", "--iterations", "2", "--pairs", "--csv", table, "-o", page_file, "--beside", earlier,
                         ranks=3)
            self.assertEqual(done.returncode, DONE, done.stderr)
            rows = [line.split() for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]
            self.assertEqual([row[:2] for row in rows], [["all_reduce", "8"], ["all_reduce", "65536"], ["send_recv", "8"], ["send_recv", "65536"]])
            self.assertIn("# Out of bounds values : 0 OK", done.stdout)
            self.assertEqual(len(table.read_text(encoding="utf-8").splitlines()), 5)
            page = Page(page_file).data
            self.assertEqual(len(page["fabric"]["pairs"]), 3)
            self.assertEqual([point["operation"] for point in page["earlier"]["points"]], ["all_reduce", "reduce"])

    def test_one_rank_has_nobody_to_send_to(self):
        data = results("all_reduce", "send_recv", "--sizes", "1K", "--iterations", "2", ranks=1)
        self.assertIsNone(data["rows"][0]["in_place"]["busbw_bytes_per_s"])
        self.assertEqual(data["rows"][1]["skipped"], "one rank has nobody to send to")
        done = bench("all_reduce", "--sizes", "1K", "-o", "never-written.html", ranks=1)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("one rank has no bandwidth", done.stderr)

    def test_a_rank_whose_results_are_wrong_is_named(self):
        done = bench("all_reduce", "all_gather", "--sizes", "8,4K", "--iterations", "2", "--json", ranks=3, program=(CORRUPTING,), WRONG_RANK="2")
        self.assertEqual(done.returncode, FAILED)
        by_row = {(row["operation"], row["bytes"]): row for row in json.loads(done.stdout)["data"]["rows"]}
        self.assertEqual(by_row["all_reduce", 4096]["in_place"]["wrong_count"], 1)
        self.assertEqual(by_row["all_reduce", 4096]["in_place"]["wrong_ranks"], [2])
        self.assertEqual(by_row["all_reduce", 8]["in_place"]["wrong_count"], 0)
        self.assertEqual({row["out_of_place"]["wrong_count"] for (name, _), row in by_row.items() if name == "all_gather"}, {0})

    def test_a_rank_that_fails_says_so_and_ends_the_job(self):
        done = bench("all_reduce", "--sizes", "8,64K", "--iterations", "2", program=(CORRUPTING,), REFUSING_RANK="1")
        self.assertNotEqual(done.returncode, DONE)
        self.assertIn("lockstep.bench: rank 1: the cable is out", done.stderr)

    def test_misuse_says_what_to_do(self):
        done = alone("--help")
        self.assertEqual(done.returncode, DONE)
        for word in ("all_to_all", "--pairs", "--beside", "torchrun --nproc-per-node"):
            self.assertIn(word, done.stdout)
        for words, said in ((["allreduce"], "did you mean 'all_reduce'"), (["--sizes", "x"], "64K"), (["--nosuch"], "--help"),
                            (["--beside", "x.json"], "-o"), ([], "torchrun --nproc-per-node 4 -m lockstep.bench (not set: RANK")):
            done = alone(*words)
            self.assertEqual(done.returncode, MISUSED, (words, done.stderr))
            self.assertIn(said, done.stderr)
        for backend, said in (("nccl", "built without it"), ("smoke", "expected one of gloo, mpi, nccl")):
            done = alone("--backend", backend, RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
            self.assertEqual(done.returncode, MISUSED, done.stderr)
            self.assertIn(said, done.stderr)
        done = run("bench", "collectives", "--backend", "gloo", "-n", "2")
        self.assertEqual(done.returncode, MISUSED)
        self.assertIn("-m lockstep.bench", done.stderr)


if __name__ == "__main__":
    unittest.main()
