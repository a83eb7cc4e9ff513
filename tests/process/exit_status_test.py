"""Exit status and streams of `lockstep`: what a script relies on. 0 done, 1 failed, 2 misused, 3 finding, 4 partial."""

import gzip
import json
import os
import pathlib
import shutil
import tempfile
import unittest

from lockstep_program import DONE, FAILED, FINDING, MISUSED, PARTIAL, RECORDED, run


class ExitStatusTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def copy_recorded(self, ranks=range(4)):
        for rank in ranks:
            shutil.copy(RECORDED / f"rank{rank}.json.gz", self.folder)

    def test_whole_traces_are_done_and_talk_stays_off_stdout(self):
        done = run("analyze", RECORDED)
        self.assertEqual(DONE, done.returncode, done.stderr)
        self.assertNotIn("\x1b", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_a_finding_at_the_severity_asked_for_is_3(self):
        self.assertEqual(FINDING, run("analyze", RECORDED, "--fail-on", "info").returncode)

    def test_a_truncated_file_is_partial_and_named(self):
        self.copy_recorded()
        text = gzip.decompress((self.folder / "rank1.json.gz").read_bytes())
        (self.folder / "rank1.json.gz").write_bytes(gzip.compress(text[: len(text) // 2]))
        done = run("analyze", "--json", self.folder)
        self.assertEqual(PARTIAL, done.returncode, done.stderr)
        report = json.loads(done.stdout)
        self.assertIs(True, report["partial"])
        self.assertEqual([0, 1, 2, 3], [row["rank"] for row in report["data"]["ranks"]])
        self.assertTrue(any("rank1.json.gz" in json.dumps(row) for row in report["ledger"]), report["ledger"])

    def test_a_cut_gzip_stream_is_partial(self):
        self.copy_recorded()
        whole = (self.folder / "rank3.json.gz").read_bytes()
        (self.folder / "rank3.json.gz").write_bytes(whole[: len(whole) // 2])
        self.assertEqual(PARTIAL, run("analyze", self.folder).returncode)

    def test_a_file_that_is_no_trace_is_refused_by_name_and_the_rest_is_analysed(self):
        self.copy_recorded()
        (self.folder / "rank4.json").write_text("this is not a trace\n", encoding="utf-8")
        done = run("analyze", "--json", self.folder, self.folder / "rank4.json")
        self.assertEqual(PARTIAL, done.returncode, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(4, len(report["data"]["ranks"]))
        self.assertTrue(any("rank4.json" in json.dumps(row) for row in report["ledger"]), report["ledger"])

    def test_what_follows_a_repeatable_option_is_a_path(self):
        for arguments in (["compare", "--fail-on", "slower"], ["scaling", "--no-sync", "quick"],
                          ["nccl-log", "--fail-on", "error"], ["hang", "--fail-on", "any"],
                          ["analyze", "--communication-kernel", "mine"]):
            with self.subTest(arguments):
                done = run(*arguments, self.folder / "first", self.folder / "second")
                self.assertEqual(FAILED, done.returncode, done.stderr)
                self.assertIn("first", done.stderr)

    def test_a_missing_rank_is_partial(self):
        self.copy_recorded([0, 2, 3])
        self.assertEqual(PARTIAL, run("analyze", self.folder).returncode)

    def test_nothing_to_analyse_is_failed(self):
        for arguments in (["analyze", self.folder], ["analyze", self.folder / "absent"]):
            done = run(*arguments)
            self.assertEqual(FAILED, done.returncode, arguments)
            self.assertEqual("", done.stdout)
            self.assertTrue(done.stderr.strip())

    def test_only_damaged_input_is_failed(self):
        (self.folder / "rank0.json").write_bytes(os.urandom(4096))
        done = run("analyze", self.folder)
        self.assertEqual(FAILED, done.returncode, done.stdout)
        self.assertIn("rank0.json", done.stderr)

    def test_misuse_is_2_and_says_what_was_meant(self):
        for arguments, hint in (
            ([], None), (["analyze"], "PATH"), (["analyse", RECORDED], "analyze"),
            (["analyze", RECORDED, "--jsno"], "--json"), (["analyze", RECORDED, "--section", "kernel"], "kernels"),
            (["analyze", RECORDED, "--top", "-1"], "--top"), (["version", "surplus"], "surplus"),
        ):
            done = run(*arguments)
            self.assertEqual(MISUSED, done.returncode, arguments)
            self.assertEqual("", done.stdout, arguments)
            self.assertIn(hint or "", done.stderr, arguments)

    def test_help_and_version_go_to_stdout(self):
        for arguments in (["--help"], ["analyze", "--help"], ["version"]):
            done = run(*arguments)
            self.assertEqual(DONE, done.returncode, arguments)
            self.assertTrue(done.stdout.strip())

    def test_a_reader_that_leaves_is_no_crash(self):
        import subprocess
        from lockstep_program import BINARY
        with subprocess.Popen([BINARY, "analyze", str(RECORDED), "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as program:
            program.stdout.read(10)
            program.stdout.close()
            program.stderr.read()
        self.assertNotIn(program.returncode, (-6, -11, 134, 139))


if __name__ == "__main__":
    unittest.main()
