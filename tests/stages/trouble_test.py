"""What goes wrong around a job under `lockstep run --stages`: the job is what it is without it, and the summary says what is missing."""

import json
import os
import subprocess
import unittest

import faulty_job
from own_file_system import on_own_file_system
from pytorch import JobCase, job_environment, torchrun
from waiting import PATIENCE_S

BINARY = os.environ["LOCKSTEP_BINARY"]


def launch(*command, **variables):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
                          env=job_environment(**variables))


class TroubleTest(JobCase):
    def training(self, steps, fault):
        return torchrun(self.python, 2, faulty_job.HERE / "faulty_training.py", steps, fault)

    def summary(self, folder):
        return json.loads((folder / "summary.json").read_text(encoding="utf-8"))

    def test_an_exception_in_mid_step(self):
        folder = self.folder / "raised"
        alone = launch(*self.training(30, "raise:1:0:once"))
        done = launch(BINARY, "run", f"--stages={folder}", "--", *self.training(30, "raise:1:0:once"))
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertEqual(alone.returncode, done.returncode)
        for said in (alone.stderr, done.stderr):
            self.assertIn("ArithmeticError: planted in mid-step", said)
        # Up to the step that it was left in, each rank's all are there.
        data = self.summary(folder)["data"]
        self.assertGreaterEqual(data["step_count"], 19)
        self.assertIn("Stages of a step", done.stderr)

    def test_a_data_loaders_forked_workers_record_nothing(self):
        folder = self.folder / "workers"
        done = launch(BINARY, "run", f"--stages={folder}", "--", *self.training(30, "forward:1:40:every"), WORKERS="2")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(2, len(list(folder.glob("*.spans"))))
        summary = self.summary(folder)
        self.assertEqual([], summary["ledger"])
        self.assertEqual(30, summary["data"]["step_count"])
        self.assertEqual((1, "forward"), (summary["data"]["verdict"]["rank"], summary["data"]["verdict"]["stage"]), done.stderr)
        for rank in summary["data"]["ranks"]:
            self.assertEqual((30, 0), (rank["step_count"], rank["lost_record_count"]))

    def test_a_full_disk(self):
        kept = self.folder / "kept"
        kept.mkdir()
        script = ('small="$1" lockstep="$2" kept="$3"; shift 3; "$lockstep" run --stages="$small" -- "$@"; status=$?; '
                  'cp "$small"/*.spans "$kept"; exit $status')
        done = on_own_file_system(self, launch, "-o size=120k", script, self.folder / "small", BINARY, kept,
                                  *self.training(600, "forward:0:20:every"))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("records did not fit into the file", " ".join(done.stderr.split()))
        self.assertIn("No space left on device", done.stderr)
        again = launch(BINARY, "stages", "--json", kept)
        self.assertEqual(0, again.returncode, again.stderr)
        document = json.loads(again.stdout)
        self.assertIn("stage_records_lost", {row["code"] for row in document["ledger"]})
        self.assertGreater(document["data"]["step_count"], 20)
        self.assertEqual((0, "forward"), (document["data"]["verdict"]["rank"], document["data"]["verdict"]["stage"]))


if __name__ == "__main__":
    unittest.main()
