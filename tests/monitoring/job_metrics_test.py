"""lockstepd follows what ranks record: steps, phases, counters, requests; and lets go of what has ended."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from monitored import Rank, Watched, parse
from waiting import PATIENCE_S

STEPS = 5
JOB = f"metrics-{os.getpid()}"  # Other tests' ranks are seen here, too.


def seconds_of(rank, *words):
    """How long the rank takes to do it, as its client sees it: never less than what it takes by itself."""
    began = time.monotonic()
    rank.do(*words)
    return time.monotonic() - began


class JobMetricsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkm-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_steps_and_phases_of_each_rank(self):
        daemon = Watched(self)
        ranks = [Rank(self, self.folder, rank, job=JOB) for rank in range(2)]
        took_s = [0, 0]
        for _ in range(STEPS):
            took_s[0] += seconds_of(ranks[0], "step", 10, 10, 5, 5)
            took_s[1] += seconds_of(ranks[1], "step", 40, 10, 5, 5)
        daemon.wait_for(lambda: daemon.value("lockstep_steps_total", job_id=JOB) == 2 * STEPS, "all steps")
        for rank, forward_s in ((0, 0.010), (1, 0.040)):
            phases = {phase: daemon.value("lockstep_step_phase_seconds_total", job_id=JOB, rank=str(rank), phase=phase)
                      for phase in ("forward", "backward", "comm_exposed", "other", "input", "h2d", "optimizer", "checkpoint")}
            whole = daemon.value("lockstep_step_seconds_total", job_id=JOB, rank=str(rank))
            self.assertAlmostEqual(sum(phases.values()), whole, delta=1e-6)
            least = {"forward": STEPS * forward_s, "backward": STEPS * 0.010, "comm_exposed": STEPS * 0.005, "other": STEPS * 0.005}
            for phase, least_s in least.items():
                self.assertGreaterEqual(phases[phase], least_s, phase)
                # What a phase may take longer than asked for is what the client waited longer than for all of them.
                self.assertLessEqual(phases[phase], took_s[rank] - (sum(least.values()) - least_s), phase)
            self.assertEqual(phases["input"], 0)
        self.assertEqual(daemon.value("lockstep_job_world_size", job_id=JOB), 2)
        self.assertEqual(daemon.value("lockstep_step_duration_seconds_count", job_id=JOB), 2 * STEPS)
        self.assertEqual(daemon.value("lockstep_collector_success", collector="spans"), 1)
        self.assertEqual(daemon.value("lockstep_rank_info", job_id=JOB, rank="1", pid=str(ranks[1].process.pid)), 1)
        self.assertEqual(daemon.value("lockstep_events_dropped_total", job_id=JOB), 0)

    def test_series_of_a_rank_go_with_its_process(self):
        daemon = Watched(self)
        ranks = [Rank(self, self.folder, rank, job=JOB) for rank in range(2)]
        for rank in ranks:
            rank.do("step", 5, 5, 0, 0)
        daemon.wait_for(lambda: daemon.value("lockstep_steps_total", job_id=JOB) == 2, "both ranks")
        ranks[0].end()
        daemon.wait_for(lambda: daemon.value("lockstep_rank_up", job_id=JOB, rank="0") is None, "rank 0 gone")
        self.assertEqual(daemon.value("lockstep_rank_up", job_id=JOB, rank="1"), 1)
        self.assertEqual(daemon.value("lockstep_steps_total", job_id=JOB, rank="1"), 1)
        ranks[1].process.kill()  # And nobody asks how it ended.
        daemon.wait_for(lambda: f'job_id="{JOB}"' not in daemon.metrics(), "the job gone")

    def test_requests(self):
        daemon = Watched(self)
        rank = Rank(self, self.folder, 0, world_size=1, job=JOB)
        took_s = sorted(seconds_of(rank, "request", 4, 5, 0) for _ in range(20))
        rank.do("request", 1, 1, 1)
        labels = {"job_id": JOB, "model": "generate", "engine": "liblockstep"}
        daemon.wait_for(lambda: daemon.value("lockstep_serving_requests_total", **labels) == 21, "all requests")
        self.assertEqual(daemon.value("lockstep_serving_request_failures_total", **labels), 1)
        self.assertEqual(daemon.value("lockstep_serving_requests_running", **labels), 0)
        self.assertEqual(daemon.value("lockstep_serving_generation_tokens_total", **labels), 81)
        self.assertEqual(daemon.value("lockstep_serving_request_duration_seconds_count", **labels), 20)
        self.assertEqual(daemon.value("lockstep_serving_inter_token_latency_seconds_count", **labels), 60)
        total = daemon.value("lockstep_serving_request_duration_seconds_sum", **labels)
        self.assertGreaterEqual(total, 20 * 0.020)
        median = daemon.value("lockstep_serving_recent_request_duration_seconds", quantile="0.5", **labels)
        self.assertGreaterEqual(median, 0.020)
        self.assertLessEqual(median, 1.02 * took_s[11])  # By its buckets.

    def test_counters(self):
        daemon = Watched(self)
        rank = Rank(self, self.folder, 0, job=JOB)
        for name, value in (("tokens", 100), ("tokens", 50), ("loss", 3.5), ("loss", 2.5),
                            ("torch_memory_reserved_bytes", 123456789)):
            rank.do("count", name, value)
        rank.do("step", 1, 1, 0, 1)
        daemon.wait_for(lambda: daemon.value("lockstep_steps_total", job_id=JOB) == 1, "the step")
        self.assertEqual(daemon.value("lockstep_tokens_total", job_id=JOB), 150)
        self.assertEqual(daemon.value("lockstep_user_value", job_id=JOB, name="loss"), 2.5)
        self.assertEqual(daemon.value("lockstep_torch_memory_reserved_bytes", job_id=JOB), 123456789)
        self.assertIsNone(daemon.value("lockstep_samples_total", job_id=JOB))

    def test_a_rank_that_records_nothing_is_up_and_says_no_more(self):
        daemon = Watched(self)
        Rank(self, None, 3, world_size=8, job=JOB)
        daemon.wait_for(lambda: daemon.value("lockstep_rank_up", job_id=JOB, rank="3") == 1, "rank 3")
        daemon.wait_for(lambda: daemon.value("lockstep_rank_threads", job_id=JOB, rank="3") == 1, "its process")
        # Its standard error is this test's, which may be a file, and then a log.
        names = {name for name, labels in parse(daemon.metrics()) if ("job_id", JOB) in labels and not name.startswith(("lockstep_log_", "lockstep_watchdog_"))}
        of_process = {f"lockstep_rank_{name}" for name in ("cpu_seconds_total", "resident_memory_bytes", "threads",
                                                           "io_read_bytes_total", "io_written_bytes_total")}
        self.assertEqual(names, {"lockstep_rank_up", "lockstep_rank_info", "lockstep_job_world_size"} | of_process)

    def test_no_event_of_a_fast_rank_is_lost(self):
        daemon = Watched(self)
        rank = Rank(self, self.folder, 0, job=JOB)
        rank.do("step", 1, 1, 0, 1)
        daemon.wait_for(lambda: daemon.value("lockstep_steps_total", job_id=JOB) == 1, "the step")
        before = daemon.value("lockstep_events_total", job_id=JOB)
        for _ in range(10):
            rank.do("burst", 100_000)
        daemon.wait_for(lambda: daemon.value("lockstep_events_total", job_id=JOB) >= before + 1_000_000, "the bursts")
        self.assertEqual(daemon.value("lockstep_events_dropped_total", job_id=JOB), 0)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not there: scripts/packages.txt has prometheus")
    def test_promtool_has_nothing_to_say(self):
        daemon = Watched(self)
        rank = Rank(self, self.folder, 0, job=JOB)
        rank.do("request", 2, 1, 0)
        rank.do("count", "tokens", 100)
        rank.do("step", 1, 1, 0, 1)
        daemon.wait_for(lambda: daemon.value("lockstep_steps_total", job_id=JOB) == 1, "the step")
        checked = subprocess.run(["promtool", "check", "metrics"], input=daemon.metrics(), capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
