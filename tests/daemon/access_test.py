"""Who may see, trace, cancel and fetch what: two users of one node, over the Unix socket and the loopback. Needs root."""

import json
import os
import re
import shutil
import subprocess
import unittest

from daemon_process import OTHER_UID, PYTHON, SOURCE, Daemon, ask, ask_as, write_config, write_token
from waiting import wait_until

# As text: the other user need not be able to read the folder.
CLIENT = (SOURCE / "tests/dynolog/kineto_client.py").read_text(encoding="utf-8") + """
import sys
client = KinetoClient(sys.argv[1])
time.sleep(600)
"""


@unittest.skipUnless(os.getuid() == 0, "needs root, to be two users")
class TwoUsersTest(unittest.TestCase):
    wrapper = ()

    def setUp(self):
        self.daemon = Daemon(self, wrapper=self.wrapper)
        self.where = (self.daemon.path, self.daemon.ports[0])
        self.ids = {uid: self.start_process(uid) for uid in (0, OTHER_UID)}

    def start_process(self, uid):
        process = subprocess.Popen(
            [PYTHON, "-c", CLIENT, self.daemon.kineto_name],
            user=uid, group=uid, extra_groups=[], cwd="/", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def identity():
            known = self.daemon.ask("GET", "/api/v1/processes")[2]["processes"]
            return next((one["id"] for one in known if one["pid"] == process.pid and one["command"]), None)
        return wait_until(identity, "its registration", process)

    def wait_until(self, capture_id, *states):
        capture = {}

        def is_there():
            nonlocal capture
            capture = self.daemon.ask("GET", f"/api/v1/captures/{capture_id}")[2]
            return capture["state"] in states
        wait_until(is_there, lambda: json.dumps(capture))
        return capture

    def test_command_lines_are_shown_to_their_owner(self):
        for where in self.where:
            shown = {process["id"]: process["command"] is not None
                     for process in ask_as(OTHER_UID, where, "GET", "/api/v1/processes")[2]["processes"]}
            self.assertEqual({self.ids[0]: False, self.ids[OTHER_UID]: True}, shown)
        self.assertTrue(all(process["command"] for process in self.daemon.ask("GET", "/api/v1/processes")[2]["processes"]))

    def test_users_trace_their_own_and_root_traces_all(self):
        spec = lambda uid: {"selector": {"process_ids": [self.ids[uid]]}, "window": {"duration_ns": 100_000_000}}
        waiting = []
        for where in self.where:
            status, _, body = ask_as(OTHER_UID, where, "POST", "/api/v1/captures", spec(0))
            if status == 201:  # Just after a start, what does not match yet is waited for.
                self.assertEqual([], body["targets"])
                waiting.append(body["id"])
            else:
                self.assertIn((status, body["error"]["code"]), [(403, "permission_denied"), (404, "not_found")])
        # With nothing selected, what is another's does not match.
        status, _, own = ask_as(OTHER_UID, self.where[0], "POST", "/api/v1/captures", {"window": {"duration_ns": 100_000_000}})
        self.assertEqual((201, [self.ids[OTHER_UID]]), (status, [target["process"]["id"] for target in own["targets"]]))
        self.wait_until(own["id"], "done", "failed", "partial")

        status, _, capture = self.daemon.ask("POST", "/api/v1/captures", spec(0))
        self.assertEqual(201, status)
        path = f"/api/v1/captures/{capture['id']}"
        done = self.wait_until(capture["id"], "done")
        trace = f"{path}/traces/{done['targets'][0]['trace_name']}"
        for where in self.where:
            for method, target in (("GET", path), ("DELETE", path), ("GET", f"{path}/events"), ("GET", trace)):
                status, _, _ = ask_as(OTHER_UID, where, method, target)
                self.assertIn(status, (403, 404), target)
            listed = ask_as(OTHER_UID, where, "GET", "/api/v1/captures")[2]["captures"]
            self.assertNotIn(capture["id"], [other["id"] for other in listed])
        status, headers, body = self.daemon.ask("GET", trace)
        self.assertEqual(200, status)
        self.assertIn("traceEvents", body)
        self.assertEqual(200, ask_as(OTHER_UID, self.where[0], "GET", f"/api/v1/captures/{own['id']}")[0])
        for other in waiting:
            self.assertEqual([], self.wait_until(other, "failed")["targets"])
        # Now at once, and in the audit.
        status, _, body = ask_as(OTHER_UID, self.where[0], "POST", "/api/v1/captures", spec(0))
        self.assertIn((status, body["error"]["code"]), [(403, "permission_denied"), (404, "not_found")])
        self.daemon.stop()
        said = self.daemon.process.stderr.read()
        self.assertRegex(said, rf'audit action=capture by="root \(uid 0\) over the local socket" result=accepted detail="{capture["id"]}')
        self.assertRegex(said, r'audit action=capture by="[^"]*uid 65534[^"]*" result=refused')
        self.assertRegex(said, rf'audit action=cancel by="[^"]*uid 65534[^"]*" result=refused detail="{capture["id"]}')

    def test_state_and_traces_are_closed_to_others(self):
        self.assertEqual(0o700, self.daemon.state.stat().st_mode & 0o777)
        for path in [self.daemon.state, *self.daemon.state.rglob("*")]:
            self.assertEqual(0, path.stat().st_mode & 0o077, path)

    def test_a_token_for_a_user_is_that_user(self):
        token, path = write_token(self.daemon.folder, "other")
        config = write_config(self.daemon.folder, f'[[token]]\nname="t"\nrole="capture"\nuser="{OTHER_UID}"\nfile="{path}"\n')
        daemon = Daemon(self, "--config", config)
        self.daemon = daemon
        ids = {uid: self.start_process(uid) for uid in (0, OTHER_UID)}
        processes = ask(daemon.ports[0], "GET", "/api/v1/processes", token=token)[2]["processes"]
        self.assertEqual({ids[0]: False, ids[OTHER_UID]: True}, {p["id"]: p["command"] is not None for p in processes})
        status, _, capture = ask(daemon.ports[0], "POST", "/api/v1/captures", {"window": {"duration_ns": 100_000_000}}, token=token)
        self.assertEqual((201, [ids[OTHER_UID]]), (status, [target["process"]["id"] for target in capture["targets"]]))
        self.assertIn("token t for 65534", capture["requested_by"])


@unittest.skipUnless(shutil.which("setpriv"), "setpriv is not installed")
class PackagedRightsTest(TwoUsersTest):
    """The capabilities that packaging/systemd/lockstepd.service leaves are enough to trace another user."""

    UNIT = (SOURCE / "packaging/systemd/lockstepd.service").read_text(encoding="utf-8")
    RIGHTS = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT, re.MULTILINE)[1].lower().replace("cap_", "").split()
    wrapper = ("setpriv", "--no-new-privs", f"--bounding-set=-all,{','.join('+' + right for right in RIGHTS)}", "--inh-caps=-all")
    # One of the tests above is enough.
    test_command_lines_are_shown_to_their_owner = None
    test_state_and_traces_are_closed_to_others = None
    test_a_token_for_a_user_is_that_user = None


if __name__ == "__main__":
    unittest.main()
