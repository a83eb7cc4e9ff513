"""Inspections over the Unix socket, and the loopback: who may look at whose processes, and what comes back."""

import os
import subprocess
import unittest

from daemon_process import OTHER_UID, PYTHON, Daemon, ask, ask_as
from waiting import wait_until


def start_rank(test, uid, job):
    """No PyTorch: a process with a rank's environment."""
    environment = {"PATH": os.environ["PATH"], "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": job}
    process = subprocess.Popen([PYTHON, "-c", "print('ready', flush=True); import sys; sys.stdin.read()"], user=uid, group=uid,
                               extra_groups=[], cwd="/", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for close in (process.stdout.close, process.stdin.close, process.wait, process.kill):
        test.addCleanup(close)
    process.stdout.readline()
    return process


def inspect(ask_one, spec):
    """(status, body) of the request once it is over. `ask_one(method, path, body)` gives (status, headers, body)."""
    status, _, body = ask_one("POST", "/api/v1/inspections", spec)

    def is_over():
        nonlocal status, body
        if status not in (200, 202) or body["state"] == "done":
            return True
        status, _, body = ask_one("GET", f"/api/v1/inspections/{body['id']}", None)
        return False
    wait_until(is_over, "the inspection's end")
    return status, body


@unittest.skipUnless(os.getuid() == 0, "needs root, to be two users")
class TwoUsersTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(self)
        self.where = (self.daemon.path, self.daemon.ports[0])
        self.job = f"inspections-{os.getpid()}"
        self.own = start_rank(self, OTHER_UID, self.job)
        self.roots = start_rank(self, 0, self.job + "-root")

    def test_each_user_sees_its_own_and_root_sees_all(self):
        for where in self.where:
            other = lambda method, path, body, where=where: ask_as(OTHER_UID, where, method, path, body)
            root = lambda method, path, body, where=where: ask(where, method, path, body)
            status, body = inspect(other, {"job_id": self.job, "depth": "glance"})
            self.assertEqual((200, [self.own.pid]), (status, [glance["pid"] for glance in body["glances"]]))
            self.assertEqual([], body["processes"])
            status, body = inspect(other, {"pids": [self.roots.pid]})
            self.assertEqual((403, "permission_denied"), (status, body["error"]["code"]))
            status, body = inspect(other, {"job_id": self.job + "-root"})
            self.assertEqual((404, "not_found"), (status, body["error"]["code"]))
            status, body = inspect(root, {"job_id": self.job, "state_window_ns": 1_000_000})
            self.assertEqual((200, [self.own.pid]), (status, [process["pid"] for process in body["processes"]]))
            self.assertEqual(0, body["processes"][0]["rank"])
            self.assertIn("state", body["processes"][0])

    def test_an_answer_is_who_asked_for_its_alone_and_fetched_once(self):
        _, _, body = self.daemon.ask("POST", "/api/v1/inspections", {"job_id": self.job, "depth": "glance"})
        path = f"/api/v1/inspections/{body['id']}"
        self.assertEqual(404, ask_as(OTHER_UID, self.daemon.path, "GET", path)[0])
        wait_until(lambda: self.daemon.ask("GET", path)[2]["state"] == "done", "the inspection's end")
        # It is forgotten when its last byte has left.
        wait_until(lambda: self.daemon.ask("GET", path)[0] == 404, "that it is forgotten")

    def test_other_routes_answer_while_it_looks(self):
        spec = {"job_id": self.job, "state_window_ns": 10_000_000_000}
        ids = [self.daemon.ask("POST", "/api/v1/inspections", spec)[2]["id"] for _ in range(8)]
        for _ in range(20):
            self.assertEqual(200, self.daemon.ask("GET", "/api/v1/status")[0])
        states = [self.daemon.ask("GET", f"/api/v1/inspections/{identity}")[2]["state"] for identity in ids]
        self.assertIn("queued", states)
        status, _, body = self.daemon.ask("POST", "/api/v1/inspections", spec)
        while status == 202:
            status, _, body = self.daemon.ask("POST", "/api/v1/inspections", spec)
        self.assertEqual((503, "limit_exceeded"), (status, body["error"]["code"]))

    def test_every_request_is_in_the_audit(self):
        inspect(self.daemon.ask, {"job_id": self.job, "depth": "glance"})
        self.daemon.ask("POST", "/api/v1/inspections", {"depth": "deep"})
        self.daemon.stop()
        lines = [line for line in self.daemon.process.stderr.read().splitlines() if "action=inspect" in line]
        self.assertEqual(2, len(lines), lines)
        self.assertIn("result=accepted", lines[0])
        self.assertIn("result=refused", lines[1])


if __name__ == "__main__":
    unittest.main()
