"""Runs faulty_training.py or parallel_training.py under torchrun and `lockstep run --stages`, for the tests and for hidden_rank.py."""

import json
import pathlib
import subprocess

from pytorch import job_environment, torchrun
from waiting import PATIENCE_S

HERE = pathlib.Path(__file__).resolve().parent


def run(binary, python, folder, ranks, steps, fault, *flags, way=None):
    """What is on standard error, and summary.json. `way`: of parallel_training.py, instead of faulty_training.py."""
    program = [HERE / "faulty_training.py", str(steps), fault] if way is None else [HERE / "parallel_training.py", str(steps), fault, way]
    command = [binary, "run", *flags, f"--stages={folder}", "--", *torchrun(python, ranks, *program)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, env=job_environment(),
                          timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stderr, json.loads((pathlib.Path(folder) / "summary.json").read_text(encoding="utf-8"))
