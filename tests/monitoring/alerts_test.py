"""Prometheus scrapes two nodes (network, process and host names of their own) on which a job of four ranks runs under torchrun.
Healthy it raises no alert for an hour; each planted trouble raises exactly its own. The shipped rules, thirty times as fast."""

import json
import re
import subprocess
import time
import unittest

from shipped import DASHBOARDS
from waiting import wait_until
from watched_nodes import WatchedNodes, faster

HEALTHY_S = 120  # an hour of the rules


class AlertsTest(WatchedNodes):
    times_faster = 30  # A scrape that a busy machine holds up for two seconds is not an alert yet.

    def wait_for(self, holds, what):
        def there():
            try:
                return holds()
            except (subprocess.CalledProcessError, ValueError):  # Not up yet.
                return False

        def why():
            logs = "".join(f"{path.name}: {path.read_text()[-1500:]}\n" for path in sorted(self.folder.glob("*.log")))
            return f"{logs}firing: {self.firing()}\n{what}"
        wait_until(there, why, every_s=1)

    def unanswered(self):
        """Expressions of the dashboards that return nothing. What fires is nothing, as it should be."""
        expressions = [target["expr"] for path in sorted(DASHBOARDS.glob("*.json")) for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
                       for target in panel["targets"] if "ALERTS" not in target["expr"]]
        self.assertGreater(len(expressions), 30)
        return [expression for expression in expressions if not self.query(faster(re.sub(r"\$\w+", ".*", expression) + " ", self.times_faster).strip())]

    def raises(self, what, *alerts, again=lambda: None):
        """Exactly these, and so for a while. `again` happens before each look."""
        def looked():
            again()
            return self.firing() == sorted(alerts)
        self.wait_for(looked, what)
        for _ in range(5):
            again()
            time.sleep(1)
            self.assertEqual(sorted(alerts), self.firing(), what)

    fails = 0

    def errors(self):
        """GPU 3's so far, as the stand-in is told them."""
        return [f"xid 3 79 {self.fails}", f"ecc 4 0 {self.fails}"]

    def test_each_trouble_raises_its_own_alerts(self):
        self.wait_for(lambda: len(self.query("lockstep_steps_total > 20")) == 4, "four ranks that step")
        self.raises("nothing as long as all is well")
        for second in range(HEALTHY_S):
            self.assertEqual([], self.firing(), f"after {second} s of nothing wrong")
            time.sleep(1)
        self.wait_for(lambda: self.unanswered() or True, "every panel has data")
        hosts = {row["metric"]["host"] for row in self.query("lockstep_rank_up")}
        self.assertEqual({"node1", "node2"}, hosts)

        self.plan({"slow": 2})
        self.raises("a slow rank", ("LockstepCommOverheadHigh", ""), ("LockstepRankImbalance", ""), ("LockstepStragglerRank", "2"))
        self.plan({})
        self.raises("nothing again")

        self.plan({"fat": 1})
        self.raises("a rank with more memory", ("LockstepGpuMemoryImbalance", ""))
        self.plan({"input": 0.12})
        self.raises("waiting for input", ("LockstepInputBound", ""))
        self.plan({})
        self.raises("nothing, no more")

        # What an alert sees for ten minutes is seen for ten seconds here: it goes on until all have been seen together.
        def fails():
            self.fails += 1
            self.devices({"scenario": self.errors(), "state": "1: DOWN"})
        self.raises("a GPU with errors and a link that is down", ("LockstepGpuXidHardware", ""), ("LockstepGpuEccUncorrected", ""),
                    ("LockstepIbLinkDown", ""), again=fails)
        self.devices({"scenario": [*self.errors(), "lost 3"]})
        self.raises("a GPU that is lost", ("LockstepGpuMissing", ""))
        self.devices({"scenario": self.errors()})
        self.raises("nothing once it is back")

        self.serving.line = "request 3 5 1"
        self.raises("requests that fail", ("LockstepServingErrorRateHigh", ""))
        self.serving.line = "request 3 5 0"
        self.raises("nothing once they do not")

        self.plan({"errors": 1})
        self.raises("errors in a rank's log", ("LockstepLogErrorBurst", ""))
        self.plan({})
        self.raises("nothing once they stop")

        self.plan({"hang": 0})
        self.raises("a job that hangs", ("LockstepJobNoProgress", ""))
        self.plan({})
        self.raises("nothing once it goes on")

        self.plan({"apart": True})  # Nobody notices in a collective that a rank is gone.
        self.wait_for(lambda: len(self.query('rate(lockstep_step_phase_seconds_total{job_id="4711",phase="comm_exposed"}[5s]) == 0')) == 4, "no collective")
        [rank] = self.query('lockstep_rank_info{rank="3"}')
        self.nodes[1].run("kill", "-9", rank["metric"]["pid"])
        self.raises("a rank that is gone", ("LockstepRankDown", ""))


if __name__ == "__main__":
    unittest.main()
