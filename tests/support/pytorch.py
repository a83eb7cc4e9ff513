"""An interpreter that has PyTorch, for tests of real jobs."""

import pathlib
import subprocess
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
