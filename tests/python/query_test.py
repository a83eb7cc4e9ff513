"""Queries and the report page from Python: the command's rows, the command's page."""

import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import analyze_program as program
import lockstep
import numpy as np
import pyarrow as pa
from samples import RECORDED, SOURCE, recorded
from waiting import PATIENCE_S

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"


def command_rows(sql, *paths):
    process = program.run(["query", "--quiet", "--json", *map(str, paths), sql])
    if process.returncode not in (program.DONE, program.PARTIAL):
        raise AssertionError(process.stderr.decode("utf-8"))
    return json.loads(process.stdout)


class QueryTest(unittest.TestCase):
    maxDiff = 4000

    def check(self, sql, run, *paths):
        expected = command_rows(sql, *paths)
        table = run.query(sql)
        self.assertEqual(list(table.columns), expected["columns"], sql)
        self.assertEqual(table.to_dicts(), expected["rows"], sql)

    def test_every_table_has_the_commands_rows(self):
        names = recorded().query("SELECT DISTINCT table_name FROM catalog")["table_name"]
        self.assertGreater(len(names), 10)
        for name in names:
            self.check(f"SELECT * FROM {name} LIMIT 500", recorded(), RECORDED)

    def test_the_documents_questions_have_the_commands_rows(self):
        text = (SOURCE / "docs" / "query.md").read_text(encoding="utf-8")
        questions = re.findall(r"^```sql\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(questions), 10)
        for sql in questions:
            with self.subTest(sql=sql):
                self.check(sql, recorded(), RECORDED)

    def test_columns_have_types_and_units(self):
        table = recorded().query("SELECT rank, sum(duration_ns) AS total_ns, avg(duration_ns) AS mean_ns, max(name) AS name, "
                                 "NULL AS missing, CASE WHEN rank > 1 THEN rank END AS late FROM events GROUP BY rank")
        self.assertEqual(table["rank"].dtype, np.int64)
        self.assertEqual(table["mean_ns"].dtype, np.float64)
        self.assertEqual(table.units, {"total_ns": "ns", "mean_ns": "ns"})
        self.assertEqual(table["late"].tolist(), [None, None, 2, 3])
        self.assertEqual(table.to_dicts()[0]["missing"], None)
        self.assertEqual(table["total_ns"][0], recorded().events(0)["duration_ns"].sum())
        self.assertEqual(pa.table(table).to_pylist(), table.to_dicts())
        self.assertEqual(len(table.to_pandas()), 4)

    def test_no_rows_keep_their_columns(self):
        table = recorded().query("SELECT rank, span_ns FROM steps WHERE rank = 99")
        self.assertEqual((len(table), table.columns), (0, ("rank", "span_ns")))

    def test_it_only_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / "stolen"
            for sql in ("DELETE FROM steps", "CREATE TABLE t(x)", f"ATTACH '{target}' AS t", "PRAGMA journal_mode", "",
                        "SELECT 1; SELECT 2", f"VACUUM INTO '{target}'", "SELECT load_extension('x')",
                        f"SELECT readfile('{__file__}')"):
                with self.assertRaises(lockstep.InvalidArgumentError):
                    recorded().query(sql)
            self.assertFalse(target.exists())

    def test_wrong_names_are_told_with_the_place(self):
        with self.assertRaises(lockstep.InvalidArgumentError) as context:
            recorded().query("SELECT rank,\n  spam_ns FROM steps")
        self.assertIn("span_ns", str(context.exception))
        self.assertIn("  spam_ns FROM steps\n  ^", str(context.exception))

    def test_limits_end_a_query(self):
        with self.assertRaisesRegex(lockstep.LimitExceededError, "timeout_s"):
            recorded().query(ENDLESS, timeout_s=0.2)
        with self.assertRaisesRegex(lockstep.LimitExceededError, "memory_bytes"):
            recorded().query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3000000) "
                             "SELECT x FROM c ORDER BY -x LIMIT 1 OFFSET 2999999", memory_bytes=8 << 20)
        self.assertEqual(recorded().query("SELECT 1 AS one").to_dicts(), [{"one": 1}])

    def test_other_users_of_sqlite_keep_their_memory(self):
        recorded().query("SELECT count(*) FROM events", memory_bytes=16 << 20)
        with sqlite3.connect(":memory:") as connection:
            size = connection.execute("SELECT length(randomblob(50000000))").fetchone()[0]
        self.assertEqual(size, 50_000_000)

    def test_several_threads_may_ask(self):
        expected = recorded().query("SELECT rank, count(*) AS n FROM events GROUP BY rank").to_dicts()
        wrong = []

        def ask():
            for _ in range(5):
                if recorded().query("SELECT rank, count(*) AS n FROM events GROUP BY rank").to_dicts() != expected:
                    wrong.append(1)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_control_c_ends_a_query(self):
        script = textwrap.dedent(f"""
            import os, signal, sys, threading, lockstep
            run = lockstep.load(sys.argv[1])
            run.analyze()
            try:
                threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                run.query({ENDLESS!r}, timeout_s=100)
            except KeyboardInterrupt:
                print("interrupted")
            print(len(run.query("SELECT rank FROM ranks")))
        """)
        done = subprocess.run([sys.executable, "-c", script, RECORDED], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.stdout.split(), ["interrupted", "4"], done.stderr)


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_page_is_the_commands(self):
        mine, other = self.folder / "mine.html", self.folder / "other.html"
        recorded().save_report(mine)
        process = program.run(["analyze", "--quiet", "-o", str(other), str(RECORDED)])
        self.assertEqual(process.returncode, program.DONE, process.stderr)
        self.assertEqual(mine.read_bytes(), other.read_bytes())
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["mine.html", "other.html"])

    def test_a_smaller_page_leaves_something_out(self):
        whole, small = self.folder / "whole.html", self.folder / "small.html"
        recorded().save_report(whole)
        recorded().save_report(small, page_bytes=200_000)
        self.assertLess(small.stat().st_size, whole.stat().st_size)

    def test_a_file_that_can_not_be_written_is_told_and_nothing_is_left(self):
        with self.assertRaises(lockstep.NotFoundError) as context:
            recorded().save_report(self.folder / "nowhere" / "page.html")
        self.assertIn("nowhere", str(context.exception))
        with self.assertRaises(lockstep.InvalidArgumentError):
            recorded().save_report(self.folder)
        old = self.folder / "old.html"
        old.write_text("old", encoding="utf-8")
        if os.geteuid() != 0:
            self.folder.chmod(0o500)
            self.addCleanup(self.folder.chmod, 0o700)
            with self.assertRaises(lockstep.PermissionDeniedError):
                recorded().save_report(old)
        self.assertEqual(old.read_text(encoding="utf-8"), "old")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["old.html"])


if __name__ == "__main__":
    unittest.main()
