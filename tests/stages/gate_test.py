"""`lockstep compare` of summaries of stages as a gate: real Gloo jobs of one workload pass, a slower one fails, others are refused."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

import faulty_job
from page_file import Page
from pytorch import JobCase, job_environment, torchrun
from waiting import PATIENCE_S

try:
    import jsonschema
except ImportError:
    jsonschema = None

BINARY = os.environ["LOCKSTEP_BINARY"]
SCHEMA = pathlib.Path(os.environ["LOCKSTEP_SOURCE"]) / "docs/schema/stage-comparison-1.schema.json"
STEPS = 40
WORKLOAD = ["--workload", "model=net", "--workload", "batch=8"]
# A step of about 40 ms takes 60 ms more in one rank: whatever else the machine does, that is more than half a step.
GATE = ["--fail-on", "slower:50"]


def lockstep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


class GateTest(JobCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, ranks, fault, workload in (("base", 2, "none", WORKLOAD), ("same", 2, "none", WORKLOAD),
                                             ("slower", 2, "forward:1:60:every", WORKLOAD), ("alone", 1, "none", WORKLOAD)):
            faulty_job.run(BINARY, cls.python, cls.folder / name, ranks, STEPS, fault, "--quiet", *workload)

    def compare(self, a, b, *flags):
        """Exit status, and the comparison."""
        done = lockstep("compare", self.folder / a, self.folder / b, "--json", *flags)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        document = json.loads(done.stdout)
        if jsonschema is not None:
            jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
        return done.returncode, document["data"]

    def refusal(self, a, b, status=1):
        done = lockstep("compare", a, b, *GATE)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        self.assertEqual("", done.stdout)
        return done.stderr

    def changed(self, name, **facts):
        """The summary of `base` with other facts of the job."""
        summary = json.loads((self.folder / "base/summary.json").read_text(encoding="utf-8"))
        summary["data"]["job"].update(facts)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(summary), encoding="utf-8")
        return path

    def test_a_run_like_the_other_passes(self):
        status, data = self.compare("base", "same", *GATE)
        self.assertEqual(0, status, data["verdict"]["sentence"])
        # On a machine too noisy to tell, that is what it says.
        self.assertIn(data["gate"]["result"], ("passed", "undecided"))
        for run in (data["a"], data["b"]):
            self.assertEqual({"model": "net", "batch": "8"}, run["workload"])
            self.assertEqual((2, 0), (run["world_size"], run["exit_status"]))
            self.assertEqual((5, STEPS - 5), (run["warm_up_step_count"], run["step_count"]))
            self.assertGreater(run["median_step_ns"], 33e6)  # So long a step sleeps.
        self.assertEqual(0, self.compare("base", "base", *GATE)[0])
        self.assertIsNone(self.compare("base", "same")[1]["gate"])

    def test_a_slower_one_fails_and_says_where(self):
        page = self.folder / "slower.html"
        status, data = self.compare("base", "slower", *GATE, "-o", page)
        self.assertEqual(3, status, data["gate"])
        self.assertEqual(("slower", "failed"), (data["verdict"]["change"], data["gate"]["result"]))
        by_stage = {row["stage"]: row["step_ns"] for row in data["stages"]}
        self.assertEqual("slower", by_stage["forward"]["change"])
        self.assertGreater(by_stage["forward"]["shift"], 40e6)
        self.assertLess(abs(by_stage["optimizer"]["shift"]), 20e6)
        self.assertTrue(data["verdict"]["reasons"][0]["text"].startswith("forward grew by"), data["verdict"])
        self.assertIn("rank 1", data["b"]["verdict"].lower())
        self.assertEqual(data, Page(page).data)
        text = lockstep("compare", self.folder / "base/summary.json", self.folder / "slower", *GATE)
        self.assertEqual(3, text.returncode)
        self.assertIn("--fail-on fails", text.stdout)
        self.assertEqual(0, self.compare("slower", "base", *GATE)[0], "faster is no regression")

    def test_runs_too_short_to_tell_are_undecided(self):
        few = ["--steps", f"{STEPS - 2}-{STEPS - 1}"]
        status, data = self.compare("base", "slower", *GATE, *few)
        self.assertEqual((0, "unknown", "undecided"), (status, data["verdict"]["change"], data["gate"]["result"]))
        self.assertIn("cannot tell", data["gate"]["sentence"])
        self.assertEqual(3, self.compare("base", "slower", *GATE, *few, "--fail-on", "undecided")[0])

    def test_other_runs_are_refused(self):
        base = self.folder / "base"
        self.assertIn("world size: 2 in A, 1 in B", self.refusal(base, self.folder / "alone"))
        said = self.refusal(base, self.changed("other", workload={"model": "net", "batch": "16", "note": "x"}))
        for part in ("workload batch: '8' in A, '16' in B", "workload note: not declared in A, 'x' in B", "--workload"):
            self.assertIn(part, said)
        self.assertIn("model: 'net' in A, not declared in B", self.refusal(base, self.changed("silent", workload={})))
        self.assertIn("B did not complete: its command ended with status 1", self.refusal(base, self.changed("failed", exit_status=1)))
        traces = self.folder / "traces"
        traces.mkdir()
        for file in base.glob("*.spans"):
            shutil.copy(file, traces)
        self.assertIn("is a summary of stages and", self.refusal(base, traces, status=2))
        self.assertIn("no such file", self.refusal(base, self.folder / "absent"))
        damaged = self.folder / "damaged.json"
        damaged.write_text((base / "summary.json").read_text(encoding="utf-8")[:2000], encoding="utf-8")
        self.assertIn("damaged.json: byte", self.refusal(base, damaged))

    def test_behind_a_launcher_the_workload_stays_with_the_recordings(self):
        folder = self.folder / "behind"
        command = [*torchrun(self.python, 2, "--no-python", BINARY, "run", "--quiet", f"--stages={folder}", *WORKLOAD, "--", self.python,
                             faulty_job.HERE / "faulty_training.py", STEPS, "none")]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=job_environment(), timeout=PATIENCE_S, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertFalse((folder / "summary.json").exists())
        summary = lockstep("stages", folder, "--json")
        (folder / "summary.json").write_text(summary.stdout, encoding="utf-8")
        self.assertEqual({"world_size": 2, "workload": {"model": "net", "batch": "8"}, "exit_status": None},
                         json.loads(summary.stdout)["data"]["job"])
        status, data = self.compare("base", "behind", *GATE)
        self.assertEqual(0, status, data["gate"])
        self.assertIn("how B's command ended is not known", " ".join(data["verdict"]["notes"]))
        # What is said afterwards counts.
        said = lockstep("stages", folder, "--json", "--workload", "model=other")
        self.assertEqual({"model": "other"}, json.loads(said.stdout)["data"]["job"]["workload"])

    def test_what_is_no_workload_is_refused_before_the_job_starts(self):
        mark = self.folder / "started"
        for flags, said in ((["--stages=x", "--workload", "model"], "expected key=value"), (["--workload", "a=b"], "--stages=DIR"),
                            (["--stages", "--workload", "a=b"], "--stages=DIR"),
                            (["--stages=x", "--workload", "a=b", "--workload", "a=c"], "given twice")):
            done = lockstep("run", *flags, "--", "touch", mark)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertFalse(mark.exists())


if __name__ == "__main__":
    unittest.main()
