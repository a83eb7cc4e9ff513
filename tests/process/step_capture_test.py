"""`lockstep capture` of a job under `lockstep run`: each rank is traced by lockstep's own tracer, from step to step. torchrun, ranks over Gloo, a
real lockstepd."""

import signal
import subprocess
import unittest

from capture_jobs import Api, Node, TorchTest, end, steps_of
from lockstep_program import BINARY, FAILED
from waiting import PATIENCE_S, wait_until

RANKS = 3


class StepCaptureTest(TorchTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = Node(allow_unsafe=False)
        cls.addClassCleanup(cls.node.close)
        cls.api = Api(cls.node.socket)
        cls.job = cls.node.job(cls.python, "steps", RANKS, under=[BINARY, "run", "--quiet", "--"])

    def setUp(self):
        wait_until(lambda: [process["tracer"] for process in self.ranks()] == ["steps"] * RANKS, "all ranks' tracers to ask for work",
                   self.job.launcher)

    def ranks(self):
        return [process for process in self.api.processes() if process["role"] == "trainer"]

    def capture(self, *arguments, status=0):
        folder = self.node.folder / self.id().rpartition(".")[2]
        return self.node.capture_json("-o", folder, *arguments, status=status)["data"]["captures"][0], folder

    def assert_goes_on(self):
        """Every rank is as it was, and can be traced."""
        capture, _ = self.capture("--iterations", "1", "--no-analyze")
        self.assertEqual([self.job.pids[rank] for rank in range(RANKS)], [process["pid"] for process in capture["processes"]])
        self.assertEqual("same", capture["steps"]["verdict"], capture)
        self.assertEqual([], [path for path in (self.node.folder / "out").rglob("*") if path.is_file()])

    def test_iterations_are_the_same_steps_by_their_numbers(self):
        capture, folder = self.capture("--iterations", "3")
        self.assertEqual("same", capture["steps"]["verdict"], capture)
        held = [steps_of(folder / process["file"]) for process in capture["processes"]]
        self.assertEqual([held[0]] * RANKS, held)
        for process in capture["processes"]:
            self.assertEqual(("done", 3, None), (process["state"], process["optimizer_step_count"], process["damage"]))
        self.assert_goes_on()

    def test_a_length_of_time_is_analysed(self):
        done = self.node.capture("--duration", "500ms", "-o", self.node.folder / "timed")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(f"{RANKS} traces of {RANKS} ranks on ", done.stdout)
        self.assert_goes_on()

    def test_a_process_is_listed_once(self):
        self.assertEqual(sorted(self.job.pids.values()), sorted(process["pid"] for process in self.ranks()))
        done = subprocess.run([BINARY, "status", "--socket", self.node.socket], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertIn(f"{RANKS} of {RANKS} ranks", done.stdout)

    def test_a_capture_that_is_interrupted_is_broken_off(self):
        command = self.node.start_capture("--duration", "10m", "--start-in", "now", "-o", self.node.folder / "interrupted")
        wait_until(lambda: any(target["state"] in ("warming", "collecting") for capture in self.api.captures()
                               for target in capture["targets"]), "a rank to be traced", command)
        command.send_signal(signal.SIGINT)
        self.assertEqual(FAILED, command.wait(PATIENCE_S))
        wait_until(lambda: all(process["state"] == "idle" for process in self.ranks()), "the ranks to be free")
        self.assert_goes_on()

    def test_a_daemon_that_is_killed_meanwhile_finds_the_traces(self):
        number = self.api.start(selector={"pids": sorted(self.job.pids.values())}, window={"duration_ns": 3_000_000_000})
        wait_until(lambda: {target["state"] for target in self.api.capture(number)["targets"]} <= {"warming", "collecting"},
                   "all ranks to be traced")
        self.node.daemon.kill()
        self.node.daemon.wait()
        self.node.start_daemon()
        capture = self.api.wait_for_end(number)
        self.assertEqual("done", capture["state"], capture)
        self.api.ask("DELETE", f"/captures/{number}")
        self.assert_goes_on()

    def test_what_kineto_may_end_is_asked_about(self):
        job = self.node.job(self.python, "plain", 1)
        self.addCleanup(end, job.launcher)
        wait_until(lambda: len(self.ranks()) == RANKS + 1, "the job to ask for work", job.launcher)
        mended = [process["torch_version"] for process in self.ranks() if process["pid"] == job.pids[0]][0] >= "2.14"
        command = ("--pid", job.pids[0], "--duration", "100ms", "--no-analyze", "-o")
        done = self.node.capture(*command, self.node.folder / "refused")
        if not mended:
            self.assertEqual(FAILED, done.returncode)
            self.assertRegex(done.stderr, r"can crash the process that it traces: \d+ of [\d,]+ captures.* --allow-unsafe")
            self.assertFalse((self.node.folder / "refused").exists())
            status = subprocess.run([BINARY, "status", "--socket", self.node.socket], capture_output=True, text=True, check=False,
                                    timeout=PATIENCE_S, stdin=subprocess.DEVNULL).stdout
            self.assertIn("a capture could end 1 of them (Kineto of PyTorch 2.", status)
            done = self.node.capture(*command, self.node.folder / "allowed", "--allow-unsafe")
        self.assertEqual(0, done.returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
