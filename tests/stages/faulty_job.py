"""Runs faulty_training.py, parallel_training.py or device_training.py under torchrun and `lockstep run --stages`, for the tests and for
hidden_rank.py."""

import json
import pathlib
import subprocess

from pytorch import job_environment, torchrun
from waiting import PATIENCE_S

try:
    import jsonschema
except ImportError:
    jsonschema = None

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "docs/schema/stages-1.schema.json"


def run(binary, python, folder, ranks, steps, fault, *flags, program="faulty_training.py", way=None, **variables):
    """What is on standard error, and summary.json. `way`: of parallel_training.py, instead of `program`."""
    words = [HERE / program, str(steps), fault] if way is None else [HERE / "parallel_training.py", str(steps), fault, way]
    command = [binary, "run", *flags, f"--stages={folder}", "--", *torchrun(python, ranks, *words)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=job_environment(**variables), timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stderr, json.loads((pathlib.Path(folder) / "summary.json").read_text(encoding="utf-8"))


def check_sums(test, summary, ranks):
    """What is true of every job, whatever it did."""
    data = summary["data"]
    if jsonschema is not None:
        jsonschema.validate(summary, json.loads(SCHEMA.read_text(encoding="utf-8")))
    test.assertEqual(ranks, len(data["ranks"]))
    test.assertEqual(data["total_ns"], sum(stage["frontier_ns"] for stage in data["stages"]))
    test.assertEqual(data["total_ns"], sum(step["ns"] for step in data["steps"]))
    test.assertEqual(data["total_ns"], sum(window["ns"] for window in data["windows"]))
    test.assertEqual(data["step_count"], sum(window["step_count"] for window in data["windows"]))
    for place, stage in enumerate(data["stages"]):
        test.assertEqual(stage["frontier_ns"], sum(stage["leader_ns"]))
        test.assertEqual(stage["frontier_ns"], sum(window["frontier_ns"][place] for window in data["windows"]))
        test.assertEqual(ranks, len(stage["rank_ns"]))
        # Nobody costs more than all ranks together would save.
        test.assertLessEqual(max(stage["cost_ns"]), data["total_ns"])
