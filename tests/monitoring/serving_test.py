"""A model is served and asked: what lockstepd, `lockstep top` and the live page say of its latencies is what the load saw."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import web_packages  # noqa: E402
from monitored import DAEMON, Watched  # noqa: E402
from live_site import LiveSite  # noqa: E402
from pytorch import python_with_torch  # noqa: E402
from shipped import SOURCE  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

EXAMPLE = SOURCE / "examples/serve_tokens.py"
LOCKSTEP = DAEMON.with_name("lockstep")
SECONDS = 30  # Within the minute that quantiles are of.
AGREES_WITHIN = 0.02
IN_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1}
LABELS = {"model": "generate", "engine": "liblockstep"}


class Page:
    """The live page in Chromium, which says what it shows when it is asked."""

    def __init__(self, test, address):
        environment = dict(os.environ, LOCKSTEP_WEB=web_packages.packages(), LOCKSTEP_CHROMIUM=web_packages.browser())
        self.process = subprocess.Popen([web_packages.need("node"), SOURCE / "tests/web/serving_page.mjs", address], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.stdin.close)  # It ends at the end of what it is asked.
        test.assertEqual("ready\n", self.process.stdout.readline())

    def seconds(self, request_count):
        """{"p50": seconds, ...}, once the page counts as many requests."""
        self.process.stdin.write(f"{request_count}\n")
        self.process.stdin.flush()
        row = json.loads(self.process.stdout.readline())
        said = {key: row[key.upper()].split() for key in ("p50", "p95", "p99")}
        return {key: float(number) * IN_SECONDS[unit] for key, (number, unit) in said.items()}


class ServingTest(unittest.TestCase):
    def setUp(self):
        web_packages.browser()
        web_packages.packages()

    def test_latencies_are_those_that_the_load_saw(self):
        python = python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lks-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        daemon = Watched(self)
        environment = {**os.environ, "PYTHONPATH": os.path.join(os.environ["LOCKSTEP_BUILD"], "python"), "LOCKSTEP_TRACE": str(folder / "spans"),
                       "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "serving-test"}
        server = subprocess.Popen([python, EXAMPLE, "serve"], env=environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        address = server.stdout.readline().strip()
        refused = subprocess.run([python, EXAMPLE, "load", address, "--clients", "1", "--seconds", "1", "--shortest", "5000", "--longest", "5000"],
                                 capture_output=True, text=True, check=True, timeout=PATIENCE_S)
        failures = json.loads(refused.stdout)["failures"]
        self.assertGreater(failures, 0)
        daemon.wait_for(lambda: daemon.value("lockstep_serving_request_failures_total", **LABELS) == failures, "requests that fail")
        page = Page(self, LiveSite(self, "--socket", daemon.path, "--job", "serving-test").address)

        seen = json.loads(subprocess.run([python, EXAMPLE, "load", address, "--clients", "2", "--seconds", str(SECONDS), "--shortest", "20",
                                          "--longest", "120", "--list"], capture_output=True, text=True, check=True, timeout=SECONDS + 60).stdout)
        daemon.wait_for(lambda: daemon.value("lockstep_serving_requests_total", **LABELS) == failures + seen["requests"], "all requests")
        self.assertEqual(0, seen["failures"])
        told = {share: daemon.value("lockstep_serving_recent_request_duration_seconds", quantile=share, **LABELS) for share in ("0.5", "0.95", "0.99")}
        done = subprocess.run([LOCKSTEP, "top", "--once", "--json", "--interval", "1s", "--socket", daemon.path], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(0, done.returncode, done.stderr)
        [job] = [job for job in json.loads(done.stdout)["data"]["jobs"] if job["job_id"] == "serving-test"]
        [serving] = job["serving"]
        shown = page.seconds(int(failures) + seen["requests"])
        latencies = seen.pop("latencies_s")
        print(json.dumps({"load": seen, "metrics": told, "top": serving, "page": shown}))
        for share, key in (("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99")):
            # Which of two neighbours a quantile is, definitions differ in.
            place = min(int(float(share) * len(latencies)), len(latencies) - 2)
            least, most = latencies[place - 1] * (1 - AGREES_WITHIN), latencies[place + 1] * (1 + AGREES_WITHIN)
            for who, said in (("metrics", told[share]), ("top", serving["request_ns"][key] / 1e9), ("page", shown[key])):
                self.assertTrue(least <= said <= most, f"{who}, {key}: {least} {said} {most}")


if __name__ == "__main__":
    unittest.main()
