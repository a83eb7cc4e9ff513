#!/usr/bin/env python3
"""`lockstep query` as a person or a script uses it: formats, files, the prompt, errors, exit statuses, interrupts."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import analyze_program as lockstep
from waiting import PATIENCE_S, wait_until

RECORDED = os.path.join(lockstep.SOURCE_ROOT, "examples", "recorded")
TICKS_OF_A_QUERY = 20
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


def processor_ticks(pid):
    """Processor time that the process has had, in ticks of the kernel (utime and stime of proc(5))."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat_file:
        return sum(map(int, stat_file.read().rpartition(") ")[2].split()[11:13]))


def query(*arguments, text=None, status=lockstep.DONE, cwd=None):
    done = subprocess.run([lockstep.PROGRAM, "query", *arguments], input=text, capture_output=True, encoding="utf-8",
                          env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=PATIENCE_S, cwd=cwd, check=False)
    if done.returncode != status or lockstep.CRASH.search(done.stderr):
        raise AssertionError(f"exit status {done.returncode}, not {status}: {arguments}\n{done.stderr}")
    return done


class FormatTest(unittest.TestCase):
    SQL = "SELECT 1 AS one, 'a,\"b\"\n' AS text, NULL AS absent, '' AS empty, 2.5 AS real, x'00ff' AS bytes"

    def test_csv_keeps_null_and_the_empty_text_apart(self):
        text = subprocess.run([lockstep.PROGRAM, "query", RECORDED, self.SQL, "--format", "csv"], capture_output=True, check=True).stdout
        self.assertEqual(text, b"one,text,absent,empty,real,bytes\r\n1,\"a,\"\"b\"\"\n\",,\"\",2.5,x'00ff'\r\n")
        self.assertEqual(next(csv.DictReader(io.StringIO(text.decode(), newline="")))["text"], 'a,"b"\n')

    def test_json_is_one_object_with_its_schema(self):
        document = json.loads(query(RECORDED, self.SQL, "--json").stdout)
        self.assertEqual(document, {"schema": "lockstep.query/1", "partial": False,
                                    "columns": ["one", "text", "absent", "empty", "real", "bytes"],
                                    "rows": [{"one": 1, "text": 'a,"b"\n', "absent": None, "empty": "", "real": 2.5,
                                              "bytes": "x'00ff'"}]})
        self.assertEqual(json.loads(query(RECORDED, "SELECT 1 WHERE 0", "--json").stdout)["rows"], [])

    def test_columns_of_one_name_stay_apart(self):
        rows = json.loads(query(RECORDED, "SELECT 1 AS a, 2 AS a, 3 AS a_2", "--json").stdout)["rows"]
        self.assertEqual(rows, [{"a": 1, "a_2": 2, "a_2_2": 3}])

    def test_ndjson_is_an_object_a_line(self):
        lines = query(RECORDED, "SELECT rank FROM ranks", "--format", "ndjson").stdout.splitlines()
        self.assertEqual([json.loads(line) for line in lines], [{"rank": rank} for rank in range(4)])

    def test_table_fits_its_width_and_shows_control_characters_as_marks(self):
        for width in (40, 60, 100):
            text = query(RECORDED, "SELECT * FROM events LIMIT 20", "--width", str(width)).stdout
            self.assertLessEqual(max(map(len, text.splitlines())), width)
        text = query(RECORDED, "SELECT char(27) || '[31m' || char(10) AS x, NULL AS y").stdout
        self.assertNotIn("\x1b", text)
        self.assertIn("?[31m?", text)
        self.assertIn("NULL", text)

    def test_ascii_and_colour(self):
        self.assertTrue(query(RECORDED, "SELECT 1 AS a", "--ascii").stdout.isascii())
        self.assertIn("\x1b[2m", query(RECORDED, "SELECT NULL AS a", "--color", "always").stdout)


class FileTest(unittest.TestCase):
    def test_sql_from_a_file_and_standard_input(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "q.sql")
            with open(path, "w", encoding="utf-8") as file:
                file.write("-- how many\nSELECT count(*) AS n FROM ranks; -- that is all\n")
            self.assertEqual(query(RECORDED, "-f", path, "--format", "csv").stdout.split(), ["n", "4"])
        self.assertEqual(query(RECORDED, "-f", "-", "--format", "csv", text="SELECT 7 AS n").stdout.split(), ["n", "7"])
        query(RECORDED, "-f", "/nowhere/q.sql", status=lockstep.FAILED)
        self.assertIn("Is a directory", query(RECORDED, "-f", "/", status=lockstep.FAILED).stderr)

    def test_output_goes_into_the_file_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.csv")
            done = query(RECORDED, "SELECT rank FROM ranks", "--format", "csv", "-o", path)
            self.assertEqual(done.stdout, "")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read().split(), ["rank", "0", "1", "2", "3"])
            query(RECORDED, ENDLESS, "--timeout", "0.3", "-o", path, status=lockstep.FAILED)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read().split(), ["rank", "0", "1", "2", "3"])
            self.assertEqual(os.listdir(folder), ["out.csv"])

    def test_a_hostile_query_leaves_no_trace_in_its_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for sql in ("ATTACH 'x.db' AS x", "VACUUM INTO 'x.db'", "SELECT load_extension('./x.so')", "SELECT writefile('x', 'y')",
                        "CREATE TABLE t AS SELECT * FROM events", "PRAGMA temp_store_directory = '.'"):
                query(RECORDED, sql, status=lockstep.MISUSED, cwd=folder)
            query(RECORDED, "SELECT count(*) FROM (SELECT * FROM events ORDER BY name, duration_ns LIMIT 100000)", cwd=folder)
            self.assertEqual(os.listdir(folder), [])


class StatusTest(unittest.TestCase):
    def test_wrong_sql_is_told_before_traces_are_read(self):
        for sql, words in {"SELECT idle_n FROM steps": "did you mean 'idle_ns'", "SELECT * FROM evnts": "did you mean 'events'",
                           "SELECT FROM events": "syntax error", "SELEC 1": "syntax error", "": "no statement",
                           "SELECT 1; SELECT 2": "one statement", "DROP TABLE events": "refused",
                           "SELECT percentle(1, 2)": "did you mean 'percentile'"}.items():
            self.assertIn(words, query("/nowhere", sql, status=lockstep.MISUSED).stderr)

    def test_the_place_is_marked(self):
        lines = query(RECORDED, "SELECT rank,\n  spam_ns\nFROM steps", status=lockstep.MISUSED).stderr.splitlines()
        self.assertIn("did you mean 'span_ns'", lines[0])
        self.assertEqual(lines[1:3], ["    spam_ns", "    ^"])

    def test_misuse(self):
        query(status=lockstep.MISUSED)
        query(RECORDED, status=lockstep.MISUSED)
        query("-i", status=lockstep.MISUSED)
        query("-i", RECORDED, "-f", "x", status=lockstep.MISUSED)
        query(RECORDED, "SELECT 1", "--format", "xml", status=lockstep.MISUSED)
        self.assertIn("did you mean 'kernels'", query("--describe", "kernel", status=lockstep.MISUSED).stderr)

    def test_a_missing_file_is_a_failure(self):
        query("/nowhere", "SELECT 1", status=lockstep.FAILED)

    def test_a_timeout_is_a_failure_that_says_what_helps(self):
        self.assertIn("--timeout", query(RECORDED, ENDLESS, "--timeout", "0.3", status=lockstep.FAILED).stderr)

    def test_memory_is_a_failure_that_says_what_helps(self):
        sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9000000) SELECT median(x) FROM c"
        self.assertIn("--max-memory", query(RECORDED, sql, "--max-memory", "8M", status=lockstep.FAILED).stderr)

    def test_a_partial_run_is_answered_and_said_to_be_partial(self):
        done = query(os.path.join(RECORDED, "rank0.json.gz"), "SELECT count(*) AS n FROM ranks", "--json", status=lockstep.PARTIAL)
        self.assertEqual(json.loads(done.stdout), {"schema": "lockstep.query/1", "partial": True, "columns": ["n"], "rows": [{"n": 1}]})

    def test_rows_and_time_are_told_unless_quiet(self):
        self.assertRegex(query(RECORDED, "SELECT 1").stderr, r"^1 row in [\d.]+ s from 4 traces\n$")
        self.assertEqual(query(RECORDED, "SELECT 1", "-q").stderr, "")

    def test_a_reader_that_leaves_ends_an_endless_query(self):
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
        process = subprocess.Popen([lockstep.PROGRAM, "query", RECORDED, endless, "--format", "csv"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.assertEqual(process.stdout.read(3), b"x\r\n")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=PATIENCE_S), 0)


class DescriptionTest(unittest.TestCase):
    def test_every_table_listed_can_be_described_and_asked(self):
        listed = re.findall(r"^  (\w+) {2,}", query("--list").stdout.split("\nFunctions")[0], re.MULTILINE)
        self.assertGreater(len(listed), 20)
        for table in listed:
            self.assertIn(f"{table}: ", query("--describe", table).stdout)
        # In two statements: one has 50 SELECTs at most.
        for tables in (listed[::2], listed[1::2]):
            sql = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables)
            self.assertEqual(len(query(RECORDED, sql, "--format", "ndjson").stdout.splitlines()), len(tables))

    def test_catalog_has_the_columns_that_describe_prints(self):
        rows = json.loads(query(RECORDED, "SELECT column_name FROM catalog WHERE table_name = 'steps'", "--json").stdout)["rows"]
        described = re.findall(r"^  (\w+)  \(", query("--describe", "steps").stdout, re.MULTILINE)
        self.assertEqual([row["column_name"] for row in rows], described)


class PromptTest(unittest.TestCase):
    unread = ""

    def test_script_on_standard_input(self):
        done = query("-i", "-q", RECORDED, text=".format csv\nSELECT count(*)\nAS n FROM\nranks;\n.describe steps\nSELECT 5 AS n;")
        self.assertTrue(done.stdout.startswith("n\n4\nsteps: "), done.stdout)
        self.assertTrue(done.stdout.endswith("n\n5\n"), done.stdout)

    def test_a_failure_goes_on_and_is_the_status(self):
        done = query("-i", "-q", RECORDED, text="SELECT nothing;\n.nonsense\nSELECT 5;\n.quit\nSELECT 6;", status=lockstep.MISUSED)
        self.assertIn("5", done.stdout)
        self.assertNotIn("6", done.stdout)
        self.assertIn("unknown command", done.stderr)

    def test_passes_run_when_a_table_of_theirs_is_named(self):
        text = "SELECT count(*) AS a FROM events;\nSELECT count(*) > 0 AS b FROM steps;\nSELECT count(*) > 0 AS c FROM findings;\n" \
               "SELECT count(*) > 0 AS d FROM steps;\nSELECT count(*) AS e FROM ledger;\n"
        together = query("-i", "-q", RECORDED, "--format", "ndjson", text=text).stdout.splitlines()
        alone = [query("-q", RECORDED, "--format", "ndjson", line).stdout.strip() for line in text.splitlines()]
        self.assertEqual(together, alone)

    def read_until(self, terminal, wanted, seconds=PATIENCE_S):
        """Reads up to `wanted`; what came behind it stays for the next call."""
        end = time.monotonic() + seconds
        while wanted not in self.unread:
            self.assertGreater(end, time.monotonic(), f"waited for {wanted!r}: {self.unread[-500:]!r}")
            if select.select([terminal], [], [], 1)[0]:
                self.unread += os.read(terminal, 4096).decode("utf-8", "replace")
        self.unread = self.unread.split(wanted, 1)[1]

    def test_terminal_has_a_prompt_a_history_and_interrupts(self):
        with tempfile.TemporaryDirectory() as state:
            pid, terminal = pty.fork()
            if pid == 0:
                os.environ.update({"XDG_STATE_HOME": state, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
                os.execv(lockstep.PROGRAM, [lockstep.PROGRAM, "query", "-i", RECORDED])
            try:
                self.read_until(terminal, "lockstep> ")
                os.write(terminal, b"SELECT 'x' ||\n'yz' AS joined;\n")
                self.read_until(terminal, "xyz")
                self.read_until(terminal, "lockstep> ")
                os.write(terminal, ENDLESS.encode() + b";\n")
                before = processor_ticks(pid)  # Reading the line takes less than this, and the query goes on for ever.
                wait_until(lambda: processor_ticks(pid) > before + TICKS_OF_A_QUERY, "the query to run")
                os.kill(pid, signal.SIGINT)
                self.read_until(terminal, "interrupted")
                os.write(terminal, b"SELECT 6 * 7 AS answer;\n")
                self.read_until(terminal, "42")
                os.write(terminal, b".quit\n")
                self.assertEqual(os.waitpid(pid, 0)[1], 0)
                pid = 0
            finally:
                if pid:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                os.close(terminal)
            history = os.path.join(state, "lockstep", "query_history")
            self.assertEqual(stat.S_IMODE(os.stat(history).st_mode), 0o600)
            with open(history, encoding="utf-8") as file:
                self.assertIn("answer", file.read())


if __name__ == "__main__":
    unittest.main()
