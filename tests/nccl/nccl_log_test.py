#!/usr/bin/env python3
"""`lockstep nccl-log` from outside: text against golden files, JSON against its schema, statuses, hostile files.
`nccl_log_test.py --update` writes the golden files anew; review the diff like code."""
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import analyze_program as lockstep
from page_file import Page
from waiting import PATIENCE_S

try:
    import jsonschema
except ImportError:
    jsonschema = None

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
SCHEMA = pathlib.Path(lockstep.SOURCE_ROOT) / "docs/schema/nccl-log-1.schema.json"
CASES = {
    # name: words
    "text": ["job.log", "topo.xml", "--topology"],
    "text_ascii": ["job.log", "topo.xml", "--topology", "--ascii", "--all", "--width", "70"],
}


def run(*words, cwd=GOLDEN, **kwargs):
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE", "LC_ALL", "LANG")}
    environment["LC_ALL"] = "C.UTF-8"
    return subprocess.run([lockstep.PROGRAM, "nccl-log", *map(str, words)], capture_output=True, text=True, errors="replace",
                          cwd=cwd, env=environment, timeout=PATIENCE_S, **kwargs)


class GoldenTest(unittest.TestCase):
    maxDiff = None

    def test_text_is_as_recorded(self):
        for name, words in CASES.items():
            with self.subTest(name):
                done = run(*words)
                self.assertEqual(0, done.returncode, done.stderr)
                path = GOLDEN / f"{name}.txt"
                if UPDATE:
                    path.write_text(done.stdout)
                self.assertEqual(path.read_text(), done.stdout, f"rewrite with {pathlib.Path(__file__).name} --update")

    def test_no_line_is_wider_than_asked(self):
        for words, width in ((CASES["text"], 80), (CASES["text_ascii"], 70)):
            for line in run(*words).stdout.splitlines():
                self.assertLessEqual(len(line), width, line)


class JsonTest(unittest.TestCase):
    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_output_fits_its_schema(self):
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        answer = json.loads(run("--json", "job.log", "topo.xml").stdout)
        jsonschema.validate(answer, schema)

    def test_findings_name_ranks_and_lines(self):
        answer = json.loads(run("--json", "job.log").stdout)
        self.assertFalse(answer["partial"])
        findings = {row["kind"] + "/" + row["severity"]: row for row in answer["data"]["findings"]}
        first = findings["ib_completion/error"]
        self.assertTrue(first["first"])
        self.assertEqual([1], first["ranks"])
        self.assertEqual("10.0.0.2<41234>", first["peer"])
        self.assertIn("[2026-11-21 03:35:23]", (GOLDEN / "job.log").read_text().splitlines()[first["line"] - 1])
        self.assertEqual([2], findings["ib_completion/warning"]["ranks"])
        self.assertEqual([2], findings["collective_mismatch/error"]["ranks"])
        self.assertEqual([3], findings["version_mismatch/error"]["ranks"])
        self.assertEqual([3], findings["interface_mismatch/warning"]["ranks"])
        self.assertEqual([0, 1, 2, 3], findings["slow_init/warning"]["ranks"])
        self.assertIn("nccl_lines_unknown", [row["code"] for row in answer["ledger"]])

    def test_the_way_files_are_cut_and_packed_changes_nothing(self):
        whole = json.loads(run("--json", "job.log").stdout)["data"]
        with tempfile.TemporaryDirectory() as folder:
            lines = (GOLDEN / "job.log").read_text().splitlines(True)
            for rank in range(4):
                text = "".join(line for line in lines if line.startswith(f"[1,{rank}]"))
                with gzip.open(f"{folder}/rank{rank}.log.gz", "wt") as file:
                    file.write(text)
            parts = json.loads(run("--json", folder).stdout)["data"]
        key = lambda data: sorted((row["kind"], row["severity"], row["ranks"], row["text"]) for row in data["findings"])
        self.assertEqual(key(whole), key(parts))
        self.assertEqual(whole["communicators"][0]["rings"], parts["communicators"][0]["rings"])


class StatusTest(unittest.TestCase):
    def test_fail_on(self):
        self.assertEqual(lockstep.DONE, run("job.log").returncode)
        self.assertEqual(lockstep.FINDING, run("job.log", "--fail-on", "error").returncode)
        self.assertEqual(lockstep.FINDING, run("job.log", "--fail-on", "slow_init").returncode)
        self.assertEqual(lockstep.DONE, run("job.log", "--fail-on", "nvlink").returncode)
        self.assertEqual(lockstep.FINDING, run("topo.xml", "--fail-on", "warning").returncode)
        self.assertEqual(lockstep.MISUSED, run("job.log", "--fail-on", "No such").returncode)
        self.assertEqual(lockstep.MISUSED, run().returncode)

    def test_a_file_that_cannot_be_read_makes_it_partial(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder, "broken.xml")
            broken.write_text("<system><cpu></system>")
            done = run("job.log", broken)
            self.assertEqual(lockstep.PARTIAL, done.returncode)
            self.assertIn("mismatched tag", done.stdout)
            self.assertEqual(lockstep.FAILED, run(broken).returncode)
            self.assertEqual(lockstep.FAILED, run(pathlib.Path(folder, "absent")).returncode)


class PageTest(unittest.TestCase):
    def test_the_page_needs_nothing_from_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "nccl.html")
            answer = run("job.log", "topo.xml", "--json", "-o", page)
            self.assertEqual(0, answer.returncode)
            page = Page(page)
        self.assertIn("default-src 'none'", page.text)
        self.assertIn("retry exceeded (12)", page.summary())
        self.assertEqual(json.loads(answer.stdout)["data"], page.data)
        self.assertEqual("nccl", page.document["kind"])

    def test_a_log_cannot_write_into_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            log, page = pathlib.Path(folder, "a.log"), pathlib.Path(folder, "nccl.html")
            log.write_text("n:1:2 [0] NCCL WARN <script>alert(1)</script>\n")
            self.assertEqual(0, run(log, "-o", page).returncode)
            self.assertNotIn("<script>alert", page.read_text())


class HostileTest(unittest.TestCase):
    def test_damage_is_survived(self):
        text = (GOLDEN / "job.log").read_bytes()
        xml = (GOLDEN / "topo.xml").read_bytes()
        chance = random.Random(7)
        with tempfile.TemporaryDirectory() as folder:
            for i in range(40):
                for name, whole in (("a.log", text), ("a.xml", xml)):
                    damaged = bytearray(whole[: chance.randrange(1, len(whole))])
                    for _ in range(chance.randrange(40)):
                        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
                    pathlib.Path(folder, name).write_bytes(damaged)
                done = run("a.log", "a.xml", "--json", cwd=folder)
                self.assertIn(done.returncode, (0, 1, 4), (i, done.stderr))
                self.assertIsNone(lockstep.CRASH.search(done.stderr), done.stderr)
                if done.returncode != 1:
                    json.loads(done.stdout)

    def test_a_line_without_end_and_colours(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "a.log")
            with log.open("wb") as file:
                for _ in range(64):
                    file.write(b"NCCL INFO " * (1 << 16) + bytes(1 << 16))
                file.write(b"\n\x1b[31mn:1:2 [0] NCCL INFO Using network \x1b[1mIB\x1b[0m\r\n")
            data = json.loads(run("--json", log).stdout)["data"]
        self.assertEqual(["IB"], [process["network"] for process in data["processes"]])


UPDATE = "--update" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--update"])
