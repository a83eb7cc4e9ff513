"""Jobs that come and go leave nothing in lockstepd: descriptors, threads and series are what they were before."""

import collections
import os
import pathlib
import sys
import tempfile
import time
import unittest

from monitored import Rank, Watched, parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from open_files import own_files  # noqa: E402

ROUNDS = 3
RANKS = 8
LOOKS = 10


class ChurnTest(unittest.TestCase):
    def look(self, daemon):
        """What is there now. Other tests' ranks on this machine, whom the daemon of a root sees too, count for nothing."""
        series = {key for key in parse(daemon.metrics()) if key[0] != "lockstep_api_requests_total"}
        series = {key for key in series if self.name in dict(key[1]).get("job_id", self.name)}
        return series, set(os.listdir(f"/proc/{daemon.process.pid}/task")), own_files(daemon.process.pid, self.name, str(daemon.folder))

    def what_stays(self, daemon):
        """What may not grow: each series, thread and file that is there at every look.

        A file that a sensor has open for as long as it reads it, a thread that looks a process up, a connection that was
        just closed: each is seen at one look or another, and is not a leak. What leaks is there at all of them.
        """
        series, threads, files = self.look(daemon)
        for _ in range(LOOKS - 1):
            time.sleep(0.3)
            later = self.look(daemon)
            series, threads, files = series & later[0], threads & later[1], files & later[2]
        return series, len(threads), collections.Counter(file.split(":")[0] for _, file in files)

    def test_nothing_stays_of_jobs_that_have_ended(self):
        daemon = Watched(self)
        self.name = name = f"churn-{os.getpid()}"
        wanted = {"spans", "processes", "nccl_rings"}
        daemon.wait_for(lambda: wanted <= {dict(labels).get("collector") for sample, labels in parse(daemon.metrics())
                                           if sample == "lockstep_collector_success"}, "sensors")
        before = None
        for number in range(ROUNDS):
            job = f"{name}-{number}"
            with tempfile.TemporaryDirectory(prefix=f"lkt-{name}-", dir="/tmp") as scratch:
                ranks = [Rank(self, pathlib.Path(scratch), rank, world_size=RANKS, job=job) for rank in range(RANKS)]
                for rank in ranks:
                    rank.do("step", 1, 1, 0, 1)
                    rank.do("request", 2, 1, 0)
                    rank.do("count", f"value-{number}", 1)
                daemon.wait_for(lambda job=job: len(daemon.steps_of(job)) == RANKS, "all ranks")
                for rank in ranks:
                    rank.end()
            daemon.wait_for(lambda: not [key for key in parse(daemon.metrics()) if name in dict(key[1]).get("job_id", "")], "their going")
            # The first round's is what one has: files and threads that are made once.
            now = self.what_stays(daemon)
            if before is None:
                before = now
                continue
            self.assertEqual(before[0], now[0])
            self.assertEqual(before[1], now[1])
            self.assertEqual(before[2], now[2])


if __name__ == "__main__":
    unittest.main()
