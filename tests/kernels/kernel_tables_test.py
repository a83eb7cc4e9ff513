#!/usr/bin/env python3
"""`lockstep kernels` on the shared tables of Nsight Compute and nsys stats, held against the tables read by Python."""
import collections
import csv
import glob
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import analyze_program as lockstep
from page_file import Page
from waiting import PATIENCE_S

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = pathlib.Path(lockstep.SOURCE_ROOT) / "docs/schema/kernels-1.schema.json"
STAND_IN = pathlib.Path(__file__).resolve().parent / "stand_in_ncu"


def run(*words, **environment):
    return subprocess.run([lockstep.PROGRAM, "kernels", *map(str, words)], capture_output=True, text=True, errors="replace",
                          env=dict(os.environ, LC_ALL="C.UTF-8", **environment), timeout=PATIENCE_S)


def answer(*words):
    done = run("--json", *words)
    if done.returncode != lockstep.DONE:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def rows_of(path):
    opened = gzip.open(path, "rt", newline="") if path.endswith(".gz") else open(path, newline="")
    with opened as file:
        return list(csv.DictReader(file))


class NcuTest(unittest.TestCase):
    def setUp(self):
        self.folder = lockstep.data_path("nsight/ncu")

    def launches(self, name):
        return answer(os.path.join(self.folder, name))["data"]["launches"]

    def test_rooflines_are_as_expected(self):
        with open(os.path.join(self.folder, "esmm2.roofline_expected.json")) as file:
            expected = json.load(file)
        launches = self.launches("esmm2.raw.csv")
        self.assertEqual(len(expected), len(launches))
        for want, launch in zip(expected, launches):
            self.assertTrue(launch["kernel"].startswith(want["kernel"]))
            self.assertAlmostEqual(want["duration_s"] * 1e9, launch["duration_ns"], delta=0.5)
            self.assertEqual(["fp32"], [point["precision"] for point in launch["roofline"]])
            point = launch["roofline"][0]
            for key, name in (("flops_per_s", "flops_per_s"), ("peak_fp32", "peak_flops_per_s"), ("ai", "flops_per_byte"),
                              ("ridge", "ridge_flops_per_byte"), ("fraction_of_roof", "roof_ratio")):
                self.assertAlmostEqual(1, point[name] / want[key], places=9, msg=f"{launch['kernel']} {name}")
            self.assertAlmostEqual(1, launch["dram_bytes_per_s"] / want["dram_bps"], places=9)
            self.assertAlmostEqual(1, launch["dram_peak_bytes_per_s"] / want["peak_dram_bps"], places=9)
            self.assertEqual([], launch["missing_metrics"])
        # 1024^3 multiplications and additions, and the kernel's own scaling of the result.
        first = launches[0]
        self.assertAlmostEqual(2 * 1024**3, first["roofline"][0]["flops_per_s"] * first["duration_ns"] / 1e9, delta=1e6)

    def test_both_pages_agree(self):
        raw, details = self.launches("esmm2.raw.csv"), self.launches("esmm2.details.csv")
        self.assertEqual(len(raw), len(details))
        for a, b in zip(raw, details):
            self.assertEqual((a["kernel"], a["grid"], a["block"], a["bound"]), (b["kernel"], b["grid"], b["block"], b["bound"]))
            self.assertAlmostEqual(a["compute_ratio"], b["compute_ratio"], delta=1e-4)
            self.assertAlmostEqual(1, a["duration_ns"] / b["duration_ns"], places=3)
        self.assertEqual([], details[0]["roofline"])

    def test_a_launch_on_both_pages_is_one(self):
        raw, details = (os.path.join(self.folder, f"esmm2.{page}.csv") for page in ("raw", "details"))
        both = answer(details, raw)["data"]["launches"]
        self.assertEqual(self.launches("esmm2.raw.csv"), [dict(launch, file=raw, rules=[]) for launch in both])
        self.assertEqual(self.launches("esmm2.details.csv")[0]["rules"], both[0]["rules"])

    def test_units_and_groups_of_digits(self):
        self.assertAlmostEqual(8.502587, self.launches("mistic1024.raw.csv")[0]["duration_ns"] / 1e9, places=6)
        copy = answer(lockstep.data_path("nsight/nsightful/copy_blocked.csv"))["data"]["launches"]
        self.assertAlmostEqual(0.6184, copy[0]["memory_ratio"], places=4)
        self.assertGreater(len(copy[0]["rules"]), 3)
        self.assertTrue(any(rule["speedup_ratio"] for rule in copy[0]["rules"]))

    def test_metrics_of_zero_are_no_measurement(self):
        whole = answer(os.path.join(self.folder, "mistic_higgs.raw.csv"))
        self.assertTrue(all(launch["measured_nothing"] and launch["bound"] == "unknown" for launch in whole["data"]["launches"]))
        self.assertIn("ncu_measured_nothing", [row["code"] for row in whole["ledger"]])

    def test_missing_metrics_are_named(self):
        launch = self.launches("mojo.raw.csv")[0]
        self.assertEqual([], launch["roofline"])
        self.assertIn("dram__bytes.sum.per_second", launch["missing_metrics"])

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_output_fits_its_schema(self):
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(answer(self.folder, lockstep.data_path("nsight/stats"), lockstep.data_path("nsight/nsightful/copy_blocked.csv")),
                            schema)

    def test_the_page_holds_the_answer_and_needs_nothing_from_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "kernels.html")
            told = run(self.folder, "--json", "-o", page)
            self.assertEqual(0, told.returncode)
            page = Page(page)
        self.assertIn("default-src 'none'", page.text)
        self.assertEqual(json.loads(told.stdout)["data"], page.data)
        self.assertEqual(4, sum(len(launch["roofline"]) for launch in page.data["launches"]))

    def test_a_table_cannot_write_into_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            table, page = pathlib.Path(folder, "a.csv"), pathlib.Path(folder, "kernels.html")
            with open(os.path.join(self.folder, "esmm2.raw.csv")) as file:
                table.write_text(file.read().replace("one_blocktiling", "<script>alert(1)</script>"))
            self.assertEqual(0, run(table, "-o", page).returncode)
            self.assertNotIn("<script>alert", page.read_text())


class ReportTest(unittest.TestCase):
    """Nsight Compute's own reports, by way of a stand-in for ncu."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.report = self.folder / "rank2.ncu-rep"
        self.report.write_bytes(b"NVR\0" + bytes(range(256)))
        self.calls = self.folder / "calls"

    def run_with_ncu(self, table):
        shutil.copy(STAND_IN, self.folder / "ncu")
        return run("--json", self.report, PATH=f"{self.folder}:{os.environ['PATH']}", STAND_IN_NCU_TABLE=str(table),
                   STAND_IN_NCU_CALLS=str(self.calls))

    def test_a_report_is_read_through_ncu(self):
        done = self.run_with_ncu(lockstep.data_path("nsight/ncu/esmm2.raw.csv"))
        self.assertEqual(lockstep.DONE, done.returncode, done.stderr)
        launches = json.loads(done.stdout)["data"]["launches"]
        self.assertEqual([2] * 4, [launch["rank"] for launch in launches])
        self.assertEqual(f"--import {self.report} --csv --page raw\n", self.calls.read_text())

    def test_an_ncu_that_is_too_old_is_told(self):
        done = self.run_with_ncu("")
        self.assertEqual(lockstep.FAILED, done.returncode)
        self.assertIn("created by a newer version", done.stderr)
        self.assertIn("--import", done.stderr)

    def test_without_ncu_it_says_what_to_run(self):
        done = run(self.report, PATH=str(self.folder))
        self.assertEqual(lockstep.FAILED, done.returncode)
        self.assertIn("ncu --import REPORT --csv --page raw", done.stderr)


class StatsTest(unittest.TestCase):
    def setUp(self):
        self.folder = lockstep.data_path("nsight/stats")

    def test_sums_over_ranks_are_those_of_the_tables(self):
        for table, kind in (("nvtx_sum", "range"), ("osrt_sum", "api")):
            paths = sorted(glob.glob(os.path.join(self.folder, f"stencil.*_{table}.csv")))
            self.assertEqual(4, len(paths))
            total, count, by_rank = collections.Counter(), collections.Counter(), collections.defaultdict(dict)
            for rank, path in enumerate(paths):
                for row in rows_of(path):
                    name = row.get("Range") or row["Name"]
                    total[name] += int(row["Total Time (ns)"])
                    count[name] += int(row.get("Instances") or row["Num Calls"])
                    by_rank[name][rank] = by_rank[name].get(rank, 0) + int(row["Total Time (ns)"])
            sums = {row["name"]: row for row in answer(*paths)["data"]["sums"]}
            self.assertEqual(set(total), set(sums))
            for name, row in sums.items():
                self.assertEqual((kind, total[name], count[name]), (row["kind"], row["total_ns"], row["count"]), name)
                most = max(by_rank[name].values())
                self.assertAlmostEqual(most * 4 / total[name], row["imbalance"], places=9, msg=name)
                self.assertEqual(most, by_rank[name][row["most_rank"]], name)

    def test_kernels_of_one_report(self):
        path = os.path.join(self.folder, "cloverleaf_cuda_gpu_kern_sum.csv.gz")
        rows = rows_of(path)
        sums = answer(path)["data"]["sums"]
        self.assertEqual(sum(int(row["Total Time (ns)"]) for row in rows), sum(row["total_ns"] for row in sums))
        self.assertEqual({row["Name"]: int(row["Max (ns)"]) for row in rows}, {row["name"]: row["max_ns"] for row in sums})
        self.assertTrue(all(row["imbalance"] is None for row in sums))

    def test_the_same_table_twice_counts_once(self):
        one = answer(os.path.join(self.folder, "saxpy_cuda_gpu_kern_sum.csv"))["data"]["sums"]
        both = answer(*(os.path.join(self.folder, f"saxpy_cuda_gpu_kern_sum.{form}") for form in ("csv", "tsv")))["data"]["sums"]
        self.assertEqual(one, both)


class StatusTest(unittest.TestCase):
    def test_statuses(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = pathlib.Path(folder, "notes.csv")
            empty.write_text("a,b\n1,2\n")
            self.assertEqual(lockstep.FAILED, run(empty).returncode)
            self.assertEqual(lockstep.FAILED, run(folder).returncode)
            self.assertEqual(lockstep.FAILED, run(pathlib.Path(folder, "absent")).returncode)
            table = pathlib.Path(folder, "r_nvtx_sum.csv")
            table.write_text("Time (%),Total Time (ns),Instances,Range\n100,5,1,x\n")
            self.assertEqual(lockstep.DONE, run(folder).returncode)  # the other file is none of ours
            done = run(table, empty)
            self.assertEqual(lockstep.PARTIAL, done.returncode)
            self.assertIn("notes.csv", done.stdout)
        self.assertEqual(lockstep.MISUSED, run().returncode)

    def test_no_line_is_wider_than_asked(self):
        for line in run(lockstep.data_path("nsight/stats"), lockstep.data_path("nsight/ncu"), "--all", "--width", "90").stdout.splitlines():
            self.assertLessEqual(len(line), 90, line)


if __name__ == "__main__":
    unittest.main()
