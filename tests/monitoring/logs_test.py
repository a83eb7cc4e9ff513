"""Logs of ranks beside a real lockstepd: under `lockstep run --logs` and through a rotation, on a file that two ranks write to, and one
that the settings name."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from monitored import DAEMON, Watched

JOB = f"logs-{os.getpid()}"  # Other tests' ranks are seen here, too.
LOCKSTEP = DAEMON.with_name("lockstep")
# Prints each line that it is told; "|" is a line end.
TALKER = "import sys\nfor line in sys.stdin:\n    print(line.rstrip().replace('|', '\\n'), flush=True)\n"
TRACEBACK = 'Traceback (most recent call last):|  File "train.py", line 3, in f|    g()|torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB'
TIMEOUT = ("[rank0]:[E1121 03:35:23.1 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 0] Watchdog caught collective operation timeout: "
           "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600)")


class LogsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkl-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "lockstep.toml").write_text(f'[sensors]\ngpu = false\n[logs]\npaths = ["{self.folder}/more/*.log"]\n')
        (self.folder / "lockstep.toml").chmod(0o644)
        (self.folder / "more").mkdir()
        (self.folder / "more/a.log").write_text("ERROR: long ago\n")
        self.daemon = Watched(self, "--config", self.folder / "lockstep.toml")
        self.daemon.wait_for(lambda: self.errors("unknown", "files") == 0, "a file that the settings name")

    def talker(self, rank, command=(), stdout=subprocess.DEVNULL):
        launcher = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "TORCHELASTIC_RUN_ID": JOB, "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": "29500"}
        process = subprocess.Popen([*command, sys.executable, "-c", TALKER], stdin=subprocess.PIPE, stdout=stdout, text=True,
                                   env={**os.environ, **launcher})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        return process

    def errors(self, rank, job=JOB):
        return self.daemon.value("lockstep_log_errors_total", job_id=job, rank=rank)

    @staticmethod
    def say(process, *lines):
        process.stdin.write("".join(line + "\n" for line in lines))
        process.stdin.flush()

    def test_errors_of_ranks_are_counted_where_their_logs_are(self):
        own = self.talker(0, [LOCKSTEP, "run", "--logs", self.folder / "logs", "--log-size", "100KB", "--log-plain", "--"])
        with open(self.folder / "shared.out", "w", encoding="utf-8") as shared:
            other = self.talker(1, stdout=shared)
        self.say(own, "step 1", "ERROR: one", TRACEBACK, TIMEOUT)
        self.say(other, "WARNING: low", "ERROR: mine", "[rank1]: ERROR: mine too")
        self.daemon.wait_for(lambda: (self.errors("0"), self.errors("1")) == (3, 2), "errors of both")
        shown = json.loads(subprocess.run([LOCKSTEP, "top", "--once", "--json", "--socket", self.daemon.path, "--job", JOB], check=True,
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout)
        self.assertEqual({"0": 3, "1": 2}, {rank["rank"]: rank["log_error_count"] for job in shown["data"]["jobs"] for rank in job["ranks"]})
        value = self.daemon.value
        self.assertEqual(1, value("lockstep_watchdog_timeouts_total", job_id=JOB, rank="0"))
        self.assertEqual(0, value("lockstep_watchdog_timeouts_total", job_id=JOB, rank="1"))
        self.assertEqual(1, value("lockstep_log_events_total", job_id=JOB, rank="0", kind="out_of_memory"))
        self.assertEqual(1, value("lockstep_log_lines_total", job_id=JOB, rank="1", level="warning"))
        # Its log is rotated some times; what it says goes on to be counted.
        for burst in range(2):
            self.say(own, *(f"INFO: {'x' * 100}" for _ in range(600)), "ERROR: again")
            self.daemon.wait_for(lambda count=4 + burst: self.errors("0") == count, "errors of a log that is rotated")
        self.assertGreater(len(list((self.folder / "logs").iterdir())), 1)
        with open(self.folder / "more/a.log", "a", encoding="utf-8") as more:
            more.write("[rank7]: ERROR: x\nERROR: y\n")
        self.daemon.wait_for(lambda: (self.errors("7", "files"), self.errors("unknown", "files")) == (1, 1), "the file that the settings name")
        for process in (own, other):
            process.stdin.close()
            process.wait()
        self.daemon.wait_for(lambda: self.errors("0") is None and self.errors("1") is None, "series go with their ranks")


if __name__ == "__main__":
    unittest.main()
