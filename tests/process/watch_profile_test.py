"""`lockstep watch --every` on a real training job under a real lockstepd: a rank that becomes slow is called, once, and
not before; what is kept stays in its budget; and a watch that was killed is taken up again where it was."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import jsonschema

from capture_jobs import Node
from lockstep_program import BINARY, SOURCE
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

SCHEMA = json.loads((SOURCE / "docs/schema/watch-1.schema.json").read_text(encoding="utf-8"))
BUDGET = 1 << 20  # of the last one; the others have room
FINDING = 3
SLOW_RANK = 1
JOB = f"watched-{os.getpid()}"  # the daemon sees other tests' jobs, too


class Watch:
    """A `lockstep watch --json` that runs; its events as they come."""

    def __init__(self, test, node, *arguments):
        self.process = subprocess.Popen(
            [BINARY, "watch", "--json", "--socket", node.socket, "--job", JOB, "--interval", "100ms", "--silence", "60s", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=node.folder)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        self.events = []

    def next(self):
        line = self.process.stdout.readline()
        if not line:
            return None
        self.events.append(json.loads(line))
        jsonschema.validate(self.events[-1], SCHEMA)
        return self.events[-1]

    def wait_for(self, name):
        while event := self.next():
            if event["event"] == name:
                return event
        raise AssertionError(f"no {name}: {self.events}")

    def wait_for_captures(self, count):
        """Until so many have come that count."""
        while count > 0:
            count -= self.wait_for("captured")["is_counted"]

    def named(self, name):
        return [event for event in self.events if event["event"] == name]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self):
        while self.next():
            pass
        return self.process.wait(PATIENCE_S)


def metrics_of(path):
    """{(name, labels as a text): value}"""
    found = re.findall(r"^(\w+)\{(.*)\} (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {(name, labels): float(value) for name, labels, value in found}


class WatchProfileTest(unittest.TestCase):
    def test_a_rank_that_becomes_slow_is_called_once(self):
        python = python_with_torch()
        node = Node()
        self.addCleanup(node.close)
        slow = node.folder / "slow"
        metrics = node.folder / "job.prom"
        kept = node.folder / "kept"
        node.job(python, JOB, 2, STEADY_JOB_SLOW=str(slow))
        arguments = ("--every", "1s", "--duration", "1s", "--learn", "3", "--warm-up", "0", "--profiles", kept,
                     "--metrics-file", metrics)

        other = node.start_capture("--duration", "10s", "--no-analyze", "-o", node.folder / "other")
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        wait_until(lambda: "has the request" in (node.folder / "capture.err").read_text(encoding="utf-8"),
                   "the other capture to run", other)
        first = Watch(self, node, *arguments)
        self.assertEqual(0, first.wait_for("profile_begin")["past_capture_count"])
        self.assertEqual("busy", first.wait_for("capture_skipped")["reason"])
        first.wait_for_captures(2)
        self.assertEqual(0, other.wait(), "nobody disturbed it")
        second = Watch(self, node, *arguments)
        self.assertEqual(1, second.end(), "the folder is taken")
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        past = len((kept / "profile.jsonl").read_bytes().splitlines())  # Perhaps one that it had not told yet.
        with open(kept / "profile.jsonl", "ab") as lines:
            lines.write(b'{"schema":"lockstep.profile/1","capt')  # as if it had been killed while it wrote

        watch = Watch(self, node, *arguments)
        begin = watch.wait_for("profile_begin")
        self.assertEqual((past, 1), (begin["past_capture_count"], begin["skipped_line_count"]))
        watch.wait_for_captures(1)
        self.assertEqual([], first.named("regression") + watch.named("regression"))
        part = node.folder / "slow.part"
        part.write_text(str(SLOW_RANK), encoding="ascii")
        part.rename(slow)

        regression = watch.wait_for("regression")
        figures = {figure["figure"]: figure for figure in regression["figures"]}
        self.assertTrue(figures.keys() & {"step", "own_time_ratio"}, figures)  # the step may follow on a noisy machine
        self.assertEqual(SLOW_RANK, figures.get("own_time_ratio", {"rank": SLOW_RANK})["rank"])
        self.assertEqual([SLOW_RANK], regression["ranks"])
        self.assertIsNotNone(regression["finding"])
        for page in ("report", "comparison"):
            self.assertIn(b"</html>", pathlib.Path(regression[page]).read_bytes())
        self.assertLessEqual(regression["since_unix_ns"], regression["time_unix_ns"])

        def is_told():
            found = metrics_of(metrics)
            called = [("lockstep_profile_regression_ratio", f'job_id="{JOB}",figure={rest}')
                      for rest in ('"step"', f'"own_time_ratio",rank="{SLOW_RANK}"')]
            return all(found.get(each, 0) > 0.05 for each in called) and found

        found = wait_until(is_told, "the regression in the metrics", watch.process)
        self.assertEqual(1, found["lockstep_profile_regressions_total", f'job_id="{JOB}"'])
        self.assertGreater(found["lockstep_profile_step_seconds", f'job_id="{JOB}"'], 0.15)

        self.assertEqual(FINDING, watch.stop())
        end = watch.events[-1]
        self.assertEqual(("profile_end", 1), (end["event"], end["regression_count"]))
        self.assertEqual(1, len(watch.named("regression")))
        self.assertFalse(metrics.exists(), "the metrics of a watch that has ended")
        records = []
        for line in (kept / "profile.jsonl").read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                records.append(json.loads(line))
        self.assertEqual(past + len(watch.named("captured")), len(records))

        # With less room traces go, and reports as far as need be; what is known of the captures stays.
        lines = (kept / "profile.jsonl").read_bytes()
        self.assertGreater(sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()), BUDGET)
        third = Watch(self, node, *arguments, "--budget", BUDGET)
        self.assertEqual(len(records), third.wait_for("profile_begin")["past_capture_count"])
        self.assertEqual(0, third.stop(), "what was called before is not called again")
        left = [path for path in kept.rglob("*") if path.is_file()]
        self.assertLessEqual(sum(path.stat().st_size for path in left), BUDGET)
        self.assertEqual([], [path for path in left if path.parent.name == "traces" and path.suffix == ".gz"])
        self.assertTrue((kept / "captures" / records[-1]["capture"] / "report.html").exists())
        self.assertEqual(lines, (kept / "profile.jsonl").read_bytes())


if __name__ == "__main__":
    unittest.main()
