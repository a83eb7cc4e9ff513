#!/usr/bin/env python3
"""The command line from outside: exit statuses, suggestions, streams, completion."""
import csv
import gzip
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

import support
from support import run
from waiting import PATIENCE_S


def trace(rank, world_size, events):
    """A small CPU-only trace."""
    document = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}
    if world_size:
        document["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": world_size}
    return document


def operator(name, start_us, duration_us):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": duration_us}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep_cli_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, document):
        text = document if isinstance(document, str) else json.dumps(document)
        path = self.folder / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        return path

    def job(self, ranks=(0, 1), world_size=2):
        for rank in ranks:
            self.write(f"rank{rank}.json", trace(rank, world_size, [operator("aten::mm", 1000 * i, 500) for i in range(4)]))
        return self.folder


class ExitStatusTest(Folder):
    def test_done(self):
        self.assertEqual(run("analyze", self.job()).returncode, 0)

    def test_path_that_does_not_exist_fails_and_is_named(self):
        done = run("analyze", self.folder / "nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nowhere", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_name_with_control_characters_does_not_reach_the_terminal(self):
        self.assertNotIn("\x1b", run("analyze", self.folder / "a\x1b[31mb").stderr)

    def test_folder_without_a_trace_fails(self):
        self.write("config.json", {"a": 1})
        done = run("analyze", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_no_path_is_a_misuse(self):
        self.assertEqual(run("analyze").returncode, 2)

    def test_no_command_prints_help_and_is_a_misuse(self):
        done = run()
        self.assertEqual(done.returncode, 2)
        self.assertIn("Usage: lockstep <command>", done.stderr)

    def test_finding_at_or_above_the_limit(self):
        if not support.RECORDED.is_dir():
            self.skipTest("examples/recorded is absent")
        findings = json.loads(run("analyze", support.RECORDED, "--json").stdout)["data"]["findings"]
        if not findings:
            self.skipTest("examples/recorded has no finding")
        self.assertEqual(run("analyze", support.RECORDED, "--fail-on", "info").returncode, 3)

    def test_missing_rank_is_partial_and_the_rest_is_printed(self):
        done = run("analyze", self.job(ranks=(0,)), "--json")
        self.assertEqual(done.returncode, 4, done.stderr)
        document = json.loads(done.stdout)
        self.assertTrue(document["partial"])
        self.assertEqual(document["data"]["job"]["missing_ranks"], [1])

    def test_truncated_file_is_partial(self):
        self.job(ranks=(0,))
        whole = json.dumps(trace(1, 2, [operator("aten::mm", 1000 * i, 500) for i in range(4)]))
        self.write("rank1.json", whole.replace('"traceEvents"', '"x": 0, "traceEvents"')[:-30])
        self.assertEqual(run("analyze", self.folder).returncode, 4)


class MisuseTest(Folder):
    def check(self, words, *parts):
        done = run(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_unknown_command_gets_the_nearest_name(self):
        self.check(["analyse", "x"], "unknown command 'analyse'", "did you mean 'analyze'?")

    def test_unknown_flag_gets_the_nearest_name(self):
        self.check(["analyze", "x", "--jsn"], "unknown flag '--jsn'", "did you mean '--json'?")
        self.check(["analyze", "x", "--sectoin=idle"], "did you mean '--section'?")

    def test_unknown_section_and_pass_get_the_nearest_name(self):
        self.check(["analyze", "x", "--section", "kernel"], "did you mean 'kernels'?")
        self.check(["analyze", "x", "--pass", "idle,straglers"], "did you mean 'stragglers'?")

    def test_surplus_argument_is_refused(self):
        self.check(["version", "now"], "surplus argument 'now'")

    def test_bad_value_is_refused(self):
        self.check(["analyze", "x", "--top", "0"], "--top")
        self.check(["analyze", "x", "--top", "ten"], "--top")
        self.check(["analyze", "x", "--fail-on", "bad"], "--fail-on")

    def test_rank_and_step_that_are_not_there(self):
        self.check(["analyze", self.job(), "--rank", "7"], "--rank 7", "0 to 1")
        self.check(["analyze", self.job(), "--step", "3"], "--step 3")


class OutputTest(Folder):
    def test_data_goes_to_stdout_and_nothing_to_stderr(self):
        done = run("analyze", self.job())
        self.assertEqual(done.stderr, "")
        self.assertIn("WHERE THE TIME GOES", done.stdout)

    def test_timings_go_to_stderr_and_leave_stdout_as_it_was(self):
        plain = run("analyze", self.job(), "--json")
        timed = run("analyze", self.folder, "--json", "--timings")
        self.assertEqual(plain.stdout, timed.stdout)
        self.assertIn("ingest", timed.stderr)

    def test_output_does_not_depend_on_threads(self):
        if not support.RECORDED.is_dir():
            self.skipTest("examples/recorded is absent")
        one = run("analyze", support.RECORDED, "--json", "--threads", "1").stdout
        self.assertEqual(one, run("analyze", support.RECORDED, "--json", "--threads", "4").stdout)
        self.assertEqual(one, run("analyze", support.RECORDED, "--format", "json").stdout)

    def test_colour_only_when_asked_or_on_a_terminal(self):
        self.job()
        self.assertNotIn("\x1b", run("analyze", self.folder).stdout)
        self.assertIn("\x1b", run("analyze", self.folder, "--color", "always").stdout)
        self.assertIn("\x1b", run("analyze", self.folder, environment={"CLICOLOR_FORCE": "1"}).stdout)
        self.assertIn("\x1b", self.on_terminal({}))
        self.assertNotIn("\x1b", self.on_terminal({"NO_COLOR": "1"}))
        self.assertNotIn("\x1b", self.on_terminal({"TERM": "dumb"}))

    def on_terminal(self, environment):
        parent, child = pty.openpty()
        clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
        clean.update({"TERM": "xterm", "LC_ALL": "C.UTF-8"}, **environment)
        with subprocess.Popen([support.LOCKSTEP, "analyze", self.folder], stdout=child, stderr=subprocess.PIPE, env=clean) as process:
            os.close(child)
            text = b""
            try:
                while block := os.read(parent, 65536):
                    text += block
            except OSError:
                pass   # the terminal's end
            process.communicate()
        os.close(parent)
        return text.decode()

    def test_ascii_where_the_locale_is_not_utf8(self):
        self.job()
        self.assertTrue(run("analyze", self.folder, environment={"LC_ALL": "C"}).stdout.isascii())
        self.assertTrue(run("analyze", self.folder, "--ascii").stdout.isascii())
        self.assertFalse(run("analyze", self.folder).stdout.isascii())

    def test_reader_that_goes_away_is_no_error(self):
        self.write("rank0.json", trace(0, 1, [operator(f"operator_{i}", 1000 * i, 500) for i in range(3000)]))
        command = f"'{support.LOCKSTEP}' analyze '{self.folder}' --json; echo status $? >&2"
        with subprocess.Popen(["bash", "-c", f"({command}) | head -c 10 > /dev/null"], stderr=subprocess.PIPE, text=True) as process:
            _, talk = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(talk, "status 0\n")

    def test_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([support.LOCKSTEP, "analyze", self.job()], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be written", done.stderr)

    def test_csv_tables_agree_with_json(self):
        self.job()
        done = run("analyze", self.folder, "--json", "--csv", self.folder / "tables")
        data = json.loads(done.stdout)["data"]
        for name in ("breakdown", "operators", "ranks"):
            with open(self.folder / "tables" / f"{name}.csv", newline="") as table:
                rows = list(csv.DictReader(table))
            self.assertEqual(len(rows), len(data[name]), name)
            for row, expected in zip(rows, data[name]):
                for key in set(row) & set(expected):
                    value = expected[key]
                    self.assertEqual(row[key], "" if value is None else str(value), f"{name}.{key}")
        self.assertEqual(list((self.folder / "tables").glob("*.part")), [])

    def test_decompression_stops_at_the_limit(self):
        self.job(ranks=(0,))
        self.write("rank1.json.gz", trace(1, 2, [operator("aten::mm", 1000 * i, 500) for i in range(2000)]))
        done = run("analyze", self.folder, "--max-json-size", "64K")
        self.assertEqual(done.returncode, 4, done.stderr)

    def test_list_names_every_pass_with_its_question(self):
        done = run("analyze", "--list")
        self.assertEqual(done.returncode, 0)
        names = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(names, ["breakdown", "idle", "kernels", "operators", "collectives", "wait_states", "stragglers", "imbalance",
                                 "memory", "launch", "critical_path", "groups", "ddp", "fsdp", "pipeline", "moe", "inference", "regions",
                                 "counters", "flops", "measured_kernels", "stages",
                                 "what_if", "bubbles", "fabric"])


class CompletionTest(unittest.TestCase):
    def flags(self):
        return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", run("analyze", "--help").stdout.split("Examples")[0]))

    def test_every_flag_is_in_every_script(self):
        for shell in ("bash", "zsh", "fish"):
            script = run("completion", shell).stdout
            for flag in self.flags():
                self.assertIn(f"-l {flag[2:]} " if shell == "fish" else flag, script, shell)

    def test_bash_completes_commands_flags_and_lists(self):
        if shutil.which("bash") is None:
            self.skipTest("no bash")
        script = run("completion", "bash").stdout

        def complete(*words):
            quoted = " ".join(f"'{word}'" for word in words)
            text = f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _lockstep; echo "${{COMPREPLY[*]}}"'
            return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout.split()

        self.assertEqual(complete("lockstep", "ana"), ["analyze"])
        self.assertEqual(complete("lockstep", "analyze", "--js"), ["--json"])
        self.assertEqual(complete("lockstep", "analyze", "--section", "idle,ker"), ["idle,kernels"])
        self.assertEqual(complete("lockstep", "analyze", "--color", "n"), ["never"])
        self.assertEqual(complete("lockstep", "completion", "z"), ["zsh"])

    def test_scripts_are_sound_to_their_shells(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=run("completion", shell).stdout, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_unknown_shell_is_a_misuse(self):
        done = run("completion", "fihs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'fish'?", done.stderr)


class VersionTest(unittest.TestCase):
    def test_version_command_and_flag_agree(self):
        first = run("version").stdout.splitlines()[0]
        self.assertRegex(first, r"^lockstep \d+\.\d+\.\d+$")
        self.assertEqual(run("--version").stdout.strip(), first)


if __name__ == "__main__":
    unittest.main()
