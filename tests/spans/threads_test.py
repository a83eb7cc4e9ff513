"""Threads that record at once, into a file that grows and into a ring: the job's result is the same. What ./test runs under
ThreadSanitizer, which ends the job with a status of its own where two threads touched one thing unordered."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from waiting import PATIENCE_S

JOB = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "bin/lockstep_span_job"
RING = {"LOCKSTEP_TRACE_RING": "1", "LOCKSTEP_TRACE_LIMIT_MIB": "4"}


def run(mode, count, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_TRACE")}
    done = subprocess.run([JOB, mode, str(count)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**kept, **variables}, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


class ThreadsTest(unittest.TestCase):
    def check(self, mode, count):
        status, result, told = run(mode, count)
        self.assertEqual(0, status, told)
        for variables in ({}, RING):
            with self.subTest(mode=mode, **variables), tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
                status, traced, told = run(mode, count, LOCKSTEP_TRACE=folder, **variables)
                self.assertEqual((0, result), (status, traced), told)
                [path] = pathlib.Path(folder).glob("*.spans")
                self.assertGreater(path.stat().st_size, 0)

    def test_many_threads_one_after_the_other(self):
        self.check("threads", 2000)

    def test_a_few_threads_that_write_all_the_time(self):
        self.check("crowd", 20_000)


if __name__ == "__main__":
    unittest.main()
