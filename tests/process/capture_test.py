"""`lockstep capture` of a real job: torchrun, four ranks over Gloo, unmodified but for the environment; a real lockstepd."""

import json
import signal
import sys
import unittest

from capture_jobs import Node, TorchTest, end, steps_of
from lockstep_program import FAILED, MISUSED, PARTIAL, pathlib
from waiting import PATIENCE_S, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from open_files import own_files  # noqa: E402

RANKS = 4


class CaptureTest(TorchTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = Node()
        cls.addClassCleanup(cls.node.close)
        cls.job = cls.node.job(cls.python, "alpha", RANKS)

    def capture(self, *arguments, status=0):
        """The capture's part of the JSON, and the folder of its traces."""
        folder = self.node.folder / self.id().rpartition(".")[2]
        document = self.node.capture_json("-o", folder, *arguments, status=status)
        self.assertEqual("lockstep.capture/1", document["schema"])
        return document["data"]["captures"][0], folder

    def assert_traces(self, capture, folder, ranks):
        self.assertEqual(ranks, [process["rank"] for process in capture["processes"]], capture)
        for process in capture["processes"]:
            self.assertEqual("done", process["state"], process)
            self.assertIsNone(process["damage"], process)
            self.assertEqual(self.job.pids[process["rank"]], process["pid"])
            self.assertIn(f"-rank{process['rank']}-pid{process['pid']}-", process["file"])
        files = sorted(path.name for path in folder.glob("*.json.gz"))
        self.assertEqual(sorted(process["file"] for process in capture["processes"]), files)

    def assert_nothing_is_left(self):
        """Neither captures nor traces stay with the daemon."""
        left = [path for path in (self.node.folder / "out").rglob("*.json*")]
        self.assertEqual([], left)

    def test_a_length_of_time_on_all_ranks_at_one_moment(self):
        # A rank that is held up misses the one moment, and is named: the user repeats the capture then. Each is so long that all are in it.
        for attempt in range(5):
            folder = self.node.folder / f"at-one-moment-{attempt}"
            done = self.node.capture("--json", "-o", folder, "--duration", "3s")
            capture = json.loads(done.stdout)["data"]["captures"][0]
            if done.returncode != PARTIAL:
                break
            print("once more:", [process["reason"] for process in capture["processes"] if process["reason"]], flush=True)
        self.assertEqual(0, done.returncode, capture)
        self.assert_traces(capture, folder, list(range(RANKS)))
        self.assertFalse(capture["partial"])
        begins = [process["window_start_unix_ns"] for process in capture["processes"]]
        ends = [process["window_end_unix_ns"] for process in capture["processes"]]
        self.assertLess(max(begins), min(ends), "the windows lie over each other")
        self.assertEqual(capture["start_spread_ns"], max(begins) - min(begins))
        self.assertIsNotNone(capture["start_unix_ns"])
        self.assert_nothing_is_left()
        record = json.loads(next(folder.glob("lockstep-capture-*.json")).read_text(encoding="utf-8"))
        self.assertEqual(capture["window"], record["data"]["captures"][0]["window"])

    def test_iterations_are_the_same_steps_on_all_ranks(self):
        capture, folder = self.capture("--iterations", "5")
        self.assert_traces(capture, folder, list(range(RANKS)))
        self.assertEqual("same", capture["steps"]["verdict"], capture["steps"])
        held = [steps_of(folder / process["file"]) for process in capture["processes"]]
        self.assertGreaterEqual(len(held[0]), 4)
        for steps in held[1:]:
            self.assertEqual(held[0], steps)
        for process in capture["processes"]:
            self.assertEqual(5, process["optimizer_step_count"])
        self.assert_nothing_is_left()

    def test_it_ends_with_the_analysis(self):
        folder = self.node.folder / "analysed"
        done = self.node.capture("--start-in", "now", "-o", folder)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("4 traces of 4 ranks on ", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^\s*4 ranks|ranks\s+4|4 ranks")
        self.assertIn("capturing 4 ranks on ", done.stderr)

    def test_a_process_that_counts_no_steps_is_named(self):
        other = self.node.job(self.python, "delta", 1, "forward-only")
        try:
            capture, _ = self.capture("--job", "delta", "--iterations", "3", status=PARTIAL)
        finally:
            end(other.launcher)
        self.assertIn("had not counted a step", capture["processes"][0]["reason"])
        self.assertTrue(capture["partial"])

    def test_a_capture_that_is_interrupted_is_cancelled_on_the_node(self):
        done = self.node.start_capture("--duration", "2s", "-o", self.node.folder / "interrupted")
        wait_until(lambda: "has the request" in (self.node.folder / "capture.err").read_text(encoding="utf-8"),
                   "a rank to have the request", done)
        done.send_signal(signal.SIGINT)
        self.assertEqual(FAILED, done.wait(PATIENCE_S))
        self.assertIn("cancelled: nothing was kept", (self.node.folder / "capture.out").read_text(encoding="utf-8"))

        # What the processes fetched goes on in them; after that they can be captured again.
        def free():
            return self.node.capture("--ranks", "0", "--start-in", "now", "--no-analyze").returncode == 0
        wait_until(free, "the processes to be free")
        wait_until(lambda: not list((self.node.folder / "out").rglob("*.json*")), "the cancelled traces to be removed")

    def test_many_captures_in_a_row_leave_nothing_behind(self):
        def descriptors():
            # A rank has its own; the daemon of a root sees other tests' ranks, too.
            return [len(own_files(self.node.daemon.pid, str(self.node.folder))),
                    *(len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())) for pid in self.job.pids.values())]
        self.capture("--start-in", "now", "--duration", "100ms")  # What is opened once is open now.
        before = descriptors()
        document = self.node.capture_json("--repeat", "20", "--start-in", "now", "--duration", "100ms", "-o",
                                          self.node.folder / "many")
        captures = document["data"]["captures"]
        self.assertEqual(20, len(captures))
        for capture in captures:
            self.assertEqual(["done"] * RANKS, [process["state"] for process in capture["processes"]])
        self.assertEqual(20 * RANKS, len(list((self.node.folder / "many").rglob("*.json.gz"))))
        wait_until(lambda: all(now <= was for now, was in zip(descriptors(), before)), "descriptors to be closed")
        self.assert_nothing_is_left()

    def test_one_process(self):
        capture, folder = self.capture("--pid", self.job.pids[2])
        self.assert_traces(capture, folder, [2])

    def test_two_ranks(self):
        capture, folder = self.capture("--ranks", "1,3", "--start-in", "now", "--no-analyze")
        self.assert_traces(capture, folder, [1, 3])
        self.assertFalse(capture["partial"])

    def test_two_jobs_are_told_apart(self):
        other = self.node.job(self.python, "beta", 2)
        try:
            done = self.node.capture("-o", self.node.folder / "none")
            self.assertEqual(FAILED, done.returncode, done.stderr)
            self.assertIn("job alpha", done.stderr)
            self.assertIn("job beta", done.stderr)
            capture, _ = self.capture("--job", "beta", "--start-in", "now")
            self.assertEqual(set(other.pids.values()), {process["pid"] for process in capture["processes"]})
            capture, _ = self.capture("--pid", other.launcher.pid, "--start-in", "now")
            self.assertEqual(set(other.pids.values()), {process["pid"] for process in capture["processes"]})
        finally:
            end(other.launcher)

        def alone():
            done = self.node.capture("--ranks", "99")
            return "beta" not in done.stderr
        wait_until(alone, "the second job to be gone")

    def test_a_lead_that_would_lose_ranks_is_refused(self):
        done = self.node.capture("--start-in", "1s")
        self.assertEqual(MISUSED, done.returncode)
        self.assertIn("at least", done.stderr)

    def test_what_nobody_is_registered_for_is_told(self):
        done = self.node.capture("--job", "gamma")
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("job gamma", done.stderr)
        self.assertIn("job alpha", done.stderr)
        self.assertIn("KINETO_USE_DAEMON=1", done.stderr)


if __name__ == "__main__":
    unittest.main()
