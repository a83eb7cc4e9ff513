"""Runs faulty_training.py under torchrun and `lockstep run --stages`, for the tests and for hidden_rank.py."""

import json
import os
import pathlib
import subprocess

from waiting import PATIENCE_S

HERE = pathlib.Path(__file__).resolve().parent


def environment():
    names = ("LOCKSTEP_TRACE", "RANK", "WORLD_SIZE", "PYTHONPATH")
    return {**{name: value for name, value in os.environ.items() if name not in names}, "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "5", "PYTHONWARNINGS": "ignore"}


def torchrun(python, ranks, *program):
    return [python, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(ranks), "--rdzv-backend", "c10d",
            "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", *program]


def run(binary, python, folder, ranks, steps, fault):
    """What is on standard error, and summary.json."""
    command = [binary, "run", "--quiet", f"--stages={folder}", "--",
               *torchrun(python, ranks, HERE / "faulty_training.py", str(steps), fault)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(),
                          timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stderr, json.loads((pathlib.Path(folder) / "summary.json").read_text(encoding="utf-8"))
