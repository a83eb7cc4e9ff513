#!/usr/bin/env python3
"""`lockstep bench collectives` with the real NCCL, of PyPI's wheel, on a machine that may have no device: found beside the active Python, opened, its
version read, and its own words where it finds no device."""

import ctypes
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "process"))
from bench_jobs import environment, read  # noqa: E402
from lockstep_program import BINARY, DONE, FAILED  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

VERSION = importlib.metadata.version("nvidia-nccl-cu12")


def bench(*arguments, **variables):
    words = [BINARY, "bench", "collectives", "--backend", "nccl", "-n", "1", "all_reduce", "--sizes", "1K", *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                          env=environment(VIRTUAL_ENV=sys.prefix, **variables), check=False)


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


class NcclWheelTest(unittest.TestCase):
    def test_it_is_found_beside_the_active_python(self):
        done = bench("--json")
        if has_driver():
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertIn(f"NCCL {VERSION}", read(done.stdout)["setup"]["backend"])
        else:
            self.assertEqual(done.returncode, FAILED, done.stdout)
            self.assertRegex(done.stderr, rf"cannot open libcuda\.so\.1 .*\(NCCL {VERSION} is there: {sys.prefix}/.*/libnccl\.so\.2\)")

    def test_its_own_words_are_told(self):
        """With a stand-in for the driver, which has what lockstep calls and not what NCCL calls."""
        library = next(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/nvidia/nccl/lib/libnccl.so.2"))
        done = bench("--nccl-library", library, LD_LIBRARY_PATH=os.environ["LOCKSTEP_FAKE_GPU"])
        self.assertEqual(done.returncode, FAILED, done.stdout)
        self.assertRegex(done.stderr, r"ncclCommInitRank: unhandled cuda error .*Cuda failure '.+'")
        self.assertIn("NCCL_DEBUG=INFO says more", done.stderr)


if __name__ == "__main__":
    unittest.main()
