"""Ranks that die while they are traced, or soon after it: said by the capture, by `lockstep status` and in the daemon's metrics. A real
lockstepd, a real job of two ranks over Gloo."""

import os
import re
import signal
import subprocess
import unittest

from capture_jobs import Api, Node, TorchTest
from lockstep_program import BINARY, FAILED
from waiting import PATIENCE_S, wait_until

RANKS = 2


class CaptureDeathTest(TorchTest):
    def setUp(self):
        self.node = Node()
        self.addCleanup(self.node.close)
        self.api = Api(self.node.socket)
        self.job = self.node.job(self.python, "mortal", RANKS)
        self.pids = sorted(self.job.pids.values())

    def status(self):
        done = subprocess.run([BINARY, "status", "--socket", self.node.socket], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual(0, done.returncode, done.stderr)
        return re.sub(r"\s+", " ", done.stdout)  # Lines are wrapped.

    def deaths(self, when):
        text = self.api.ask("GET", "/metrics", root="")[1].decode()
        return float(re.search(rf'^lockstep_capture_deaths_total{{when="{when}"}} (\S+)$', text, re.MULTILINE)[1])

    def test_within_a_capture(self):
        self.assertEqual(0, self.deaths("within"))
        number = self.api.start(selector={"pids": self.pids}, window={"duration_ns": 600_000_000_000})
        wait_until(lambda: {target["state"] for target in self.api.capture(number)["targets"]} == {"collecting"},
                   "both ranks to be traced")
        os.kill(self.job.pids[1], signal.SIGSEGV)
        capture = self.api.wait_for_end(number)
        self.assertEqual("failed", capture["state"], capture)
        dead = capture["targets"][1]
        self.assertEqual("died", dead["state"])
        self.assertEqual((11, "SIGSEGV", None), tuple(dead["end"][name] for name in ("signal", "signal_name", "exit_status")))
        self.assertRegex(dead["reason"], r"^the process was ended by SIGSEGV at \S+ UTC while it was traced$")
        self.assertEqual("died", capture["targets"][0]["state"])  # By Gloo's error or torchrun's signal.
        self.assertIsNotNone(capture["targets"][0]["end"])
        self.assertGreaterEqual(self.deaths("within"), 1)
        self.assertIn(f"rank 1, pid {self.job.pids[1]}, was ended by SIGSEGV", self.status())
        self.assertIn("while it was being traced", self.status())

    def test_after_a_capture(self):
        number = self.api.start(selector={"pids": self.pids}, window={"duration_ns": 100_000_000})
        self.assertEqual("done", self.api.wait_for_end(number)["state"])
        os.kill(self.job.pids[0], signal.SIGSEGV)
        end = wait_until(lambda: self.api.capture(number)["targets"][0]["end"], "the daemon to see that the rank has ended")
        self.assertEqual("SIGSEGV", end["signal_name"])
        self.assertEqual("done", self.api.capture(number)["state"])
        self.assertGreaterEqual(self.deaths("after"), 1)
        self.assertRegex(self.status(), rf"rank 0, pid {self.job.pids[0]}, was ended by SIGSEGV .* after its trace \(capture {number}\)")

    def test_the_command_says_it(self):
        command = self.node.start_capture("--duration", "10m", "--no-analyze", "-o", self.node.folder / "dead")

        def is_under_way():
            return any(target["state"] == "collecting" for capture in self.api.captures() for target in capture["targets"])
        wait_until(is_under_way, "a process to be traced", command)
        for pid in self.pids:
            os.kill(pid, signal.SIGSEGV)
        self.assertEqual(FAILED, command.wait(PATIENCE_S))
        said = (self.node.folder / "capture.out").read_text() + (self.node.folder / "capture.err").read_text()
        self.assertRegex(said, r"rank [01] \(.*\): died: the process was ended by SIGSEGV at \S+ UTC while it")


if __name__ == "__main__":
    unittest.main()
