#!/usr/bin/env python3
"""Tables of Nsight Compute and nsys stats among the inputs of `analyze`: the same launches, rooflines and sums as
`lockstep kernels` has of them, and the traces' own results as without them."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import analyze_program as lockstep
from waiting import PATIENCE_S

STAND_IN = pathlib.Path(__file__).resolve().parent / "stand_in_ncu"
# Sums of bytes, of launch shapes, of queues: no times of one name.
NO_TIMES_BY_NAME = ("gb_sum.csv.gz", "size_sum.csv.gz", "exec_sum.csv.gz")
RECORDED = pathlib.Path(lockstep.SOURCE_ROOT) / "examples/recorded"


def run(*words, **environment):
    return subprocess.run([lockstep.PROGRAM, *map(str, words)], capture_output=True, text=True, errors="replace",
                          env=dict(os.environ, LC_ALL="C.UTF-8", **environment), timeout=PATIENCE_S)


def analyzed(*words, **environment):
    done = run("analyze", "--quiet", "--json", *words, **environment)
    if done.returncode != lockstep.DONE:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


class BesideTracesTest(unittest.TestCase):
    def setUp(self):
        self.tables = [*sorted(pathlib.Path(lockstep.data_path("nsight/ncu")).glob("*.csv")),
                       *sorted(path for path in pathlib.Path(lockstep.data_path("nsight/stats")).glob("*_sum.csv.gz")
                               if not path.name.endswith(NO_TIMES_BY_NAME))]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-kernel-tables-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_the_same_as_the_command_for_them_alone(self):
        data = analyzed(RECORDED, *self.tables)["data"]
        alone = json.loads(run("kernels", "--json", *self.tables).stdout)["data"]
        self.assertGreater(len(alone["launches"]), 15)
        self.assertGreater(len(alone["sums"]), 100)
        key = lambda row: (row["file"], row["id"], row["kernel"])
        launches = {key(row): row for row in data["kernel_launches"]}
        self.assertEqual(len(launches), len(alone["launches"]))
        for row in alone["launches"]:
            self.assertEqual({name: row[name] for name in launches[key(row)] if name in row},
                             {name: value for name, value in launches[key(row)].items() if name in row})
        points = {(*key(row), point["precision"]): point for row in alone["launches"] for point in row["roofline"]}
        self.assertEqual(len(points), len(data["kernel_rooflines"]))
        for row in data["kernel_rooflines"]:
            point = points[*key(row), row["precision"]]
            self.assertEqual({name: row[name] for name in point}, point)
        self.assertEqual([{**row, "reports": row["report_count"]} for row in data["kernel_sums"]],
                         [{**row, "report_count": row["reports"]} for row in alone["sums"]])
        times = [row["duration_ns"] or 0 for row in data["kernel_launches"]]
        self.assertEqual(times, sorted(times, reverse=True))

    def test_the_traces_are_as_without_them(self):
        with_tables, without = analyzed(RECORDED, *self.tables), analyzed(RECORDED)
        for name, rows in without["data"].items():
            if not name.startswith("kernel_"):
                self.assertEqual(with_tables["data"][name], rows, name)
        self.assertEqual(without["data"]["kernel_launches"], [])
        self.assertIn("kernel_tables", {row["code"] for row in with_tables["ledger"]})

    def test_in_a_folder_with_traces_and_other_tables(self):
        shutil.copytree(RECORDED, self.folder / "job")
        shutil.copy(self.tables[0], self.folder / "job")
        (self.folder / "job/losses.csv").write_text("step,loss\n1,2.5\n")
        (self.folder / "job/notes.txt").write_text("Kernel Name\n")
        data = analyzed(self.folder)["data"]
        self.assertEqual({row["file"] for row in data["kernel_launches"]}, {str(self.folder / "job" / self.tables[0].name)})
        # What lockstep wrote itself is none.
        self.assertEqual(run("analyze", "--quiet", RECORDED, "--csv", self.folder / "job/csv").returncode, lockstep.DONE)
        self.assertEqual(analyzed(self.folder)["data"]["kernel_launches"], data["kernel_launches"])

    def test_a_table_that_is_named_twice_counts_once(self):
        shutil.copy(self.tables[0], self.folder)
        shutil.copytree(RECORDED, self.folder / "job")
        once = analyzed(self.folder)["data"]["kernel_launches"]
        self.assertGreater(len(once), 0)
        self.assertEqual(len(analyzed(self.folder, self.folder / "job/.." / self.tables[0].name)["data"]["kernel_launches"]),
                         len(once))

    def test_sql_and_text(self):
        done = run("query", "--quiet", "--json", RECORDED, *self.tables,
                   "SELECT bound, count(*) AS n FROM kernel_launches GROUP BY bound ORDER BY bound")
        bounds = [row["bound"] for row in analyzed(RECORDED, *self.tables)["data"]["kernel_launches"]]
        self.assertEqual([(row["bound"], row["n"]) for row in json.loads(done.stdout)["rows"]],
                         [(bound, bounds.count(bound)) for bound in sorted(set(bounds))])
        text = run("analyze", RECORDED, *self.tables, "--section", "measured_kernels").stdout
        self.assertIn("MEASURED KERNELS", text)
        self.assertIn("latency", text)

    def test_a_report_goes_through_ncu_where_there_is_one(self):
        report = self.folder / "rank0.ncu-rep"
        report.write_bytes(b"NVR\0")
        shutil.copytree(RECORDED, self.folder / "job")
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        os.symlink(STAND_IN, bin_folder / "ncu")
        raw = lockstep.data_path("nsight/ncu/esmm1.raw.csv")
        path = f"{bin_folder}:{os.environ['PATH']}"
        answer = analyzed(self.folder, PATH=path, STAND_IN_NCU_TABLE=raw, STAND_IN_NCU_CALLS=str(self.folder / "calls"))
        self.assertGreater(len(answer["data"]["kernel_launches"]), 0)
        self.assertEqual({row["rank"] for row in answer["data"]["kernel_launches"]}, {0})
        self.assertNotIn("ncu_report", {row["code"] for row in answer["ledger"]})
        answer = analyzed(self.folder, PATH="/usr/bin:/bin")
        self.assertEqual(answer["data"]["kernel_launches"], [])
        self.assertIn("ncu_report", {row["code"] for row in answer["ledger"]})

    def test_tables_alone_are_for_the_other_command(self):
        done = run("analyze", self.tables[0])
        self.assertEqual(done.returncode, 1)
        self.assertIn("lockstep kernels", done.stderr)


if __name__ == "__main__":
    unittest.main()
