"""TensorBoard itself reads what `lockstep export tensorboard --follow` writes, while it is written: a real lockstepd, ranks
that record, and a TensorBoard server that runs all the while."""

import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/monitoring"))

from follower import BINARY, FollowerTest  # noqa: E402
from monitored import DAEMON, Rank, Watched  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboard_test import Server  # noqa: E402
from waiting import PATIENCE_S, wait_until  # noqa: E402

DONE, FAILED, MISUSED, PARTIAL = 0, 1, 2, 4


class Job:
    """Two ranks that step, count tokens and serve, until the test's end."""

    def __init__(self, test, name):
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        test.addCleanup(scratch.cleanup)
        self.name = f"{name}-{os.getpid()}"
        self.folder = pathlib.Path(scratch.name)
        self.test = test
        self.ranks = [Rank(test, self.folder, rank, job=self.name) for rank in range(2)]
        self.start()
        test.addCleanup(self.end)

    def start(self):
        self.steps = dict.fromkeys(self.ranks, 0)
        self.stops = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(rank,)) for rank in self.ranks]
        for thread in self.threads:
            thread.start()

    def run(self, rank):
        while not self.stops.is_set():
            rank.do("step", 20, 20, 10, 5)
            self.steps[rank] += 1
            rank.do("count", "tokens", 1000)
            rank.do("count", "loss", 0.25)
            rank.do("request", 2, 5, 0)

    def pause(self):
        self.stops.set()
        for thread in self.threads:
            thread.join()

    def end(self):
        self.pause()
        for rank in self.ranks:
            rank.end()


def accumulate(folder):
    accumulator = EventAccumulator(str(folder), {"scalars": 0})
    accumulator.Reload()
    return accumulator


class FollowTest(FollowerTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "runs"

    def follow(self, daemon, *words):
        return self.start(daemon, "tensorboard", "--logdir", self.folder, *words)

    def events(self, run):
        return list((self.folder / run).glob("events.out.tfevents.*"))

    def test_a_job_that_runs_is_on_the_board_as_it_runs(self):
        daemon = Watched(self)
        # Before there is the job: it is waited for. By its name, for this machine may have others.
        follower = self.follow(daemon, "--linger", "500ms", "--job", f"board-{os.getpid()}")
        self.assertIn("waiting for one", follower.stderr.readline())
        job = Job(self, "board")
        self.assertRegex(follower.stderr.readline(), rf"follows job {job.name}: [12] ranks? into {self.folder}")
        wait_until(lambda: self.events("rank1") and self.events("job"), "files of rank 1 and the job")
        server = Server(str(self.folder))
        self.addCleanup(server.close)

        def shown(run, tag):
            return server.ask("scalars/scalars", run=run, tag=tag) if tag in server.ask("scalars/tags").get(run, {}) else []

        # The server, which is never started anew, sees more and more.
        wait_until(lambda: len(shown("rank0", "step/time_ms")) >= 2, "curve")
        before = len(shown("rank0", "step/time_ms"))
        wait_until(lambda: len(shown("rank0", "step/time_ms")) >= before + 3, "more of the curve")
        wait_until(lambda: shown("job", f"serving/generate/{os.uname().nodename}/request_ms/p95"), "requests")
        tags = server.ask("scalars/tags")
        self.assertLessEqual({"job", "rank0", "rank1"}, set(tags))
        self.assertIn("How long a step takes", tags["rank0"]["step/time_ms"]["description"])

        # What it shows is what the daemon counts, and that is what was made.
        job.pause()
        made = job.steps[job.ranks[0]]
        wait_until(lambda: daemon.value("lockstep_steps_total", job_id=job.name, rank="0") == made
                  and accumulate(self.folder / "rank0").Scalars("progress/age_s")[-1].step == made, "the last step")
        job.end()
        self.assertEqual(DONE, follower.wait(PATIENCE_S), follower.stderr.read())
        with self.assertNoLogs("tensorboard", logging.WARNING):
            rank = accumulate(self.folder / "rank0")
            whole = accumulate(self.folder / "job")
        steps = [event.step for event in rank.Scalars("step/time_ms")]
        self.assertEqual(steps, sorted(set(steps)))
        for event in rank.Scalars("step/time_ms"):
            self.assertGreaterEqual(event.value, 55)  # Never shorter than asked for.
            self.assertLess(abs(event.wall_time - time.time()), PATIENCE_S * 4)
        last = {tag: rank.Scalars(tag)[-1].value for tag in rank.Tags()["scalars"]}
        self.assertAlmostEqual(sum(value for tag, value in last.items() if tag.startswith("step_share/")), 1, delta=0.02)
        self.assertAlmostEqual(last["throughput/tokens_per_s"], 1000 * last["step/per_second"], delta=200 * last["step/per_second"])
        self.assertEqual(last["user/loss"], 0.25)
        self.assertIn("step/own_ms", last)
        self.assertIn("process/resident_gb", last)
        # Nobody has measured these.
        self.assertFalse([tag for tag in last if tag.startswith(("gpu/", "throughput/mfu", "throughput/samples"))])
        self.assertEqual(max(event.value for event in whole.Scalars("ranks/there")), 2)  # One ends after the other.
        serving = f"serving/generate/{os.uname().nodename}/"
        requests = [event.step for event in whole.Scalars(serving + "request_ms/p50")]
        self.assertEqual(requests, sorted(requests))
        self.assertGreaterEqual(whole.Scalars(serving + "request_ms/p50")[-1].value, 10)
        self.assertEqual(whole.Scalars(serving + "failures")[-1].value, 0)

    def test_a_restart_adds_a_file_and_what_cannot_be_done_is_said(self):
        daemon = Watched(self)
        jobs = [Job(self, "one"), Job(self, "two")]
        for job in jobs:
            daemon.wait_for(lambda: daemon.value("lockstep_rank_up", job_id=job.name) == 2, "ranks")  # noqa: B023
        several = self.follow(daemon)
        self.assertEqual(FAILED, several.wait(PATIENCE_S))
        self.assertRegex(several.stderr.read(), "several jobs run there .*--job")
        self.assertFalse(self.folder.exists())

        for number, ending in enumerate((signal.SIGINT, signal.SIGTERM), 1):
            follower = self.follow(daemon, "--job", jobs[0].name)
            self.assertIn("follows job", follower.stderr.readline())
            wait_until(lambda: len(self.events("rank0")) == number  # noqa: B023
                      and max(self.events("rank0")).stat().st_size > 1000, "values")
            follower.send_signal(ending)
            self.assertEqual(DONE, follower.wait(PATIENCE_S))
            self.assertRegex(follower.stderr.read(), r"\d+ scalars in 3 runs")
        self.assertEqual(2, len(self.events("rank0")))
        with self.assertNoLogs("tensorboard", logging.WARNING):
            steps = [event.step for event in accumulate(self.folder / "rank0").Scalars("progress/age_s")]
        self.assertEqual(steps, sorted(steps))
        # Where files are, the export of traces still refuses.
        done = subprocess.run([BINARY, "export", "tensorboard", SOURCE / "examples/recorded", "--logdir", self.folder, "-q"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("--force", done.stderr)

        before = sum(path.stat().st_size for path in self.folder.rglob("events*"))
        small = self.follow(daemon, "--job", jobs[1].name, "--limit", "4K", "--for", "1s")
        self.assertEqual(PARTIAL, small.wait(PATIENCE_S))
        self.assertIn("--limit is reached", small.stderr.read())
        self.assertLess(sum(path.stat().st_size for path in self.folder.rglob("events*")) - before, 4096 * 4)

        (self.folder.parent / "file").write_text("")
        self.folder = self.folder.parent / "file"
        follower = self.follow(daemon, "--job", jobs[0].name)
        self.assertEqual(FAILED, follower.wait(PATIENCE_S))
        self.assertIn("--logdir", follower.stderr.read())

    def test_misuse(self):
        for words, status in ((["--follow", "x", "--logdir", "y"], MISUSED), (["--follow"], MISUSED),
                              (["x", "--logdir", "y", "--interval", "1s"], MISUSED), (["x", "--logdir", "y", "--host", "a"], MISUSED),
                              (["--follow", "--logdir", "y", "--interval", "1ms"], MISUSED),
                              (["--follow", "--logdir", "y", "--steps", "3"], MISUSED),
                              (["--follow", "--logdir", "y", "--socket", "/nowhere"], FAILED)):
            done = subprocess.run([BINARY, "export", "tensorboard", *words], capture_output=True, text=True, check=False)
            self.assertEqual(status, done.returncode, (words, done.stderr))


if __name__ == "__main__":
    assert DAEMON.exists()
    unittest.main()
