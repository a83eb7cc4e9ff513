"""A click on the live page: a capture of a real PyTorch job whose report opens, and evidence of it on the hang page. Over HTTP, as a browser asks."""

import gzip
import json
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "process"))
from capture_jobs import Node, TorchTest  # noqa: E402
from monitored import Watched  # noqa: E402,F401  First: it says where the others are.
from live_site import BINARY, LiveSite  # noqa: E402
from top_view_test import Tmux  # noqa: E402

RANKS = 2
JOB = f"live-{os.getpid()}"  # Other tests have a job "alpha", and evidence is collected of all that are called so.


class LiveCaptureTest(TorchTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = Node()
        cls.addClassCleanup(cls.node.close)
        cls.job = cls.node.job(cls.python, JOB, RANKS)

    def setUp(self):
        self.traces = self.node.folder / "traces"
        self.site = LiveSite(self, "--socket", self.node.socket, "--output", self.traces, TMPDIR=str(self.node.folder))

    def post(self, path, body, expected=202, **headers):
        status, _, answer = self.site.ask("POST", path, body, Content_Type="application/json", **headers)
        self.assertEqual(expected, status, answer)
        return json.loads(answer)

    def ended(self, kind, action_id):
        """The action as it ended, and the states that were heard of it before."""
        states = []

        def found(now):
            [action] = [one for one in now[kind] if one["id"] == action_id]
            if action["state"] not in states:
                states.append(action["state"])
            return action if action["finished_unix_ns"] else None

        return self.site.wait_for("captures", found), states

    def test_a_capture_becomes_a_report(self):
        self.site.wait_for("view", lambda view: [one for one in view["data"]["jobs"] if one["job_id"] == JOB and len(one["ranks"]) == RANKS])
        action_id = self.post("/api/live/captures", {"job_id": JOB, "iterations": 3})["id"]
        self.assertEqual("failed_precondition", self.post("/api/live/captures", {"job_id": JOB}, 409)["error"]["code"])
        self.assertEqual(404, self.site.ask("GET", f"/captures/{action_id}/")[0], "not yet")
        capture, states = self.ended("captures", action_id)
        self.assertEqual("ready", capture["state"], (capture, self.node.daemon_log()))
        self.assertEqual((RANKS, RANKS, 3, None, False),
                         tuple(capture[name] for name in ("target_count", "kept_count", "iterations", "ranks", "is_partial")), capture)
        self.assertGreater(len(states), 1, "it is told how far it is")
        # The traces are this user's to keep, as `lockstep capture` leaves them.
        folder = pathlib.Path(capture["folder"])
        self.assertEqual(self.traces, folder.parent)
        self.assertEqual(RANKS, len(list(folder.glob(f"{JOB}-*.json.gz"))))
        self.assertEqual(1, len(list(folder.glob("lockstep-capture-*.json"))))
        # Its page opens in a tab of its own: the address is all that is needed.
        self.assertEqual(f"captures/{action_id}/", capture["url"])
        status, _, page = self.site.ask("GET", "/" + capture["url"], token=None)
        self.assertEqual(200, status)
        self.assertIn(b'name="lockstep-data" content="data/"', page)
        document = json.loads(self.unpacked("/" + capture["url"] + "data/main"))
        self.assertEqual(("analyze", RANKS), (document["kind"], len(document["data"]["ranks"])))
        analysed = json.loads(self.site.ask("GET", "/" + capture["url"] + "api/analyze", token=None)[2])
        self.assertEqual("lockstep.analyze/1", analysed["schema"])
        self.assertEqual(308, self.site.ask("GET", "/" + capture["url"].rstrip("/"), token=None)[0])
        self.assertEqual(404, self.site.ask("GET", "/captures/" + "0" * 32 + "/", token=None)[0])
        # One rank of it, for a length of time.
        action_id = self.post("/api/live/captures", {"job_id": JOB, "ranks": [1], "duration_ms": 200})["id"]
        capture, _ = self.ended("captures", action_id)
        self.assertEqual(("ready", 1, [1], 200_000_000), tuple(capture[name] for name in ("state", "kept_count", "ranks", "duration_ns")), capture)
        log = self.site.wait_for("health", lambda log: [one for one in log["entries"] if one["kind"] == "capture"])
        self.assertEqual({JOB}, {entry["job_id"] for entry in log})
        # Who asked for what is on the server's standard error.
        status, talk = self.site.end()
        self.assertEqual(0, status)
        self.assertRegex(talk, rf"uid {os.getuid()} at 127\.0\.0\.1:\d+: capture of job '{JOB}': taken")
        self.assertRegex(talk, rf"capture of job '{JOB}': a capture of this job is under way")

    def unpacked(self, path):
        status, headers, body = self.site.ask("GET", path, token=None)
        self.assertEqual(200, status)
        return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body

    def test_evidence_becomes_the_hang_page(self):
        action_id = self.post("/api/live/hang", {"job_id": JOB})["id"]
        hang, _ = self.ended("hangs", action_id)
        self.assertEqual("ready", hang["state"], hang)
        self.assertEqual((1, 1), (hang["done_count"], hang["total_count"]))
        self.assertTrue(hang["kind"] and hang["sentence"], hang)
        self.assertTrue((pathlib.Path(hang["folder"])).is_dir())
        status, _, page = self.site.ask("GET", "/" + hang["url"], token=None)
        self.assertEqual(200, status)
        self.assertIn(b'name="lockstep-kind" content="hang"', page)
        self.assertIn(b"steady_job.py", page)

    def test_what_is_refused(self):
        for body in ("", "[]", '{"jobs":1}', '{"iterations":0}', '{"iterations":1,"duration_ms":1}', '{"ranks":[-1]}'):
            self.assertIn(self.post("/api/live/captures", body, 400)["error"]["code"], ("corrupt_data", "invalid_argument"), body)
        self.post("/api/live/captures", '{"job_id":"' + "x" * 70_000 + '"}', 413)
        self.post("/api/live/nothing", "{}", 404)
        self.post("/api/live/captures/" + "0" * 32 + "/cancel", "", 404)
        for headers in ({"Origin": "https://attacker.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"},
                        {"Origin": f"http://127.0.0.1:{self.site.port + 1}"}, {"Sec_Fetch_Site": "same-site"}):
            self.post("/api/live/captures", {"job_id": JOB}, 403, **headers)
        status, _, _ = self.site.ask("POST", "/api/live/captures", {"job_id": JOB}, token=None, Content_Type="application/json")
        self.assertEqual(401, status)
        self.post("/api/live/hang", {"job_id": JOB}, 403, Origin="https://attacker.example")
        # From its own page it is taken; a job that is not there is what it says.
        own = {"Origin": f"http://127.0.0.1:{self.site.port}", "Sec_Fetch_Site": "same-origin"}
        action_id = self.post("/api/live/captures", {"job_id": "nobody"}, **own)["id"]
        capture, _ = self.ended("captures", action_id)
        self.assertEqual("failed", capture["state"])
        self.assertIn("nobody", capture["reason"])

    def test_one_that_is_cancelled_ends(self):
        # So far away that it is not over before it is cancelled.
        action_id = self.post("/api/live/captures", {"job_id": JOB, "duration_ms": 60_000})["id"]
        self.post(f"/api/live/captures/{action_id}/cancel", "")
        capture, _ = self.ended("captures", action_id)
        self.assertEqual("cancelled", capture["state"], capture)


class TopCaptureTest(TorchTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = Node()
        cls.addClassCleanup(cls.node.close)
        cls.node.job(cls.python, JOB, RANKS)

    def test_a_key_traces_a_rank_or_all_of_its_job(self):
        tmux = Tmux(self, 120, 40)
        tmux.type(f"cd {self.node.folder} && {BINARY} top --socket {self.node.socket}")
        tmux.key("Enter")
        tmux.wait_for(f"job {JOB} · {RANKS} of {RANKS} ranks")
        for answer, count in (("y", 1), ("a", RANKS)):
            tmux.type("c")
            tmux.wait_for("Trace rank \\d for a second")
            tmux.type(answer)
            screen = tmux.wait_for(r"CAPTURE\s+\d traces? in ")
            [folder] = re.findall(r"lockstep analyze (\S+)", screen)
            self.assertEqual(count, len(list((self.node.folder / folder).glob("*.json*"))), screen)
            tmux.key("Escape")
            tmux.wait_for("Enter rank")


if __name__ == "__main__":
    unittest.main()
