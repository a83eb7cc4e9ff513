#!/usr/bin/env python3
"""`lockstep hang` on processes that hang just now and keep rings, and have no recorder of PyTorch's: here, and through a
lockstepd; also where the one that holds the others up is no more."""

import os
import re
import subprocess
import unittest

from live_jobs import LiveCase, clean_environment
from waiting import PATIENCE_S, wait_until

RANK = os.environ["LOCKSTEP_NCCL_RANK"]
RANKS = 4


class RingsTest(LiveCase):
    def setUp(self):
        super().setUp()
        self.rings = self.folder / "rings"
        self.rings.mkdir()

    def start(self, done, opened, **settings):
        """Ranks that have finished `done[rank]` all_reduces and are in `opened[rank]` more."""
        ranks = []
        for rank in range(RANKS):
            environment = clean_environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS),
                                            TORCHELASTIC_RUN_ID=self.job, LOCKSTEP_NCCL_DIR=str(self.rings), **settings)
            process = subprocess.Popen([RANK, str(rank), str(RANKS), str(done[rank]), str(opened[rank]), "stay"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.addCleanup(process.stdin.close)
            self.addCleanup(process.stdout.close)
            self.assertEqual("ready\n", process.stdout.readline())
            ranks.append(process)
        return ranks

    def check(self, *arguments, kind=None):
        """Asks until the wait is old enough to be called a hang; the folder of the evidence."""
        def looked():
            data, folder, _ = self.hang(*arguments, "--job", self.job)
            return (data["verdict"], folder) if data["verdict"]["kind"] != "healthy" else None
        verdict, folder = wait_until(looked, "a hang")
        self.assertEqual([2], verdict["culprit_ranks"], verdict)
        self.assertEqual(("all_reduce", 8), (verdict["operation"], verdict["sequence"]), verdict)
        if kind is not None:
            self.assertEqual(kind, verdict["kind"], verdict)
        self.assertEqual(RANKS, len(list(folder.rglob("nccl.ring"))))
        self.assertEqual([], [one for one in self.kept(folder)["missing"] if one["what"] == "flight_recorder"])
        return folder

    def test_the_rank_that_never_calls_is_named(self):
        self.start([7] * RANKS, [1, 1, 0, 1])
        self.check(kind="stuck_outside_collective")

    def test_through_a_daemon(self):
        self.start([7] * RANKS, [1, 1, 0, 1])
        _, path, line = self.start_daemon()
        port = re.search(r"http://127.0.0.1:(\d+)", line)[1]
        for where in (("--socket", path), ("--host", f"127.0.0.1:{port}")):
            with self.subTest(where=where[0]):
                self.check(*where, kind="stuck_outside_collective")

    def test_a_rank_that_died_is_known_by_what_it_left(self):
        ranks = self.start([7] * RANKS, [1, 1, 0, 1])
        for is_reaped in (False, True):
            ranks[2].kill()
            if is_reaped:
                ranks[2].wait(PATIENCE_S)
            with self.subTest(reaped=is_reaped):
                folder = self.check()
                gone = {process["rank"]: process["state"] for process in self.kept(folder)["processes"]}
                self.assertEqual("gone", gone[2])

    def test_a_ring_of_many_operations_is_kept_short(self):
        self.start([3000] * RANKS, [1, 1, 0, 1])
        _, folder, _ = self.hang("--job", self.job)
        sizes = [path.stat().st_size for path in folder.rglob("nccl.ring")]
        self.assertEqual(RANKS, len(sizes))
        self.assertLess(max(sizes), 300_000)
        self.assertGreater(min(sizes), 1024 * 256)

    def test_files_of_another_job_in_the_folder_are_not_its(self):
        environment = clean_environment(LOCKSTEP_NCCL_DIR=str(self.rings))
        # Rank 5 of another job, which was killed: the communicator's number is another one.
        ended = subprocess.run([RANK, "5", "8", "3", "1"], env={**environment, "LOCKSTEP_NCCL_TEST_COMMUNICATOR": "77"}, check=False,
                               timeout=PATIENCE_S)
        self.assertLess(ended.returncode, 0)
        self.start([7] * RANKS, [1, 1, 0, 1])
        self.check()


if __name__ == "__main__":
    unittest.main()
