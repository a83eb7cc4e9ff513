"""`lockstep serve --with-prometheus`: this machine's own Prometheus over a real lockstepd, its alerts on the page's stream, and its end with the server's."""

import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from monitored import Watched  # First: it says where the others are.
from live_site import BINARY, LiveSite, ask_prometheus
from shipped import ALERTS, RULES
from top_test import DONE, FAILED, MISUSED, Job
from waiting import PATIENCE_S, wait_until
from watched_nodes import faster


def children_of(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def has_memory(pid):
    """Whether the process is there, and more than an entry that nobody has taken note of."""
    try:
        return bool(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not there: scripts/packages.txt has it")
class OwnPrometheusTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.daemon = Watched(self)
        self.host = f"127.0.0.1:{self.daemon.ports[0]}"

    def ask(self, url, path):
        """What its own interface answers, with the password of the link that the page is given."""
        parts = urllib.parse.urlsplit(url)
        request = urllib.request.Request(f"http://{parts.hostname}:{parts.port}{path}")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=PATIENCE_S)
        self.assertEqual(401, refused.exception.code, "other users of this machine reach that port too")
        refused.exception.close()
        return ask_prometheus(url, path)

    def test_an_alert_of_the_shipped_rules_fires(self):
        rules = self.folder / "rules"
        rules.mkdir()
        for path in (RULES, ALERTS):
            (rules / path.name).write_text(faster(path.read_text(encoding="utf-8"), 60), encoding="utf-8")
        job = Job(self, "alerts", [(2, 2, 1, 1)])
        data = self.folder / "data"
        site = LiveSite(self, "--host", self.host, "--with-prometheus", "--prometheus-interval", "1s", "--prometheus-rules", rules,
                        "--prometheus-data", data)
        self.assertEqual("own", json.loads(site.ask("GET", "/data/main")[2])["data"]["prometheus"])
        well = site.wait_for("alerts", lambda now: now["state"] == "answers" and now)
        # Of this job and its node: other tests' ranks come and go here, and a minute of the rules is a second.
        self.assertEqual([], [alert for alert in well["alerts"]
                              if alert["state"] == "firing" and alert["labels"].get("job_id", job.name) == job.name])
        job.wait_for_steps(self.daemon, 1)
        wait_until(lambda: self.ask(well["url"], "/api/v1/query?query=lockstep_steps_total")["result"], "steps in Prometheus")
        self.daemon.stop(signal.SIGKILL)
        [alert] = site.wait_for("alerts", lambda now: [one for one in now["alerts"] if (one["name"], one["state"]) == ("LockstepDaemonDown", "firing")])
        self.assertEqual(("warning", "daemon-down", self.host), (alert["severity"], alert["runbook"], alert["labels"]["instance"]))
        self.assertLess(abs(alert["since_unix_ns"] / 1e9 - time.time()), 600)
        status, headers, text = site.ask("GET", f"/runbook/{alert['runbook']}", token=None)
        self.assertEqual((200, True), (status, headers["Content-Type"].startswith("text/plain")))
        self.assertIn(b"LockstepDaemonDown", text)
        self.assertEqual(404, site.ask("GET", "/runbook/nothing", token=None)[0])
        # It ends with the server, however that ends.
        [prometheus] = children_of(site.process.pid)
        site.process.kill()
        site.process.wait()
        wait_until(lambda: not has_memory(prometheus), "its end")

    def test_the_shipped_rules_are_part_of_the_program(self):
        site = LiveSite(self, "--host", self.host, "--with-prometheus")
        url = site.wait_for("alerts", lambda now: now["state"] == "answers" and now["url"])
        groups = self.ask(url, "/api/v1/rules")["groups"]
        loaded = {rule["name"] for group in groups for rule in group["rules"]}
        self.assertLessEqual({"LockstepRankDown", "job:lockstep_step:seconds_rate5m"}, loaded)
        [target] = wait_until(lambda: self.ask(url, "/api/v1/targets")["activeTargets"], "a target")
        self.assertEqual((self.host, "15s"), (target["labels"]["instance"], target["scrapeInterval"]))
        # Another one is asked, not started: it has a password, which is said.
        parts = urllib.parse.urlsplit(url)
        other = LiveSite(self, "--host", self.host, "--prometheus", f"http://127.0.0.1:{parts.port}")
        now = other.wait_for("alerts", lambda now: now["problem"] and now)
        self.assertEqual(("starting", []), (now["state"], now["alerts"]))
        self.assertIn("password", now["problem"])
        self.assertEqual([], children_of(other.process.pid))
        self.assertEqual(DONE, other.end()[0])
        [prometheus] = children_of(site.process.pid)
        folder = next(word for word in pathlib.Path(f"/proc/{prometheus}/cmdline").read_text().split("\0") if word.startswith("--config.file="))
        folder = pathlib.Path(folder.partition("=")[2]).parent
        self.assertEqual(0o700, folder.stat().st_mode & 0o777)
        self.assertEqual(DONE, site.end()[0])
        self.assertFalse(pathlib.Path(f"/proc/{prometheus}").exists())
        self.assertFalse(folder.exists())


class NoPrometheusTest(unittest.TestCase):
    def test_what_cannot_be_is_said(self):
        daemon = Watched(self)
        host = f"127.0.0.1:{daemon.ports[0]}"
        for words, status, told in ((["--host", host, "--with-prometheus"], FAILED, "apt-get install prometheus"),
                                    (["--socket", daemon.path, "--with-prometheus"], MISUSED, "--host localhost"),
                                    (["--host", host, "--prometheus-data", "x"], MISUSED, "need --with-prometheus"),
                                    (["--host", host, "--with-prometheus", "--prometheus-interval", "1ms"], MISUSED, "--prometheus-interval"),
                                    (["--host", host, "--with-prometheus", "--prometheus", "http://a"], MISUSED, "exclude"),
                                    (["--host", host, "--prometheus", "a:1"], MISUSED, "http://HOST:9090")):
            done = subprocess.run([BINARY, "serve", *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
                                  env={"PATH": "/nonexistent", "HOME": "/tmp"})
            self.assertEqual(status, done.returncode, (words, done.stderr))
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    unittest.main()
