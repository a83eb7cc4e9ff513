"""`lockstep watch` on real jobs: one that hangs is looked into while it lives, one that is slow is let alone."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from hang_jobs import BINARY, HangJob
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

CALM_STEPS = 60  # Of the slow rank, made while it is watched.


class WatchJobsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        python = python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lkwatch-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.jobs = {"skips_collective": HangJob(python, cls.folder, "skips_collective"),
                    "slow_rank": HangJob(python, cls.folder, "slow_rank", ranks=2, keeps_on=True)}
        for job in cls.jobs.values():
            cls.addClassCleanup(job.end)

    def watch(self, script, *arguments):
        """A watch of a job that has begun."""
        job = self.jobs[script]
        wait_until(lambda: len(job.told()) == job.ranks, f"{script}'s ranks to start")
        process = subprocess.Popen(
            [BINARY, "watch", "--json", "--pid", str(job.launcher.pid), "--keep", self.folder / "kept", "--interval", "200ms",
             "--silence", "3s", "--first-silence", "8s", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_job_that_skips_a_collective_is_noticed_and_a_slow_one_is_not_called_stuck(self):
        calm = self.watch("slow_rank")
        stuck = self.watch("skips_collective", "--once", "--for", f"{PATIENCE_S}s")
        events = [json.loads(line) for line in stuck.stdout]
        self.assertEqual(3, stuck.wait(PATIENCE_S), events)
        self.assertEqual("stuck", events[-1]["event"], events)
        self.assertIn("silent", [event["event"] for event in events], events)
        folder = pathlib.Path(events[-1]["folder"])
        processes = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))["processes"]
        self.assertEqual([0, 1, 2, 3], [process["rank"] for process in processes], events)
        self.assertEqual({"running"}, {process["state"] for process in processes})
        # Whatever else it says of the one that hangs, it blames no rank that waits.
        self.assertIn(events[-1]["verdict"]["culprit_ranks"], ([1], []), events[-1])

        slow = self.jobs["slow_rank"]
        begun = int(slow.told()[slow.fault_rank][2])
        wait_until(lambda: int(slow.told()[slow.fault_rank][2]) >= begun + CALM_STEPS, "the slow rank's steps")
        self.assertIsNone(calm.poll())
        calm.terminate()
        seen = [json.loads(line)["event"] for line in calm.stdout]
        self.assertEqual(["begin", "rhythm"], seen[:2])
        self.assertNotIn("stuck", seen)


if __name__ == "__main__":
    unittest.main()
