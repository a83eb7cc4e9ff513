"""Logs of ranks: `lockstep run --logs` around real commands and a real job, `lockstep logs` over what they wrote."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from lockstep_program import BINARY, DONE, MISUSED, PARTIAL, SOURCE
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = json.loads((SOURCE / "docs/schema/logs-1.schema.json").read_text(encoding="utf-8"))
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z \d+\.\d{9} ([TDIWEF]) rank(-|\d+) (\S+) (\S+): (.*)")
JOB = """
import os, sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
print("world of", dist.get_world_size())
total = torch.ones(4)
dist.all_reduce(total)
print(f"sum {total.sum().item():.0f}")
print(f"rank {rank} was here", file=sys.stderr)
dist.monitored_barrier()  # Not barrier(): its own work may be let go of too late for the end (pytorch/pytorch#190489).
if rank == 2 and len(sys.argv) > 1:
    raise ValueError("planted")
dist.destroy_process_group()
"""


class LogsCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.logs = self.folder / "logs"
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("SLURM_", "KINETO_")) and name not in ("RANK", "WORLD_SIZE", "PYTHONUNBUFFERED")}

    def words(self, *command, flags=(), flag="--logs"):
        return list(map(str, [BINARY, "run", "--profile", "none", flag, self.logs, *flags, "--", *command]))

    def run_words(self, words, rank=None, **options):
        variables = {} if rank is None else {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "4"}
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", PATIENCE_S)
        return subprocess.run(list(map(str, words)), capture_output=True, text=True,
                              env={**self.environment, **variables}, check=options.pop("check", False), **options)

    def shell(self, script, rank=None, flags=(), **options):
        return self.run_words(self.words("sh", "-c", script, flags=flags), rank, **options)

    def lockstep_logs(self, *arguments):
        return self.run_words([BINARY, "logs", *arguments])

    def lines(self, pattern="*.log"):
        """Of the one log there is: level, rank, source, text."""
        (log,) = self.logs.glob(pattern)
        matches = [LINE.fullmatch(line) for line in log.read_text(encoding="utf-8").splitlines()]
        self.assertTrue(all(matches), log.read_text(encoding="utf-8"))
        return [(match[1], match[2], match[4], match[5]) for match in matches]


class RunTest(LogsCase):
    def test_each_line_has_a_head_and_the_console_is_as_without(self):
        done = self.shell("echo one; echo 'ERROR two' >&2; printf three; exit 7", rank=0)
        self.assertEqual((7, "one\nthree", "ERROR two\n"), (done.returncode, done.stdout, done.stderr))
        self.assertEqual({("I", "0", "out", "one"), ("E", "0", "err", "ERROR two"), ("I", "0", "out", "three")}, set(self.lines()))

    def test_other_ranks_are_silent_unless_asked_for(self):
        done = self.shell("echo hidden; echo hidden >&2", rank=3)
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        done = self.shell("echo shown", rank=3, flags=["--console", "all"])
        self.assertEqual("shown\n", done.stdout)
        done = self.shell("echo hidden", rank=0, flags=["--console", "none"])
        self.assertEqual("", done.stdout)
        done = self.shell("exit 5", rank=1)
        self.assertEqual(5, done.returncode)
        self.assertRegex(done.stderr, r"^lockstep: rank 1: ended with status 5; what it printed: .*/rank1\..*\.log\n$")

    def test_a_rank_that_is_killed_has_all_it_wrote(self):
        done = self.shell("echo last; kill -9 $$", rank=1)
        self.assertEqual(128 + signal.SIGKILL, done.returncode)
        self.assertEqual([("I", "1", "out", "last")], self.lines())

    def test_signals_reach_the_command(self):
        process = subprocess.Popen(self.words("sh", "-c", "trap 'echo term; exit 9' TERM; echo up; while :; do sleep 0.01; done"),
                                   env={**self.environment, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertEqual("up\n", process.stdout.readline())
        process.terminate()
        self.assertEqual(9, process.wait(PATIENCE_S))
        self.assertEqual(["up", "term"], [line[3] for line in self.lines()])

    def test_python_is_not_held_back_by_a_buffer(self):
        done = self.run_words(self.words(sys.executable, "-c", "import os; print('said'); os.kill(os.getpid(), 9)"), 1)
        self.assertEqual(128 + signal.SIGKILL, done.returncode)
        self.assertEqual(["said"], [line[3] for line in self.lines()])

    def test_logs_are_rotated_and_read_in_order(self):
        done = self.shell("i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); done", rank=0,
                          flags=["--log-size", "10kB", "--log-files", "9", "--console", "none", "--log-plain"])
        self.assertEqual(0, done.returncode, done.stderr)
        files = sorted(self.logs.iterdir())
        self.assertGreater(len(files), 2)
        self.assertLessEqual(max(file.stat().st_size for file in files), 10_000)
        self.run_words(["gzip", *[file for file in files if file.suffix == ".2"]])
        shown = self.lockstep_logs(self.logs, "--no-fold")
        self.assertEqual([f"line {i}" for i in range(400)], [line.partition(": ")[2] for line in shown.stdout.splitlines()])

    def test_rotated_logs_are_compressed_while_the_command_runs(self):
        # As long as it takes: the thread has what others leave of the processors.
        wait = 'i=0; until [ "$(ls "$LOCKSTEP_LOG_DIR" | grep -c gz$)" -gt 5 ]; do sleep 0.1; i=$((i+1)); echo tick $i; done'
        done = self.shell("seq 100000; " + wait, rank=0, flags=["--log-size", "500kB", "--log-files", "50", "--console", "none"])
        self.assertEqual(0, done.returncode, done.stderr)
        files = sorted(path.name for path in self.logs.iterdir())
        compressed = [name for name in files if name.endswith(".gz")]
        self.assertGreater(len(compressed), 5, files)
        self.assertFalse([name for name in files if name.endswith(".tmp")])
        self.assertEqual(len(files), len({name.removesuffix(".gz") for name in files}), "of each only one form is left")
        shown = self.lockstep_logs(self.logs, "--no-fold")
        texts = [line.partition(": ")[2] for line in shown.stdout.splitlines()]
        self.assertEqual([f"{i}" for i in range(1, 100001)] + [f"tick {i}" for i in range(1, len(texts) - 99999)], texts)

    def test_following_while_files_are_compressed_loses_and_doubles_nothing(self):
        stop = self.folder / "stop"
        script = f"i=0; while [ ! -e {stop} ]; do echo line $i; i=$((i+1)); case $i in *00) sleep 0.05;; esac; done; echo end"
        job = subprocess.Popen(self.words("sh", "-c", script, flags=["--log-size", "10kB", "--log-files", "999", "--console", "none"]),
                               stdin=subprocess.DEVNULL, env={**self.environment, "RANK": "0"})
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        wait_until(lambda: self.logs.is_dir() and any(self.logs.iterdir()), "the first log", job)
        follower = subprocess.Popen([BINARY, "logs", str(self.logs), "--follow", "--no-fold"], stdout=subprocess.PIPE, text=True,
                                    env=self.environment)
        self.addCleanup(follower.stdout.close)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        shown = []
        for line in follower.stdout:
            shown.append(line.rstrip("\n").partition(": ")[2])
            if len(shown) == 50:
                follower.send_signal(signal.SIGSTOP)  # It falls back: what it has not read is compressed meanwhile.
                wait_until(lambda: sum(path.suffix == ".gz" for path in self.logs.iterdir()) >= 20, "compressed files", job)
                follower.send_signal(signal.SIGCONT)
                stop.touch()
            if shown[-1] == "end":
                break
        self.assertGreater(len(shown), 1000)
        self.assertEqual([f"line {i}" for i in range(len(shown) - 1)] + ["end"], shown)

    def test_killed_while_it_compresses_it_leaves_the_plain_file(self):
        flags = ["--log-size", "40MB", "--console", "none"]
        process = subprocess.Popen(self.words("sh", "-c", "seq 800000; exec sleep 60", flags=flags), stdin=subprocess.DEVNULL,
                                   env={**self.environment, "RANK": "0"}, start_new_session=True)

        def is_compressing():
            """It is held while it does, and goes on where it had ended by then."""
            if not self.logs.is_dir() or not list(self.logs.glob("*.gz.tmp")):
                return False
            os.kill(process.pid, signal.SIGSTOP)
            if list(self.logs.glob("*.gz.tmp")):
                return True
            os.kill(process.pid, signal.SIGCONT)
            return False
        try:
            wait_until(is_compressing, "the compressing", process, every_s=0)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
        [left] = self.logs.glob("*.gz.tmp")
        self.assertEqual(1, len(list(self.logs.glob("*.log.1"))))
        shown = [line.partition(": ")[2] for line in self.lockstep_logs(self.logs, "--no-fold").stdout.splitlines()]
        [newest] = self.logs.glob("*.log")
        if not newest.read_bytes().endswith(b"\n"):
            shown.pop()  # The kill came in the middle of writing it.
        self.assertGreater(len(shown), 500_000)
        self.assertEqual([str(i) for i in range(1, len(shown) + 1)], shown)
        # The next one that compresses here takes away what was forgotten.
        os.utime(left, (time.time() - 7200, time.time() - 7200))
        again = self.shell(f"seq 10000; while [ -e {left} ]; do sleep 0.1; done", rank=1, flags=["--log-size", "100kB", "--console", "none"])
        self.assertEqual(0, again.returncode, again.stderr)

    def test_a_lot_of_output_comes_whole_and_the_job_does_not_wait_for_it(self):
        done = self.shell("seq 300000", rank=0)
        self.assertEqual("".join(f"{i}\n" for i in range(1, 300001)), done.stdout)
        self.assertEqual(300000, len(self.lines()))

    def test_what_the_command_leaves_behind_writes_on(self):
        done = self.shell("(for i in $(seq 600); do [ -e go ] && break; sleep 0.1; done; echo late; echo $? > after) & echo early", rank=1, cwd=self.folder)
        self.assertEqual(0, done.returncode)
        (self.folder / "go").touch()  # Nobody waited for what is still there.
        wait_until(lambda: len(self.lines()) >= 2, "what came late")
        self.assertEqual(["early", "late"], [line[3] for line in self.lines()])
        after = self.folder / "after"
        wait_until(lambda: after.exists() and after.read_text(), "its status")
        self.assertEqual("0\n", after.read_text())

    def test_a_command_that_is_not_there_says_so(self):
        done = self.run_words(self.words("/no/such/program"), 0)
        self.assertEqual(127, done.returncode)
        self.assertIn("there is no such program", done.stderr)
        self.assertEqual([], list(self.logs.iterdir()))

    def test_flags_of_logs_need_logs(self):
        done = self.run_words([BINARY, "run", "--log-json", "--", "true"])
        self.assertEqual(MISUSED, done.returncode)
        self.assertIn("--log-json is for --logs DIR", done.stderr)

    def test_in_front_of_a_launcher_it_says_what_is_lost(self):
        done = self.run_words(self.words("torchrun", "--version"))
        self.assertIn("all ranks of this node share one log", done.stderr)


class BadDiskTest(LogsCase):
    """On small file systems of their own, in a mount namespace of their own."""

    def mounted(self, options, script, then="true"):
        self.logs.mkdir()
        words = " ".join(f"'{word}'" for word in self.words("sh", "-c", "$SCRIPT", flags=["--log-json"]))
        words = words.replace("'$SCRIPT'", '"$SCRIPT"')
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o {options} none {self.logs} || exit 99; {words}; code=$?; {then}; exit $code"],
            capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False,
            env={**self.environment, "SCRIPT": script, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"})
        if done.returncode == 99 or "unshare failed" in done.stderr:
            self.skipTest(f"no mount namespace here: {done.stderr.strip()}")
        return done

    def test_a_full_disk_changes_nothing_but_the_log(self):
        done = self.mounted("size=64k", "seq 5000; exit 4", then=f"tail -qn1 {self.logs}/* >&2")
        self.assertEqual(4, done.returncode, done.stderr)
        self.assertEqual("".join(f"{i}\n" for i in range(1, 5001)), done.stdout)
        self.assertEqual(1, done.stderr.count("lines are lost"), done.stderr)
        self.assertIn("No space left on device", done.stderr)
        json.loads(done.stderr.splitlines()[-1])  # The last line that fitted is whole.

    def test_a_folder_that_cannot_be_written_changes_nothing(self):
        done = self.mounted("ro", "echo out; echo err >&2; exit 4")
        self.assertEqual((4, "out\n"), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r"no log is written: .*Read-only file system; the job runs and prints to the console\nerr\n$")


class LogsTest(LogsCase):
    def write_job(self):
        """Four ranks one after the other, and in their logs at the same times: what is told as one lies within a second."""
        for rank in range(4):
            more = "; echo 'ERROR alone'" if rank == 2 else ""
            self.shell(f"echo start; echo '[rank{rank}]: WARNING low'{more}", rank=rank, flags=["--console", "none"])
        for log in self.logs.glob("*.log"):
            lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
            log.write_text("".join(f"2026-11-23T02:12:17.{100 + i}000000Z {line.partition(' ')[2]}" for i, line in enumerate(lines)), encoding="utf-8")

    def test_ranks_are_folded_merged_and_filtered(self):
        self.write_job()
        texts = [line.split(" ", 1)[1] for line in self.lockstep_logs(self.logs).stdout.splitlines()]
        self.assertEqual(["I ranks 0-3: start", "W ranks 0-3: WARNING low", "E rank 2: ERROR alone"], texts)
        only = self.lockstep_logs(self.logs, "--rank", "1-2", "--level", "warning", "--grep", "alone", "--grep", "low")
        self.assertEqual(["W ranks 1-2: WARNING low", "E rank 2: ERROR alone"], [line.split(" ", 1)[1] for line in only.stdout.splitlines()])
        first = self.lockstep_logs(self.logs, "--first-errors")
        self.assertRegex(first.stdout, r"^\S+ E rank 2: ERROR alone\n$")
        apart = self.lockstep_logs(self.logs, "--no-fold").stdout.splitlines()
        self.assertEqual(9, len(apart))
        self.assertEqual(sorted(line.split(" ", 1)[0] for line in apart), [line.split(" ", 1)[0] for line in apart])

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_json_is_as_its_schema_and_its_document_say(self):
        self.write_job()
        validator = jsonschema.validators.validator_for(SCHEMA)
        validator.check_schema(SCHEMA)
        for flags in ([], ["--first-errors"]):
            objects = [json.loads(line) for line in self.lockstep_logs(self.logs, "--json", *flags).stdout.splitlines()]
            for item in objects:
                validator(SCHEMA).validate(item)
            self.assertEqual("summary", objects[-1]["event"])
            self.assertEqual((4, 9, "wall"), tuple(objects[-1][key] for key in ("log_count", "line_count", "clock")))
        document = (SOURCE / "docs/json.md").read_text(encoding="utf-8").partition("## `lockstep.logs/1`")[2]
        fields = {name for form in SCHEMA["oneOf"] for name in form["properties"]} - {"event"}
        for name in fields:
            self.assertIn(f"`{name}`", document)

    def test_a_file_that_is_damaged_is_told_and_the_rest_shown(self):
        self.write_job()
        (self.logs / "rank9.log.gz").write_bytes(b"\x1f\x8b\x08damaged")
        done = self.lockstep_logs(self.logs)
        self.assertEqual(PARTIAL, done.returncode)
        self.assertEqual(3, len(done.stdout.splitlines()))
        self.assertIn("rank9.log.gz", done.stderr)

    def test_clocks_of_hosts_are_corrected_by_traces(self):
        generator = pathlib.Path(BINARY).with_name("lockstep_trace_gen")
        if not generator.is_file():
            self.skipTest("lockstep_trace_gen is not built")
        # The clock of rank 1's host reads 250 ms too much, in its traces and in its log.
        self.run_words([generator, "--out", self.folder / "traces", "--ranks", 2, "--ranks-per-host", 1, "--steps", 5, "--layers", 4,
                        "--offset-us", "0,250000"], check=True)
        self.logs.mkdir()
        for rank, times_ms in ((0, (100, 120)), (1, (360,))):
            (self.logs / f"rank{rank}.log").write_text("".join(
                f"2026-11-23T02:12:17.{time_ms:03d}000000Z 5.{time_ms:03d}000000 I rank{rank} node{rank} out: {time_ms}\n" for time_ms in times_ms))
        apart = self.lockstep_logs(self.logs)
        self.assertEqual(["100", "120", "360"], [line.rpartition(" ")[2] for line in apart.stdout.splitlines()])
        self.assertIn("2 hosts is that of their own clocks", apart.stderr)
        corrected = self.lockstep_logs(self.logs, "--clocks", self.folder / "traces", "--json")
        *lines, summary = map(json.loads, corrected.stdout.splitlines())
        self.assertEqual(["100", "360", "120"], [line["text"] for line in lines], corrected.stderr)
        self.assertEqual("aligned", summary["clock"])
        self.assertLess(abs(lines[1]["time_unix_ns"] - lines[0]["time_unix_ns"] - 10_000_000), 1_000_000)

    def test_following_shows_what_comes_from_logs_that_come_too(self):
        self.shell("echo before", rank=0, flags=["--console", "none"])
        process = subprocess.Popen([BINARY, "logs", str(self.logs), "--follow"], stdout=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn("rank 0: before", process.stdout.readline())
        self.shell("echo 'WARNING after'", rank=1)
        self.assertRegex(process.stdout.readline(), r" W rank 1: WARNING after\n")
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(DONE, process.wait(PATIENCE_S))

    def test_nothing_there_is_an_error_and_no_path_a_misuse(self):
        self.assertEqual(1, self.lockstep_logs(self.folder).returncode)
        self.assertEqual(MISUSED, self.lockstep_logs().returncode)
        self.assertEqual(MISUSED, self.lockstep_logs(self.folder, "--level", "loud").returncode)

    def test_terminals_commands_in_a_log_are_not_passed_on(self):
        self.shell("printf 'a\\033[2Jb\\033]0;title\\007\\n'", rank=0, flags=["--console", "none"])
        self.assertRegex(self.lockstep_logs(self.logs).stdout, r" I rank 0: ab\]0;title\?\n$")


class TrainingTest(LogsCase):
    """Four real ranks of torchrun over Gloo."""

    @classmethod
    def setUpClass(cls):
        cls.python = python_with_torch()

    def run_job(self, *arguments):
        job = self.folder / "job.py"
        job.write_text(JOB)
        return self.run_words([self.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 4, "--no-python",
                               *self.words(self.python, job, *arguments, flag="--rank-logs")], cwd=self.folder,
                              timeout=4 * PATIENCE_S)  # Five times PyTorch is imported.

    def test_a_job_is_logged_rank_by_rank_and_shown_as_one(self):
        done = self.run_job()
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(1, done.stdout.count("sum 16"), "rank 0 alone is on the console")
        self.assertEqual(4, len(list(self.logs.glob("rank[0-3].*.log"))))
        # One by one: only what lies within a second is told as one.
        shown = [line.split(" ", 1)[1] for line in self.lockstep_logs(self.logs, "--no-fold").stdout.splitlines()]
        for text in ("world of 4", "sum 16"):
            self.assertEqual([f"I rank {rank}: {text}" for rank in range(4)], sorted(line for line in shown if line.endswith(text)))
        self.assertIn("I rank 3: rank 3 was here", shown)

    def test_who_failed_first_is_named_here_and_by_hang(self):
        done = self.run_job("fail")
        self.assertNotEqual(0, done.returncode)
        first = self.lockstep_logs(self.logs, "--first-errors").stdout.splitlines()
        self.assertRegex(first[0], r"^\S+ E rank 2: Traceback \(most recent call last\):$")
        errors = self.lockstep_logs(self.logs, "--rank", "2", "--level", "error").stdout
        self.assertIn("E rank 2: ValueError: planted", errors)
        verdict = self.run_words([BINARY, "hang", "--json", self.logs])
        found = json.loads(verdict.stdout)["data"]["verdict"]
        self.assertEqual([2], found["culprit_ranks"])
        self.assertIn("ValueError: planted", found["explanation"])


if __name__ == "__main__":
    unittest.main()
