"""`lockstep export csv`: the files of `analyze --csv`, some of them, or one on standard output."""

import csv
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import analyze_program as lockstep  # noqa: E402

RECORDED = os.path.join(lockstep.SOURCE_ROOT, "examples", "recorded")


def contents(folder):
    files = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            files[name] = file.read()
    return files


class CsvTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def export(self, *arguments):
        return lockstep.run(["export", "csv", RECORDED, "--quiet", *arguments])

    def test_the_files_are_those_of_analyze(self):
        one, other = os.path.join(self.folder, "one"), os.path.join(self.folder, "other")
        self.assertEqual(lockstep.DONE, self.export("--output", one).returncode)
        self.assertEqual(lockstep.DONE, lockstep.run(["analyze", RECORDED, "--csv", other, "--quiet"]).returncode)
        self.assertEqual(contents(one), contents(other))
        self.assertEqual(41, len(contents(one)))

    def test_only_the_tables_that_are_named(self):
        self.assertEqual(lockstep.DONE, self.export("--output", self.folder, "--table", "steps,ledger").returncode)
        self.assertEqual({"steps.csv", "ledger.csv"}, set(contents(self.folder)))

    def test_one_table_is_printed(self):
        done = self.export("--table", "steps")
        self.assertEqual(lockstep.DONE, done.returncode)
        rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        wanted = lockstep.analyze_whole(RECORDED).data["steps"]
        self.assertEqual([(row["rank"], row["step"], row["span_ns"]) for row in wanted],
                         [(int(row["rank"]), int(row["step"]), int(row["span_ns"])) for row in rows])

    def test_misuse_is_told(self):
        for flags, word in (([], b"--output"), (["--table", "steps,ledger"], b"--output"), (["--table", "step"], b"did you mean 'steps'"),
                            (["--unknown"], b"unknown flag")):
            done = self.export(*flags)
            self.assertEqual(lockstep.MISUSED, done.returncode)
            self.assertIn(word, done.stderr)
            self.assertEqual(b"", done.stdout)

    def test_a_format_that_is_not_there_gets_the_nearest(self):
        done = lockstep.run(["export", "speedscop", RECORDED])
        self.assertEqual(lockstep.MISUSED, done.returncode)
        self.assertIn(b"did you mean 'speedscope'", done.stderr)


if __name__ == "__main__":
    unittest.main()
