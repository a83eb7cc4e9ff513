"""An interpreter that has PyTorch, for tests of real jobs."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NO_PYTORCH = 3  # Exit status of scripts/python_env where PyTorch is not to be had.


def python_with_torch():
    """Its path. Who asks is skipped where PyTorch is not to be had."""
    done = subprocess.run([SOURCE / "scripts/python_env"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode == NO_PYTORCH:
        raise unittest.SkipTest(f"PyTorch cannot be had (scripts/python_env): {done.stderr.strip()}")
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.strip()


def torchrun(python, ranks, *program):
    """The words that start a job of one node, on a port of its own."""
    return [python, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(ranks), "--rdzv-backend", "c10d",
            "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", *program]


def run_until_it_ends(run, again):
    """`run()`, a job that has trained; once more after `again()`, at most twice, where PyTorch aborted one of its processes at its very end: a
    thread of Gloo's lets go of its last work while the interpreter is going away (pytorch/pytorch#190489), which no program can prevent."""
    for _ in range(2):
        done = run()
        if done.returncode == 0 or "terminate called without an active exception" not in done.stderr:
            return done
        again()
    return run()


def job_environment(**variables):
    """This process's, without what a job around it or lockstep may have said."""
    names = ("LOCKSTEP_TRACE", "RANK", "WORLD_SIZE", "PYTHONPATH")
    return {**{name: value for name, value in os.environ.items() if name not in names}, "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "5", "PYTHONWARNINGS": "ignore", **variables}


class JobCase(unittest.TestCase):
    """With PyTorch's interpreter in `python`, and a folder of the class's own in `folder`."""

    @classmethod
    def setUpClass(cls):
        cls.python = python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
