"""Stage files and Kineto traces of the same real Gloo job in one folder: what `analyze` and `query` say of both."""

import json
import os
import pathlib
import subprocess
import unittest

from page_file import Page
from pytorch import JobCase, job_environment, torchrun
from waiting import PATIENCE_S

try:
    import jsonschema
except ImportError:
    jsonschema = None

BINARY = os.environ["LOCKSTEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
HERE = pathlib.Path(__file__).resolve().parent
FIRST, COUNT = 12, 6  # Steps that are traced.


def lockstep(*words):
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return done.stdout


class BesideTest(JobCase):
    def job(self, name, steps, fault):
        folder = self.folder / name
        command = [BINARY, "run", "--quiet", f"--stages={folder}", "--",
                   *torchrun(self.python, 2, HERE / "profiled_training.py", folder, FIRST, COUNT, steps, fault)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, env=job_environment(),
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(["rank0.pt.trace.json", "rank1.pt.trace.json"], sorted(path.name for path in folder.glob("*.pt.trace.json")))
        return folder

    def analyzed(self, folder):
        document = json.loads(lockstep("analyze", "--quiet", "--json", folder))
        if jsonschema is not None:
            jsonschema.validate(document, json.loads((SOURCE / "docs/schema/analyze-1.schema.json").read_text(encoding="utf-8")))
        self.assertFalse(document["partial"], document["ledger"])
        data = document["data"]
        # The marks of the stages are no ranks, windows or steps of their own.
        self.assertEqual([(0, 0), (1, 0)], [(row["rank"], row["window"]) for row in data["ranks"]])
        self.assertEqual(COUNT, data["job"]["step_count"])
        self.assertIn("stage_files", [row["code"] for row in document["ledger"]])
        return data

    def test_both_agree(self):
        folder = self.job("agree", 40, "forward:1:40:every")
        data = self.analyzed(folder)
        scopes = {row["scope"]: row for row in data["stage_scopes"]}
        self.assertEqual((40, COUNT, 40 - COUNT), tuple(scopes[name]["step_count"] for name in ("job", "traced", "not_traced")))
        self.assertEqual((FIRST, FIRST + COUNT - 1), (scopes["traced"]["first_step"], scopes["traced"]["last_step"]))
        self.assertEqual(scopes["job"]["total_ns"], scopes["traced"]["total_ns"] + scopes["not_traced"]["total_ns"])
        for name in ("job", "traced"):
            self.assertEqual((1, "forward"), (scopes[name]["rank"], scopes[name]["stage"]))
        verdict = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["data"]["verdict"]
        for name in ("answer", "rank", "stage", "cost_ns", "cost_ratio", "confidence"):
            self.assertEqual(verdict[name], scopes["job"][name], name)
        answers = {row["question"]: row for row in data["stage_agreement"]}
        straggler = answers["straggler"]
        self.assertEqual((True, 1, 1, "forward", "forward"), tuple(straggler[name] for name in (
            "agrees", "stages_rank", "trace_rank", "stages_stage", "trace_stage")), straggler["sentence"])
        self.assertTrue(answers["step_time"]["agrees"], answers["step_time"])
        for row in data["stage_agreement"]:
            print(row["agrees"], row["sentence"])
        said = " ".join(lockstep("analyze", folder, "--section", "stages").split())
        self.assertEqual(2, said.count(straggler["sentence"]), said)  # On the first screen, and in its section.

        # The marks change nothing that is measured of the traces: they only give names to where time went.
        alone = json.loads(lockstep("analyze", "--quiet", "--json", *sorted(folder.glob("*.pt.trace.json"))))["data"]
        self.assertEqual([], alone["stage_agreement"])
        for table in ("breakdown", "steps", "collectives", "memory", "imbalance", "ddp", "ddp_buckets"):
            self.assertEqual(alone[table], data[table], table)

    def test_query_joins_both_by_rank_and_time(self):
        folder = self.job("query", 40, "forward:1:40:every")

        def ask(sql):
            return json.loads(lockstep("query", "--quiet", "--format", "json", folder, sql))["rows"]

        by_step = ask("SELECT rank, step, sum(duration_ns) AS ns, min(trace_start_ns) AS first_ns, max(trace_start_ns + duration_ns) AS last_ns "
                      "FROM stages GROUP BY rank, step")
        self.assertEqual([(rank, step) for rank in range(2) for step in range(40)], [(row["rank"], row["step"]) for row in by_step])
        for row in by_step:
            self.assertEqual(row["ns"], row["last_ns"] - row["first_ns"])
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["data"]
        frontier = ask("SELECT stage, sum(increment_ns) AS ns FROM stage_frontier GROUP BY stage")
        self.assertEqual({row["stage"]: row["frontier_ns"] for row in summary["stages"] if row["frontier_ns"]},
                         {row["stage"]: row["ns"] for row in frontier})
        steps = ask("SELECT step, sum(increment_ns) AS ns FROM stage_frontier GROUP BY step")
        self.assertEqual([(row["step"], row["ns"]) for row in summary["steps"]], [(row["step"], row["ns"]) for row in steps])
        # The forward pass of a traced step is where PyTorch's own range of it is, on the same rank.
        joined = ask("SELECT s.rank, s.step, count(*) AS count, s.duration_ns AS stage_ns, e.duration_ns AS trace_ns FROM stages s "
                     "JOIN events e ON e.rank = s.rank AND e.name = 'DistributedDataParallel.forward' "
                     "AND e.start_ns >= s.start_ns AND e.start_ns < s.start_ns + s.duration_ns "
                     "WHERE s.stage = 'forward' GROUP BY s.rank, s.step")
        self.assertEqual([(rank, step, 1) for rank in range(2) for step in range(FIRST, FIRST + COUNT)],
                         [(row["rank"], row["step"], row["count"]) for row in joined])
        for row in joined:
            self.assertGreaterEqual(row["stage_ns"], row["trace_ns"])

    def test_traced_before_a_rank_grew_slow(self):
        folder = self.job("late", 60, "forward:1:60:late")
        data = self.analyzed(folder)
        scopes = {row["scope"]: row for row in data["stage_scopes"]}
        self.assertEqual((1, "forward"), (scopes["job"]["rank"], scopes["job"]["stage"]))
        self.assertNotEqual((1, "forward"), (scopes["traced"]["rank"], scopes["traced"]["stage"]))
        straggler = data["stage_agreement"][0]
        print(straggler["sentence"])
        self.assertEqual("straggler", straggler["question"])
        self.assertIs(False, straggler["agrees"])
        self.assertIn(f"The traces cover {COUNT} of 60 steps ({FIRST} to {FIRST + COUNT - 1}), and in these", straggler["sentence"])
        steps = data["stage_agreement"][1]
        self.assertEqual(("steps", False), (steps["question"], steps["agrees"]), steps["sentence"])
        self.assertIn("not like the rest of the job", steps["sentence"])
        page = folder / "report.html"
        lockstep("analyze", "--quiet", folder, "-o", page)
        self.assertEqual(data["stage_agreement"], Page(page).data["stage_agreement"])


if __name__ == "__main__":
    unittest.main()
