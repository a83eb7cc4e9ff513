"""TensorBoard itself reads what `lockstep export tensorboard` wrote: through its own reader of event files, and through the
server that its page asks. Tags and values are those of `lockstep analyze --json`."""

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import analyze_program as lockstep
from waiting import PATIENCE_S, wait_until

RECORDED = os.path.join(lockstep.SOURCE_ROOT, "examples", "recorded")
MS = {name: name.removesuffix("_ns") + "_ms"
      for name in ("span_ns", "compute_ns", "communication_ns", "exposed_communication_ns", "overlapped_communication_ns",
                   "exposed_memory_ns", "idle_ns")}
SHARES = ("compute", "exposed_communication", "exposed_memory", "idle")
FLOAT32 = 1e-6  # a scalar of this format is a 32-bit float


class Server:
    """`tensorboard --logdir` on a port of its own choice."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", "0",
             "--load_fast", "false", "--reload_interval", "1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        seen = []
        for line in self.process.stderr:
            seen.append(line)
            found = re.search(r"(http://127\.0\.0\.1:\d+)/", line)
            if found:
                self.url = found[1]
                return
        raise AssertionError("tensorboard did not start:\n" + "".join(seen))

    def ask(self, path, **query):
        address = f"{self.url}/data/plugin/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def tags(self, plugin, runs):
        """The tags of every run, once all of them are loaded."""
        tags = {}

        def are_loaded():
            nonlocal tags
            tags = self.ask(plugin + "/tags")
            return runs <= set(tags)
        wait_until(are_loaded, lambda: f"tensorboard shows {sorted(tags)}, not {sorted(runs)}", self.process)
        return tags

    def close(self):
        self.process.kill()
        self.process.communicate()


class TensorBoardCase:
    """A job, exported once; the tests below look at it."""

    @classmethod
    def make(cls, folder):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        traces = cls.make(holder.name)
        cls.folder = os.path.join(holder.name, "logs")
        done = lockstep.run(["export", "tensorboard", traces, "--logdir", cls.folder])
        if done.returncode != lockstep.DONE:
            raise AssertionError(done.stderr.decode())
        cls.answer = lockstep.analyze_whole(traces)
        cls.ranks = [row["rank"] for row in cls.answer.data["ranks"]]
        cls.accumulators = {}
        with cls().assertNoLogs("tensorboard", logging.WARNING):
            for run in os.listdir(cls.folder):
                accumulator = EventAccumulator(os.path.join(cls.folder, run), {"scalars": 0, "histograms": 0})
                accumulator.Reload()
                cls.accumulators[run] = accumulator

    def runTest(self):
        """Only so that an object can be made for its assertions."""

    def wall_time_s(self, rank, trace_ns):
        clock = self.answer.row("ranks", rank=rank)["clock"]
        offset = clock["offset_ns"] + clock["drift_ppm"] * 1e-6 * (trace_ns - clock["reference_ns"])
        return (trace_ns - offset) / 1e9

    def same(self, one, other, where):
        self.assertAlmostEqual(one, other, delta=abs(other) * FLOAT32 + 1e-12, msg=where)

    def test_a_run_per_rank_and_one_for_the_job(self):
        self.assertEqual({"job", *(f"rank{rank}" for rank in self.ranks)}, set(self.accumulators))

    def test_every_step_of_every_rank_has_the_values_of_the_analysis(self):
        compared = 0
        for rank in self.ranks:
            accumulator = self.accumulators[f"rank{rank}"]
            rows = self.answer.rows("steps", rank=rank)
            self.assertGreater(len(rows), 1)
            for column, name in MS.items():
                events = accumulator.Scalars("step/" + name)
                self.assertEqual([row["step"] for row in rows], [event.step for event in events])
                for row, event in zip(rows, events):
                    self.same(event.value, row[column] / 1e6, f"rank {rank}, step {row['step']}, {name}")
                    self.assertAlmostEqual(event.wall_time, self.wall_time_s(rank, row["start_ns"] + row["span_ns"]), delta=1e-5)
                    compared += 1
            for share in SHARES:
                for row, event in zip(rows, accumulator.Scalars("step_share/" + share)):
                    self.same(event.value, row[share + "_ns"] / row["span_ns"], share)
            with_overlap = [row for row in rows if row["communication_overlap_ratio"] is not None]
            for row, event in zip(with_overlap, accumulator.Scalars("step_share/communication_overlap")):
                self.same(event.value, row["communication_overlap_ratio"], "overlap")
        self.assertGreaterEqual(compared, 2 * len(MS) * len(self.ranks))

    def test_the_whole_window_has_the_values_of_the_analysis(self):
        for rank in self.ranks:
            accumulator = self.accumulators[f"rank{rank}"]
            row = self.answer.row("breakdown", rank=rank)
            for column, name in MS.items():
                (event,) = accumulator.Scalars("window/" + name)
                self.same(event.value, row[column] / 1e6, name)
            straggler = self.answer.row("stragglers", rank=rank)
            (waits,) = accumulator.Scalars("window/wait_ms")
            (given,) = accumulator.Scalars("window/wait_given_ms")
            self.same(waits.value, straggler["wait_ns"] / 1e6, "wait")
            self.same(given.value, straggler["wait_given_ns"] / 1e6, "wait given")

    def test_the_job_has_the_spread_over_ranks_and_the_imbalance(self):
        job = self.accumulators["job"]
        steps = sorted({row["step"] for row in self.answer.data["steps"]})
        histograms = job.Histograms("step_over_ranks/span_ms")
        self.assertEqual(steps, [event.step for event in histograms])
        for event in histograms:
            values = [row["span_ns"] / 1e6 for row in self.answer.rows("steps", step=event.step)]
            self.assertEqual(len(values), event.histogram_value.num)
            self.assertEqual(len(values), sum(event.histogram_value.bucket))
            for ours, theirs in ((min(values), event.histogram_value.min), (max(values), event.histogram_value.max),
                                 (sum(values), event.histogram_value.sum)):
                self.assertAlmostEqual(ours, theirs, delta=1e-9 * abs(ours))
        for event in job.Scalars("step/span_ms/max"):
            self.same(event.value, max(row["span_ns"] for row in self.answer.rows("steps", step=event.step)) / 1e6, "max")
        for quantity, row in self.answer.data["imbalance"].items():
            if row["ratio"] is not None:
                (event,) = job.Scalars("imbalance/" + quantity)
                self.same(event.value, row["ratio"], quantity)

    def test_bandwidth_counts_every_collective_that_has_one(self):
        by_name = {}
        for row in self.answer.data["collectives"]:
            if row["busbw_bytes_per_s"] is not None:
                by_name.setdefault(row["name"], []).append(row["busbw_bytes_per_s"] / 1e9)
        self.assertTrue(by_name)
        tags = {tag for tag in self.accumulators["job"].Tags()["histograms"] if tag.startswith("collective_busbw_gb_per_s/")}
        self.assertEqual({"collective_busbw_gb_per_s/" + name for name in by_name}, tags)
        for name, values in by_name.items():
            (event,) = self.accumulators["job"].Histograms("collective_busbw_gb_per_s/" + name)
            self.assertEqual(len(values), event.histogram_value.num)
            self.assertAlmostEqual(max(values), event.histogram_value.max, delta=1e-9 * max(values))

    def test_the_server_shows_the_same(self):
        server = Server(self.folder)
        try:
            runs = {"job", *(f"rank{rank}" for rank in self.ranks)}
            scalars = server.tags("scalars", runs)
            histograms = server.tags("histograms", {"job"})
            for run, accumulator in self.accumulators.items():
                self.assertEqual(set(accumulator.Tags()["scalars"]), set(scalars[run]), run)
                self.assertEqual(set(accumulator.Tags()["histograms"]), set(histograms.get(run, {})), run)
            self.assertIn("Milliseconds of the step", scalars["rank0"]["step/span_ms"]["description"])
            for rank in self.ranks:
                points = server.ask("scalars/scalars", run=f"rank{rank}", tag="step/span_ms")
                rows = self.answer.rows("steps", rank=rank)
                self.assertEqual([row["step"] for row in rows], [step for _, step, _ in points])
                for row, (_, _, value) in zip(rows, points):
                    self.same(value, row["span_ns"] / 1e6, f"rank {rank}")
            points = server.ask("histograms/histograms", run="job", tag="step_over_ranks/span_ms")
            self.assertEqual(sorted({row["step"] for row in self.answer.data["steps"]}), [step for _, step, _ in points])
            for _, _, bins in points:
                self.assertEqual(len(self.ranks), sum(count for _, _, count in bins))
        finally:
            server.close()

    def test_a_second_export_is_refused_and_with_force_adds_files(self):
        with tempfile.TemporaryDirectory() as folder:
            command = ["export", "tensorboard", RECORDED, "--logdir", folder, "--ranks", "1", "--quiet"]
            self.assertEqual(lockstep.DONE, lockstep.run(command).returncode)
            self.assertEqual({"job", "rank1"}, set(os.listdir(folder)))
            before = os.listdir(os.path.join(folder, "rank1"))
            self.assertRegex(before[0], r"^events\.out\.tfevents\.\d{10}\.[\w-]+\.\d+\.\d+$")
            refused = lockstep.run(command)
            self.assertEqual(lockstep.FAILED, refused.returncode)
            self.assertIn(b"--force", refused.stderr)
            self.assertEqual(before, os.listdir(os.path.join(folder, "rank1")))
            self.assertEqual(lockstep.DONE, lockstep.run([*command, "--force"]).returncode)
            self.assertEqual(2, len(os.listdir(os.path.join(folder, "rank1"))))


class RecordedJobTest(TensorBoardCase, unittest.TestCase):
    @classmethod
    def make(cls, folder):
        return RECORDED


class PlantedJobTest(TensorBoardCase, unittest.TestCase):
    @classmethod
    def make(cls, folder):
        traces = os.path.join(folder, "traces")
        lockstep.generate(traces, "--ranks", 3, "--steps", 6, "--first-step", 10, "--layers", 4, "--memory", "--straggler",
                          "1:4000")
        return traces

    def test_kernels_have_a_histogram_of_every_event(self):
        for rank in self.ranks:
            accumulator = self.accumulators[f"rank{rank}"]
            rows = self.answer.rows("kernels", rank=rank)
            tags = [tag for tag in accumulator.Tags()["histograms"] if tag.startswith("kernel_us/")]
            self.assertEqual(min(20, len({row["name"] for row in rows})), len(tags))
            figures = sorted((row["count"], row["min_ns"], row["max_ns"]) for row in rows)
            for tag in tags:
                (event,) = accumulator.Histograms(tag)
                value = event.histogram_value
                self.assertIn((value.num, round(value.min * 1000), round(value.max * 1000)), figures, tag)

    def test_memory_has_its_peaks(self):
        for rank in self.ranks:
            rows = [row for row in self.answer.rows("memory", rank=rank) if row["peak_allocated_bytes"] is not None]
            self.assertTrue(rows)
            for row in rows:
                device = "cpu" if row["device"] < 0 else f"device{row['device']}"
                (event,) = self.accumulators[f"rank{rank}"].Scalars(f"memory/{device}/peak_allocated_bytes")
                self.same(event.value, row["peak_allocated_bytes"], device)

    def test_the_straggler_stands_out(self):
        given = {rank: self.accumulators[f"rank{rank}"].Scalars("window/wait_given_ms")[0].value for rank in self.ranks}
        self.assertEqual(1, max(given, key=given.get))


if __name__ == "__main__":
    unittest.main()
