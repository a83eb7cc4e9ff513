"""`lockstep serve --host ...`: a real lockstepd, ranks that record, and the page's server over HTTP: the stream of views, what was before, who may
look, what is refused."""

import contextlib
import gzip
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse

try:
    import jsonschema
except ImportError:
    jsonschema = None

from monitored import Watched  # First: it says where the others are.
from live_site import BINARY, LiveSite
from top_test import DEAD, DONE, MISUSED, SCHEMA, Job
from waiting import PATIENCE_S, wait_until


class LiveSiteTest(unittest.TestCase):
    def start(self, *words):
        self.daemon = Watched(self)
        self.job = Job(self, "live", [(5, 5, 20, 2), (25, 5, 2, 2)])
        self.job.wait_for_steps(self.daemon, 20)
        return LiveSite(self, "--socket", self.daemon.path, "--job", self.job.name, *words)

    def remembered(self):
        """At how many instants the daemon knows of the job's steps."""
        _, _, past = self.daemon.ask("GET", f"/api/v1/history?job={self.job.name}")
        return max((sum(value is not None for value in one["figures"].get("backward_seconds", [])) for one in past["series"]), default=0)

    def test_views_come_as_top_has_them(self):
        site = self.start()
        with site.events() as events:
            views = []
            # A rank that the machine holds up for a moment is the slow one of that moment.
            while len(views) < 4 or [rank["state"] for rank in views[-1]["data"]["jobs"][0]["ranks"]] != ["waits", "slow"]:
                event, data = next(events)
                if event == "view":
                    views.append(data)
        for view in views:
            if jsonschema:
                jsonschema.validate(view, SCHEMA)
        counts = [view["data"]["look_count"] for view in views]
        self.assertEqual(sorted(set(counts)), counts, "each look once")
        [shown] = views[-1]["data"]["jobs"]
        self.assertEqual((self.job.name, "1"), (shown["job_id"], shown["slowest_rank"]))
        self.assertEqual(["waits", "slow"], [rank["state"] for rank in shown["ranks"]])
        # All who listen hear of the same looks, also when they come from one machine, as through an ssh tunnel.
        with contextlib.ExitStack() as stack:
            for stream in [stack.enter_context(site.events()) for _ in range(60)]:
                self.assertEqual("view", next(event for event, _ in stream if event == "view"))
        newest = site.json("/api/live/view")
        self.assertGreaterEqual(newest["data"]["look_count"], counts[-1])

    def test_what_was_before_goes_on_into_the_stream(self):
        site = self.start()
        self.daemon.wait_for(lambda: self.remembered() >= 6, "a past that the daemon remembers")
        began_ns = time.time_ns()
        late = LiveSite(self, "--socket", self.daemon.path, "--job", self.job.name)
        late.wait_for("view", lambda view: view["data"]["look_count"] >= 2)
        remembered = late.json("/api/live/history")
        [job] = remembered["jobs"]
        before = [step for time_ns, step in zip(remembered["times_unix_ns"], job["step_ns"]) if time_ns < began_ns - 1_000_000_000 and step]
        self.assertTrue(before, remembered)
        late.end()
        site.wait_for("view", lambda view: view["data"]["look_count"] >= 5)
        status, headers, body = site.ask("GET", "/api/live/history", Accept_Encoding="gzip")
        self.assertEqual((200, "gzip"), (status, headers["Content-Encoding"]))
        history = json.loads(gzip.decompress(body))
        self.assertEqual("lockstep.live-history/1", history["schema"])
        times = history["times_unix_ns"]
        self.assertGreaterEqual(len(times), 4)
        self.assertEqual(sorted(times), times)
        [shown] = history["jobs"]
        self.assertEqual(["0", "1"], [rank["rank"] for rank in shown["ranks"]])
        for rank in shown["ranks"]:
            for name in ("step_ns", "own_ns", "compute_ratio", "communication_ratio"):
                self.assertEqual(len(times), len(rank[name]))
            self.assertEqual(len(times), len(rank["state"]))
            # Never shorter than the rank slept.
            self.assertGreaterEqual(rank["step_ns"][-1], 32e6)

        def is_slower():
            [now] = site.json("/api/live/history")["jobs"]
            return now["ranks"][1]["own_ns"][-1] > now["ranks"][0]["own_ns"][-1]
        wait_until(is_slower, "rank 1 to be the slower one")
        view = site.wait_for("view", lambda view: view["data"]["asked_unix_ns"] > history["until_unix_ns"] and view)
        self.assertEqual(self.job.name, view["data"]["jobs"][0]["job_id"])
        self.assertEqual(history["schema"], site.json("/api/live/history")["schema"], "unpacked where it must be")

    def test_the_log_says_what_befalls(self):
        site = self.start()
        site.wait_for("view", lambda view: view["data"]["jobs"])
        self.job.end()
        self.job.ranks[1].end()
        entry = site.wait_for("health", lambda log: [one for one in log["entries"] if one["kind"] == "rank_gone"])[0]
        self.assertEqual(("happened", "critical", self.job.name, "1"), (entry["phase"], entry["severity"], entry["job_id"], entry["rank"]))
        self.daemon.stop(signal.SIGKILL)
        entry = site.wait_for("health", lambda log: [one for one in log["entries"] if one["kind"] == "node_unheard"])[0]
        self.assertEqual(("began", "critical"), (entry["phase"], entry["severity"]))
        view = site.wait_for("view", lambda view: view["partial"] and view)
        self.assertEqual(["unheard"], [rank["state"] for rank in view["data"]["jobs"][0]["ranks"]])

    def test_who_may_look(self):
        site = LiveSite(self, "--host", DEAD)
        for path in ("/api/live/events", "/api/live/history", "/api/live/view", "/api/live/nothing"):
            for token in (None, "", site.token[:-1], site.token + "0", "0" * 32):
                status, _, body = site.ask("GET", path, token=token)
                self.assertEqual(401, status, (path, token))
                self.assertEqual("permission_denied", json.loads(body)["error"]["code"])
        self.assertEqual(404, site.ask("GET", "/api/live/nothing")[0])
        # The page itself says nothing.
        status, headers, body = site.ask("GET", f"/?token={site.token}", token=None)
        self.assertEqual(200, status)
        self.assertNotIn(site.token.encode(), body)
        self.assertIn(b'name="lockstep-kind" content="live"', body)
        self.assertNotIn("Set-Cookie", headers)
        main = json.loads(site.ask("GET", "/data/main", token=None)[2])
        self.assertEqual(("live", 1), (main["kind"], main["data"]["node_count"]))
        self.assertEqual(403, site.ask("GET", "/", Host="attacker.example")[0])
        self.assertEqual(403, site.ask("GET", "/api/live/view", Host="attacker.example")[0])

    def test_the_browsers_command_line_has_no_token(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        opener, opened = (pathlib.Path(folder.name) / name for name in ("xdg-open", "opened"))
        opener.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n', encoding="utf-8")
        opener.chmod(0o700)
        site = LiveSite(self, "--host", DEAD, "--browser", PATH=f"{folder.name}:{os.environ['PATH']}")
        wait_until(opened.exists, "the page to be opened")
        url = urllib.parse.urlsplit(opened.read_text(encoding="utf-8").strip())
        self.assertEqual(site.port, url.port)
        self.assertNotIn(site.token, url.query)
        self.assertEqual(403, site.ask("GET", f"/?code={'0' * 32}", token=None)[0])
        status, headers, _ = site.ask("GET", f"/?{url.query}", token=None)
        self.assertEqual((303, f"/?token={site.token}"), (status, headers["Location"]))
        self.assertEqual(403, site.ask("GET", f"/?{url.query}", token=None)[0], "once")

    def test_a_node_that_does_not_answer_is_shown(self):
        site = LiveSite(self, "--host", DEAD)
        view = site.wait_for("view", lambda view: view)
        self.assertTrue(view["partial"])
        self.assertIsNotNone(view["data"]["nodes"][0]["problem"])
        status, talk = site.end()
        self.assertEqual(DONE, status)
        self.assertNotIn(site.token, talk)

    def test_a_terminal_that_goes_away_ends_it(self):
        site = LiveSite(self, "--host", DEAD)
        self.assertEqual(DONE, site.end(signal.SIGHUP)[0])
        kept = LiveSite(self, "--host", DEAD, inside=["nohup"])
        kept.process.send_signal(signal.SIGHUP)
        self.assertEqual(200, kept.ask("GET", "/-/healthy")[0])
        self.assertEqual(DONE, kept.end()[0])

    def test_misuse_is_refused(self):
        for words, told in ((["--host", "a", str(pathlib.Path(__file__))], "give either, not both"), (["--host", "a", "--fabric", "x"], "--fabric"),
                            ([], "--host"), (["--host", "a", "--hostfile", "b"], "exclude")):
            done = subprocess.run([BINARY, "serve", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
                                  env={name: value for name, value in os.environ.items() if name != "LOCKSTEP_SOCKET"})
            self.assertEqual(MISUSED, done.returncode, done.stderr)
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    unittest.main()
