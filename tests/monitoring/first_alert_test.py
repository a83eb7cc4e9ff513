"""docs/monitoring.md, "The first alert, in ten minutes": its commands, with the shipped rules as they are."""

import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import unittest

from live_site import BINARY, LiveSite, ask_prometheus
from monitored import Watched
from pytorch import job_environment, python_with_torch
from shipped import SOURCE
from waiting import PATIENCE_S, wait_until


class FirstAlertTest(unittest.TestCase):
    def setUp(self):
        if not shutil.which("prometheus"):
            self.skipTest("prometheus is not there: scripts/packages.txt has it")
        text = (SOURCE / "docs/monitoring.md").read_text(encoding="utf-8")
        section = text.split("## The first alert, in ten minutes\n")[1].split("\n## ")[0]
        self.daemon_words, self.job_words, self.site_words = (shlex.split(line) for line in re.findall(r"^    (lockstep.*)$", section, re.MULTILINE)[:3])
        self.promised = re.search(r"^    LockstepJobNoProgress: (.*)$", section, re.MULTILINE)[1]

    def leads_to_a_capture(self, daemon, site):
        """A trace is taken while the job still steps: by Prometheus's exemplars its step durations lead to it."""
        folder = daemon.path.parent / "traces"
        captured = subprocess.run([BINARY, "capture", "--socket", daemon.path, "--iterations", "3", "--output", folder, "--json"], capture_output=True,
                                  text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
        self.assertEqual(0, captured.returncode, captured.stderr)
        url = site.wait_for("alerts", lambda now: now["state"] == "answers" and now["url"])
        ask = f"/api/v1/query_exemplars?query=lockstep_step_duration_seconds_bucket&start={time.time() - 600}&end={time.time() + 600}"
        [series] = wait_until(lambda: ask_prometheus(url, ask), "an exemplar in Prometheus")
        self.assertEqual({"capture", "rank"}, series["exemplars"][0]["labels"].keys())
        self.assertLess(0.1, float(series["exemplars"][0]["value"]), "a step reads for so long")

    def test_it_comes_as_the_document_says(self):
        python = python_with_torch()
        # A daemon of its own, and torchrun of that Python: what else is here must not be met.
        self.assertEqual(["lockstepd"], self.daemon_words)
        scratch = tempfile.TemporaryDirectory(prefix="lkf-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        kineto = pathlib.Path(scratch.name)
        daemon = Watched(self, "--kineto-dir", kineto)
        (kineto / "dynolog").symlink_to(daemon.kineto_name)  # Where Kineto looks.
        words = list(self.job_words)
        place = words.index("torchrun")
        words[:place + 1] = [BINARY, *words[1:place], python, "-m", "torch.distributed.run"]
        job = subprocess.Popen(words, cwd=SOURCE, env={**job_environment(), "LOCKSTEP_SOCKET": str(daemon.path), "KINETO_IPC_SOCKET_DIR": str(kineto)}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        self.assertEqual(["lockstep", "serve", "--host", "localhost", "--with-prometheus"], self.site_words)
        site = LiveSite(self, "--host", f"127.0.0.1:{daemon.ports[0]}", *self.site_words[4:])
        # In parts, as a machine that is busy is only late: it steps, it stalls, it is told.
        wait_until(lambda: (daemon.value("lockstep_steps_total") or 0) > 10, lambda: daemon.metrics(), job)
        self.leads_to_a_capture(daemon, site)
        daemon.wait_for(lambda: daemon.value("lockstep_rank_long_phase_seconds", rank="1", phase="input"), "the stall")
        daemon.wait_for(lambda: daemon.value("lockstep_rank_long_phase_seconds", rank="0", phase="comm_exposed"), "who waits for it")

        def fires(now):
            return [one for one in now["alerts"] if one["name"] == "LockstepJobNoProgress" and one["state"] == "firing"]
        [alert] = site.wait_for("alerts", fires)
        self.assertRegex(alert["summary"], re.escape(self.promised).replace(r"\.\.\.", ".*").replace("3m\\ 1s", r"\w+ \w+"))
        self.assertEqual("hang", alert["runbook"])
        fired = {one["name"] for one in site.wait_for("alerts", lambda now: now["alerts"]) if one["state"] == "firing"}
        self.assertEqual({"LockstepJobNoProgress"}, fired)


if __name__ == "__main__":
    unittest.main()
