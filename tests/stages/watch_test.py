"""`lockstep watch --stages` on real jobs: whom the stages name, or cannot decide upon, is captured beside a peer, once, within the budget."""

import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import unittest

import jsonschema

import faulty_job
from pytorch import JobCase, job_environment, torchrun
from waiting import PATIENCE_S, wait_until

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests" / "process"))
from capture_jobs import Api, Node  # noqa: E402

BINARY = os.environ["LOCKSTEP_BINARY"]
SCHEMA = json.loads((SOURCE / "docs/schema/watch-1.schema.json").read_text(encoding="utf-8"))
FINDING = 3
STEPS = "100000"  # Until it is ended.


class WatchTest(JobCase):
    def setUp(self):
        self.node = Node(allow_unsafe=False)
        self.addCleanup(self.node.close)
        self.job = f"watched{secrets.token_hex(4)}"
        self.kept = self.folder / self.job

    def start_job(self, ranks, *program):
        command = [BINARY, "run", f"--stages={self.kept}-stages", "--interval", "1s", "--",
                   *torchrun(self.python, ranks, "--rdzv-id", self.job, *program)]
        job = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=job_environment(LOCKSTEP_SOCKET=str(self.node.socket)))
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        wait_until(lambda: self.has_ranks(ranks), f"{ranks} ranks that can be captured", job)
        return job

    def has_ranks(self, count):
        done = subprocess.run([BINARY, "status", "--socket", self.node.socket, "--json"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
        return done.returncode == 0 and done.stdout.count(f'"{self.job}"') >= count

    def watch(self, *flags):
        process = subprocess.Popen(
            [BINARY, "watch", "--stages", "--stages-every", "1s", "--job", self.job, "--socket", self.node.socket, "--keep", self.kept, *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def events_until(self, process, name):
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            jsonschema.validate(events[-1], SCHEMA)
            if events[-1]["event"] == name:
                return events
        raise AssertionError(f"no {name}: {events}")

    def end(self, process):
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        return process.wait(PATIENCE_S), rest

    def test_the_rank_that_is_named_is_traced_beside_a_peer_and_not_again(self):
        job = self.start_job(3, faulty_job.HERE / "faulty_training.py", STEPS, "backward:1:60:every")
        process = self.watch("--json")
        events = self.events_until(process, "stages_evidence")
        verdict = next(event for event in events if event["event"] == "stages_verdict")["verdict"]
        self.assertEqual(("straggler", 1, "backward"), (verdict["answer"], verdict["rank"], verdict["stage"]), verdict)
        evidence = events[-1]
        self.assertEqual((1, "backward"), (evidence["rank"], evidence["stage"]))
        self.assertIn(evidence["peer"], (0, 2))
        self.assertEqual((1, 1, "backward"), (evidence["stages_rank"], evidence["trace_rank"], evidence["stages_stage"]), evidence)
        self.assertEqual(5, evidence["last_step"] - evidence["first_step"] + 1, evidence)
        folder = pathlib.Path(evidence["folder"])
        self.assertEqual(2, len(list(folder.glob("*.json.gz"))), list(folder.iterdir()))
        self.assertIn("Stages of steps", (folder / "report.html").read_text(encoding="utf-8"))
        self.assertEqual(evidence["sentence"], json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["sentence"])
        self.has_an_exemplar((1, evidence["peer"]))
        # The same is told and captured once, however often it is looked at: seen by the steps that go on.
        begun = self.newest_step()
        wait_until(lambda: self.newest_step() > begun + 100, "a hundred steps", job)
        code, rest = self.end(process)
        self.assertEqual(FINDING, code)
        self.assertNotIn("stages_capture", rest)
        self.assertEqual(1, len(list(self.kept.iterdir())))

    def has_an_exemplar(self, ranks):
        """The job's step durations lead to its only capture, by a step of one of its ranks."""
        api = Api(self.node.socket)
        [capture] = api.captures()
        series = re.compile(rf'lockstep_step_duration_seconds_bucket{{job_id="{self.job}",le="(.*)"}} \d+'
                            r' # {capture="(.*)",rank="(.*)"} (\S+) (\S+)\n')

        def found():
            return series.findall(api.ask("GET", "/metrics", root="", Accept="application/openmetrics-text; version=1.0.0")[1].decode())

        [(bound, capture_id, rank, value, time_s)] = wait_until(found, "a step that the capture shows")
        self.assertEqual(capture["id"], capture_id)
        self.assertIn(int(rank), ranks)
        self.assertTrue(0.06 <= float(value) <= float(bound.replace("+Inf", "inf")), (value, bound))
        [target] = [target for target in capture["targets"] if target["process"]["rank"] == int(rank)]
        self.assertTrue(target["begun_unix_ns"] < float(time_s) * 1e9 <= target["finished_unix_ns"] + 1e6, (time_s, target))
        self.assertEqual([], series.findall(api.ask("GET", "/metrics", root="")[1].decode()), "Prometheus's own text has none")

    def newest_step(self):
        done = subprocess.run([BINARY, "stages", "--json", "--job", self.job, "--socket", self.node.socket, "--last", "1000"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
        return json.loads(done.stdout)["data"]["steps"][-1]["step"] if done.returncode == 0 else 0

    def test_where_nobody_is_seen_to_wait_the_traces_decide(self):
        self.start_job(3, faulty_job.HERE / "parallel_training.py", STEPS, "forward:2:50:every", "unseen")
        process = self.watch("--json", "--evidence-budget", "0")
        events = self.events_until(process, "stages_evidence")
        verdict = next(event for event in events if event["event"] == "stages_verdict")["verdict"]
        self.assertEqual(("undecided", "no_meeting"), (verdict["answer"], verdict["doubt"]), verdict)
        evidence = events[-1]
        self.assertEqual((2, None, None, 2),
                         (evidence["rank"], evidence["stage"], evidence["stages_rank"], evidence["trace_rank"]), evidence)
        self.assertIsNone(evidence["agrees"])
        # Traces that are larger than what may be kept have given their answer all the same.
        problem = self.events_until(process, "stages_problem")[-1]
        self.assertIn("--evidence-budget", problem["problem"])
        self.assertIsNone(evidence["report"])
        self.assertEqual(["verdict.json"], os.listdir(evidence["folder"]))
        self.assertEqual(0, self.end(process)[0])

    def test_beyond_the_budget_nothing_is_captured_and_that_is_said(self):
        self.start_job(2, faulty_job.HERE / "faulty_training.py", STEPS, "forward:0:60:every")
        process = self.watch("--evidence-captures", "0")
        for line in process.stdout:
            if "no capture of it yet" in line:
                break
        else:
            self.fail("nothing was said of the budget")
        code, _ = self.end(process)
        self.assertEqual(FINDING, code)
        self.assertFalse(self.kept.exists())


class FlagsTest(unittest.TestCase):
    def test_flags_of_evidence_need_stages(self):
        for flag in ("--stages-every=1s", "--evidence-steps=3", "--evidence-captures=1", "--evidence-budget=1MiB"):
            done = subprocess.run([BINARY, "watch", flag], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
                                  check=False)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertIn("needs --stages", done.stderr)


if __name__ == "__main__":
    unittest.main()
