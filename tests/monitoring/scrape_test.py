"""What GET /metrics answers: Prometheus's text or OpenMetrics, as is asked for; a real Prometheus takes it. And no more series than it may."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from monitored import Rank, Watched, parse
from waiting import wait_until

JOB = f"scrape-{os.getpid()}"  # Other tests' ranks are seen here, too.
OPEN = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


class ScrapeTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkx-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def watch(self, settings=""):
        config = self.folder / "lockstep.toml"
        config.write_text(f"[sensors]\ngpu = false\n{settings}")
        config.chmod(0o644)
        daemon = Watched(self, "--config", config)
        rank = Rank(self, self.folder / "spans", 0, 1, job=JOB)
        rank.do("step", 1, 1, 1, 1)
        rank.do("request", 3, 1, 0)
        for number in range(100):
            rank.do("count", f"own{number:03}", number)
        daemon.wait_for(lambda: daemon.value("lockstep_steps_total", job_id=JOB) == 1 and daemon.value("lockstep_serving_requests_total", job_id=JOB) == 1
                        and daemon.value("lockstep_user_value", job_id=JOB) is not None, "what the rank did")
        return daemon

    def test_open_metrics_where_it_is_asked_for(self):
        daemon = self.watch()
        daemon.wait_for(lambda: daemon.metrics().count(f'\nlockstep_user_value{{job_id="{JOB}"') == 100, "all values")
        status, headers, body = daemon.ask("GET", "/metrics", headers={"Accept": OPEN})
        text = body if isinstance(body, str) else body.decode()
        self.assertEqual((200, "application/openmetrics-text; version=1.0.0; charset=utf-8"), (status, headers["Content-Type"]))
        self.assertTrue(text.endswith("\n# EOF\n"))
        types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
        self.assertEqual(len(types), len(dict(types)), "a family comes once")
        self.assertIn(("lockstep_steps", "counter"), types)
        samples = parse(text)
        for name, labels in samples:
            [kind] = [kind for family, kind in types if name in {"counter": {family + "_total"}, "gauge": {family}}.get(
                kind, {family, *(family + end for end in ("_bucket", "_count", "_sum"))})]
            for label, bound in labels:
                self.assertFalse(label in ("le", "quantile") and re.fullmatch(r"\d+", bound), (name, bound, kind))
        status, headers, body = daemon.ask("GET", "/metrics")
        self.assertEqual("text/plain; version=0.0.4; charset=utf-8", headers["Content-Type"])
        plain = parse(body if isinstance(body, str) else body.decode())
        steady = {name for name, _ in plain if name.startswith(("lockstep_step", "lockstep_serving", "lockstep_user", "lockstep_rank_info"))}
        self.assertGreater(len(steady), 10)

        def known(found):
            return {(name, frozenset((label, str(float(value)) if label in ("le", "quantile") else value) for label, value in labels)): value
                    for (name, labels), value in found.items() if name in steady and str(value) != "nan" and ("job_id", JOB) in labels}
        self.assertEqual(known(plain), known(samples))

    @unittest.skipUnless(shutil.which("prometheus"), "prometheus is not there: scripts/packages.txt has it")
    def test_prometheus_takes_it(self):
        daemon = self.watch()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: lockstep\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{daemon.ports[0]}']}}]\n")
        with open(self.folder / "log", "w", encoding="utf-8") as log:
            server = subprocess.Popen(["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
                                       f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def value(expression):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.request.quote(expression)}", timeout=10) as answer:
                    result = json.loads(answer.read())["data"]["result"]
            except OSError:  # Not there yet, or too busy to answer.
                return None
            return float(result[0]["value"][1]) if result else None

        wait_until(lambda: value("up") == 1, lambda: (self.folder / "log").read_text()[-2000:], server)
        # The first answers are from before the rank was found.
        wait_until(lambda: (value("scrape_samples_scraped") or 0) > 200, "the samples of a rank", server)
        # A scrape that is too slow leaves nothing to ask for until the next.
        for series in (f'lockstep_steps_total{{job_id="{JOB}"}}',
                       f'lockstep_serving_request_duration_seconds_bucket{{job_id="{JOB}",le="1.0"}}'):  # As OpenMetrics has it.
            wait_until(lambda series=series: value(series) == 1, series, server)

    def test_series_are_limited_and_the_programs_own_go_first(self):
        daemon = self.watch("rank_series = 60\n")
        daemon.wait_for(lambda: daemon.value("lockstep_series_dropped_total", reason="rank") > 0, "series that are left out")
        samples = parse(daemon.metrics())
        of_rank = [name for name, labels in samples if {("job_id", JOB), ("rank", "0")} <= labels]
        self.assertLessEqual(len(of_rank), 60)
        self.assertGreater(of_rank.count("lockstep_user_value"), 0)
        self.assertEqual(1, daemon.value("lockstep_steps_total", job_id=JOB))
        self.assertEqual(0, daemon.value("lockstep_series_dropped_total", reason="node"))
        self.assertEqual(0, daemon.value("lockstep_series_dropped_total", reason="label"))


if __name__ == "__main__":
    unittest.main()
