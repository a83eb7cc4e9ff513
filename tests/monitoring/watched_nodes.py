"""Prometheus over two nodes (network, process and host names of their own): a job of four ranks under torchrun over both, one of two on the
second of which nothing is ever asked, one that serves, an engine and a stand-in of NCCL. The shipped rules, as they are or faster."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

from shipped import ALERTS, PROMETHEUS, RULES, SOURCE
from two_nodes import DAEMON, PORT, TwoNodes

OTHER_JOB = "4714"


def faster(text, times):
    """Rules whose times are so many times shorter."""
    def duration(match):
        seconds = int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]] / times
        return f"{max(round(seconds), 1)}s"
    text = re.sub(r"\b(\d+)(s|m|h)\b(?=[\]\s)])", duration, text)
    # Of a hang: ten usual steps, and a wait that other tests on this machine cannot cause.
    return text.replace("clamp_min(10 * max by (job_id) (lockstep_job_step_median_seconds), 120)",
                        "clamp_min(10 * max by (job_id) (lockstep_job_step_median_seconds), 6)")


class Fed:
    """A process that is told the same line again and again, and answers each with one."""

    def __init__(self, test, node, command, environment, line, pause_s):
        self.line = line
        self.process = node.start(test, command, environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pause_s = pause_s
        thread = threading.Thread(target=self.feed, daemon=True)
        thread.start()
        # In this order: the pipes are closed when nobody uses them any more.
        test.addCleanup(lambda: (self.process.stdin.close(), self.process.stdout.close()))
        test.addCleanup(thread.join)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def feed(self):
        try:
            while self.process.poll() is None:
                self.process.stdin.write(self.line + "\n")
                self.process.stdin.flush()
                if not self.process.stdout.readline():
                    return
                time.sleep(self.pause_s)
        except OSError:  # It has ended.
            pass


class WatchedNodes(TwoNodes):
    work_s = 0.2  # Long beside what a busy machine adds to a collective: rules with short times see that, too.
    times_faster = 1  # than shipped: the rules' times, and how often is scraped (once a second at most)

    def setUp(self):
        if not shutil.which("prometheus"):
            self.skipTest("prometheus is not there: scripts/packages.txt has it")
        super().setUp()
        self.start_job(OTHER_JOB, self.nodes[1:], "no_plan.json")
        self.start_others()
        engine = self.nodes[0].start(self, [sys.executable, SOURCE / "tests/monitoring/fake_engine.py", "vllm", "8000"], stdout=subprocess.PIPE)
        self.addCleanup(engine.stdout.close)
        self.start_prometheus()

    def start_others(self):
        """A job that serves, and one whose NCCL is a stand-in that drives the profiler plugin: there is no GPU here."""
        launcher = {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        self.serving = Fed(self, self.nodes[0], [DAEMON.with_name("lockstep_recording_rank")],
                           {**launcher, "TORCHELASTIC_RUN_ID": "4712", "LOCKSTEP_TRACE": str(self.folder / "serving")}, "request 3 5 0", 0.01)
        (self.folder / "nccl").mkdir()
        Fed(self, self.nodes[1], [os.environ["LOCKSTEP_NCCL_RANK"], "0", "2", "0", "0", "stay"],
            {**launcher, "TORCHELASTIC_RUN_ID": "4713", "LOCKSTEP_NCCL_DIR": str(self.folder / "nccl")}, "all_reduce 10", 0.1)

    def start_prometheus(self):
        targets = json.dumps([f"{node.address}:{PORT}" for node in self.nodes])
        for shipped in (RULES, ALERTS, PROMETHEUS / "prometheus.yml"):
            text = shipped.read_text(encoding="utf-8").replace('["127.0.0.1:9476"]', targets)
            (self.folder / shipped.name).write_text(text if self.times_faster == 1 else faster(text, self.times_faster))
        subprocess.run(["promtool", "check", "config", self.folder / "prometheus.yml"], check=True, capture_output=True)
        self.nodes[0].start(self, ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
                                   "--web.listen-address=127.0.0.1:9090"],
                            stdout=open(self.folder / "prometheus.log", "w"), stderr=subprocess.STDOUT)  # noqa: SIM115

    def prometheus(self, path):
        return json.loads(self.nodes[0].run("curl", "-sf", f"http://127.0.0.1:9090/api/v1/{path}"))["data"]

    def firing(self):
        """[(name, what it says)]."""
        return sorted((alert["labels"]["alertname"], alert["annotations"]["summary"]) for alert in self.prometheus("alerts")["alerts"]
                      if alert["state"] == "firing")

    def query(self, expression):
        return self.prometheus("query?query=" + urllib.request.quote(expression))["result"]
