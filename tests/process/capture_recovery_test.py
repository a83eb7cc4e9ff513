"""What goes wrong in the middle of a capture: a real lockstepd is killed and started anew, ranks die, stop, or have no
room to write; a real job of two ranks over Gloo."""

import contextlib
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from capture_jobs import DAEMON, Api, Node, TorchTest, end
from lockstep_program import BINARY, FAILED
from waiting import PATIENCE_S, wait_until

CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 0x40000, 2
PARTIAL = 4
RANKS = 2
LIBC = ctypes.CDLL(None, use_errno=True)


def own_mounts():
    """What is mounted from here on is seen by this process and those that it starts. False: not allowed here."""
    return (LIBC.unshare(CLONE_NEWNS) == 0
            and LIBC.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) == 0)


class CaptureRecoveryTest(TorchTest):
    @classmethod
    def setUpClass(cls):
        if not pathlib.Path(DAEMON).exists():
            raise unittest.SkipTest("lockstepd is not built")
        super().setUpClass()
        cls.mounts = own_mounts()
        cls.node = Node()
        cls.addClassCleanup(cls.node.close)
        cls.api = Api(cls.node.socket)
        cls.jobs = 0
        cls.job = None

    def setUp(self):
        if self.job is None or self.job.launcher.poll() is not None:
            type(self).jobs += 1
            type(self).job = self.node.job(self.python, f"job{self.jobs}", RANKS)
        pids = sorted(self.job.pids.values())

        def registered():
            idle = [process["pid"] for process in self.api.processes() if process["state"] == "idle"]
            return all(pid in idle for pid in pids)
        wait_until(registered, "both ranks to be registered and idle")
        self.selector = {"process_ids": [], "pids": pids}

    def start(self, **window):
        return self.api.start(selector={"pids": self.selector["pids"]},
                              window={"mode": "duration", "duration_ns": 2_000_000_000, **window})

    def written(self, number):
        """The traces that the ranks have written for it, whether or not a daemon looks."""
        return [path for path in (self.node.folder / "out").rglob("*.json") if number in str(path)]

    def kill_daemon(self):
        self.node.daemon.kill()
        self.node.daemon.wait()

    def assert_done(self, number):
        capture = self.api.wait_for_end(number)
        self.assertEqual("done", capture["state"], capture)
        for target in capture["targets"]:
            status, trace = self.api.ask("GET", f"/captures/{number}/traces/{target['trace_name']}")
            self.assertEqual(200, status, trace[:500])
            self.assertEqual(target["trace_bytes"], len(trace))
            names = [event.get("name", "") for event in json.loads(trace)["traceEvents"]]
            self.assertTrue(any(name.startswith("train_step#") for name in names))
        return capture

    def test_the_daemon_is_killed_at_each_state_and_the_traces_come_all_the_same(self):
        for state in ("queued", "delivered", "warming", "collecting", "writing"):
            with self.subTest(state=state):
                self.setUp()
                number = self.start()
                goes_on = state in ("delivered", "collecting")
                if state != "queued":
                    self.api.wait_for(number, [state])
                if goes_on:  # No rank would hear of it any more.
                    self.api.wait_for_fetch(number)
                self.kill_daemon()
                if goes_on:  # The processes go on meanwhile, to the end; one that drops the request is asked again.
                    end_s = time.monotonic() + 30
                    wait_until(lambda number=number, end_s=end_s: len(self.written(number)) == RANKS
                               or time.monotonic() > end_s, "the traces")
                self.node.start_daemon()
                self.assert_done(number)

    def test_the_daemon_is_killed_again_and_again(self):
        number = self.start()
        for i in range(6):
            self.kill_daemon()
            self.node.start_daemon()
            self.api.capture(number)
            if i % 2 == 1:  # Now before the first poll, now after it.
                wait_until(self.api.processes, "a poll")
        self.assert_done(number)

    def test_a_common_start_that_passes_while_no_daemon_runs_is_made_up_for(self):
        start_s = time.time_ns() // 10**9 + 10
        number = self.start(start_unix_ns=start_s * 10**9, warmup_ns=0)
        self.kill_daemon()  # At once: most often no rank has asked yet.
        wait_until(lambda: time.time() > start_s + 1, "the start to pass")
        self.node.start_daemon()
        capture = self.assert_done(number)
        for target in capture["targets"]:
            self.assertIn(target["missed_start_unix_ns"], (None, start_s * 10**9))
            if target["missed_start_unix_ns"]:
                self.assertIn("missed the common start at ", target["reason"])

    def test_a_command_goes_on_over_a_restart_or_says_what_is_lost(self):
        # Bounded either way, and no trace of it is left behind half done.
        command = subprocess.Popen([BINARY, "capture", "--socket", self.node.socket, "--duration", "10s", "--pid",
                                    str(self.job.launcher.pid), "--start-in", "now", "--no-analyze", "-o",
                                    self.node.folder / "restarted"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            def is_under_way():
                return any(target["state"] == "collecting" for capture in self.api.captures()
                           if not capture["finished_unix_ns"] for target in capture["targets"])
            wait_until(is_under_way, "a process to be traced", command)
            self.kill_daemon()
            self.node.start_daemon()
            out, err = command.communicate(timeout=PATIENCE_S)
        finally:
            end(command)
        self.assertIn(command.returncode, (0, FAILED, PARTIAL), err)
        if command.returncode == 0:
            self.assertEqual(RANKS, len(list((self.node.folder / "restarted").glob("*.json.gz"))), out)

    def test_a_job_that_is_killed_in_mid_capture_is_said_to_have_died(self):
        number = self.start(duration_ns=20_000_000_000)
        wait_until(lambda: {target["state"] for target in self.api.capture(number)["targets"]} == {"collecting"},
                   "both ranks to be traced")
        self.addCleanup(self.job.launcher.wait, PATIENCE_S)
        for pid in self.job.pids.values():
            with contextlib.suppress(ProcessLookupError):  # torchrun ends the others itself.
                os.kill(pid, signal.SIGKILL)
        capture = self.api.wait_for_end(number)
        self.assertEqual("failed", capture["state"])
        for target in capture["targets"]:
            self.assertEqual("died", target["state"])
            self.assertRegex(target["reason"], r"^the process was ended by SIG(KILL|TERM) at \S+ UTC while it was traced$")

    def test_a_stopped_rank_leaves_a_partial_capture(self):
        stopped = self.job.pids[1]
        os.kill(stopped, signal.SIGSTOP)
        try:
            done = self.node.capture("--pid", self.job.launcher.pid, "--start-in", "now", "--timeout", "60s",
                                     "--no-analyze", "-o", self.node.folder / f"stopped-{self.jobs}")
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertEqual(PARTIAL, done.returncode, done.stderr)
        self.assertIn("has not polled since", done.stdout + done.stderr)

    def test_a_process_without_the_variable_is_named_so(self):
        plain = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL,
                                 env={key: value for key, value in os.environ.items() if not key.startswith("KINETO")})
        try:
            wait_until(lambda: b"time.sleep" in pathlib.Path(f"/proc/{plain.pid}/cmdline").read_bytes(), "its program")

            def asked():  # A daemon that has just started waits for processes to come back, before it says so.
                status, body = self.api.ask("POST", "/captures", {"selector": {"pids": [plain.pid]}})
                return body.decode() if status == 404 else None
            message = wait_until(asked, "the daemon's answer")
            done = self.node.capture("--pid", plain.pid)
        finally:
            end(plain)
        self.assertIn(f"pid {plain.pid} runs and has not registered", message)
        self.assertIn("without KINETO_USE_DAEMON=1", message)
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("KINETO_USE_DAEMON=1", done.stderr)

    def test_a_full_disk_is_no_trace(self):
        if not self.mounts:
            self.skipTest("nothing can be mounted here")
        out = str(self.node.folder / "out").encode()
        os.makedirs(out, exist_ok=True)
        if LIBC.mount(b"tmpfs", out, b"tmpfs", 0, b"size=64k") != 0:
            self.skipTest("no tmpfs can be mounted here")
        try:
            capture = self.api.wait_for_end(self.start())
            self.assertEqual("failed", capture["state"], capture)
            for target in capture["targets"]:
                self.assertEqual("refused", target["state"])
                self.assertRegex(target["reason"], "disk (is|was) full")
            metrics = self.api.ask("GET", "/metrics", root="")[1].decode()
            self.assertRegex(metrics, rf"(?m)^lockstep_capture_disk_full_total {len(capture['targets'])}$")
        finally:
            LIBC.umount2(out, MNT_DETACH)
        self.assert_done(self.start())  # With room again, and in the same processes.


if __name__ == "__main__":
    unittest.main()
