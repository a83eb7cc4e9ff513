"""Prometheus scrapes two nodes (network, process and host names of their own) on which jobs run under torchrun. Healthy they raise no
alert for an hour; each planted trouble raises exactly its own, once, with the rank in its text. The shipped rules, thirty times as fast."""

import itertools
import json
import re
import subprocess
import time
import unittest
import urllib.request

from shipped import ALERTS, DASHBOARDS, rules_of
from two_nodes import JOB
from waiting import wait_until
from watched_nodes import WatchedNodes, faster

HEALTHY_S = 120  # an hour of the rules


class AlertsTest(WatchedNodes):
    trace_disk_bytes = 64 << 20
    times_faster = 30  # A scrape that a busy machine holds up for two seconds is not an alert yet.

    def wait_for(self, holds, what):
        def there():
            try:
                return holds()
            except (subprocess.CalledProcessError, ValueError):  # Not up yet.
                return False

        def why():
            told = what() if callable(what) else what
            logs = "".join(f"{path.name}: {path.read_text()[-1500:]}\n" for path in sorted(self.folder.glob("*.log")))
            return f"{logs}firing: {self.firing()}\n{told}"
        wait_until(there, why, every_s=1)

    def unanswered(self, of_alerts=False):
        """Expressions of the dashboards' panels and variables that return nothing; those that ask for what fires, or all others."""
        expressions = []
        for path in sorted(DASHBOARDS.glob("*.json")):
            dashboard = json.loads(path.read_text(encoding="utf-8"))
            expressions += [re.sub(r"\$\w+", ".*", target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
            for variable in dashboard["templating"]["list"]:
                if variable["type"] == "query":
                    metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
                    expressions.append(f'{metric}{{{label}!=""}}')
        expressions = [expression for expression in expressions if ("ALERTS" in expression) == of_alerts]
        self.assertTrue(expressions)
        return [expression for expression in expressions if not self.query(faster(expression + " ", self.times_faster).strip())]

    def uncounted(self):
        """Counters whose first event an alert would miss: those that do not exist before it. Other codes than the hardware's have a rule
        of their own for that."""
        counters = {counter for rule in rules_of(ALERTS) for counter in re.findall(r"increase\((lockstep_\w+(?:\{[^}]*\})?)\[", rule["expr"])
                    if "xid!~" not in counter}
        self.assertGreater(len(counters), 4)
        return sorted(counter for counter in counters if not self.query(counter))

    def raises(self, what, alerts, again=lambda: None):
        """Exactly these, {name: a pattern of what it says}, and so for a while. `again` happens before each look."""
        self.planted += [name for name in alerts if name not in dict(self.firing())]

        def looked():
            again()
            firing = self.firing()
            return sorted(alerts) == [name for name, _ in firing] and all(re.fullmatch(alerts[name], text) for name, text in firing)
        self.wait_for(looked, f"{what}: {alerts}")
        for _ in range(5):
            again()
            time.sleep(1)
            self.assertTrue(looked(), f"{what}: {self.firing()}")

    def fired(self):
        """Each alert as often as it began to fire since Prometheus was started."""
        names = []
        now = time.time()
        query = urllib.request.quote('ALERTS{alertstate="firing"}')
        for series in self.prometheus(f"query_range?query={query}&start={self.began - 1}&end={now}&step=0.5")["result"]:
            times = [float(at) for at, _ in series["values"]]
            breaks = sum(1 for before, after in itertools.pairwise(times) if after - before > 0.6)
            names += [series["metric"]["alertname"]] * (1 + breaks)
        return sorted(names)

    fails = 0

    def errors(self):
        """GPU 3's so far, as the stand-in is told them."""
        return [f"xid 3 79 {self.fails}", f"ecc 4 0 {self.fails}"]

    def counts_as_the_job_does(self):
        """Steps of each rank by Prometheus, against when the rank itself says that they ended."""
        for series in self.query(f'timestamp(lockstep_steps_total{{job_id="{JOB}"}})'):
            rank = series["metric"]["rank"]
            at = float(series["value"][1])
            [count] = self.query(f'lockstep_steps_total{{job_id="{JOB}",rank="{rank}"}} @ {at:.3f}')
            ends = [float(line) for line in (self.folder / f"plan.json.steps.{rank}").read_text().splitlines()]
            newest = sum(1 for end in ends if end <= at)
            # lockstepd looks each second, and a busy machine makes it late.
            oldest = sum(1 for end in ends if end <= at - 5)
            self.assertTrue(oldest <= int(count["value"][1]) <= newest, f"rank {rank}: {oldest}, {count}, {newest}")
            self.assertGreater(oldest, 0)

    def test_each_trouble_raises_its_own_alerts(self):
        self.began = time.time()
        self.planted = []
        self.wait_for(lambda: len(self.query("lockstep_steps_total > 20")) == 6, "six ranks that step")
        self.raises("nothing as long as all is well", {})
        for second in range(HEALTHY_S):
            self.assertEqual([], self.firing(), f"after {second} s of nothing wrong")
            time.sleep(1)
        self.wait_for(lambda: not self.unanswered(), lambda: f"every panel has data, but for {self.unanswered()}")
        self.assertEqual([], self.uncounted())
        self.counts_as_the_job_does()
        hosts = {row["metric"]["host"] for row in self.query("lockstep_rank_up")}
        self.assertEqual({"node1", "node2"}, hosts)

        self.plan({"slow": 2})
        self.raises("a slow rank", {"LockstepStragglerRank": r"Rank 2 of job 4711 takes .* times as long as the median rank, mostly in forward\."})
        self.assertEqual([], self.unanswered(of_alerts=True))
        self.plan({})
        self.raises("nothing again", {})

        self.plan({"fat": 1})
        self.raises("a rank with more memory",
                    {"LockstepGpuMemoryImbalance": r"Rank 1 of job 4711 holds the most memory, and rank [023] 33\.33% less\."})
        self.plan({"input": 0.12})
        self.raises("waiting for input", {"LockstepInputBound": r"Job 4711 waits for input .*% of its step time\."})
        self.plan({})
        self.raises("nothing, no more", {})

        self.plan({"creep": 3})
        self.raises("memory that grows", {"LockstepMemoryCreep": r"The host memory of rank 3 of job 4711 grows without end, by .*B an hour\."})
        self.plan({})
        self.raises("nothing once it is given back", {})

        # What an alert sees for ten minutes is seen for ten seconds here: it goes on until all have been seen together.
        def fails():
            self.fails += 1
            self.devices({"scenario": self.errors(), "state": "1: DOWN"})
        self.raises("a GPU with errors and a link that is down",
                    {"LockstepGpuXidHardware": r"Xid 79 of GPU 3 on node2\.",
                     "LockstepGpuEccUncorrected": r"Memory errors that were not corrected on GPU 4 of node2\.",
                     "LockstepIbLinkDown": r"The link at mlx5_0/1 of node2 is or was down\."}, again=fails)
        self.devices({"scenario": [*self.errors(), "lost 3"]})
        self.raises("a GPU that is lost", {"LockstepGpuMissing": r"node2 shows 7 GPUs, fewer than it should have\."})
        self.devices({"scenario": self.errors()})
        self.raises("nothing once it is back", {})

        filler = self.folder / "daemon2/output/filler"
        self.nodes[1].run("sh", "-c", f"head -c {self.trace_disk_bytes - 65536} /dev/zero >{filler}")
        self.raises("a full disk for traces",
                    {"LockstepCaptureDiskFull": r"The disk for traces at .*\.2:9476 is full, or nearly: .*B are free\."})
        self.nodes[1].run("rm", filler)
        self.raises("nothing once there is room", {})

        self.serving.line = "request 3 5 1"
        self.raises("requests that fail", {"LockstepServingErrorRateHigh": r".*% of the requests to .* of job 4712 fail\."})
        self.serving.line = "request 3 5 0"
        self.raises("nothing once they do not", {})

        self.plan({"errors": 1})
        self.raises("errors in a rank's log", {"LockstepLogErrorBurst": r"Logs of job 4711 have .* errors .*, most of them from rank 1\."})
        self.plan({})
        self.raises("nothing once they stop", {})

        self.plan({"hang": 0})
        self.raises("a job that hangs", {"LockstepJobNoProgress": r"No rank of job 4711 has ended a step for .*s\. "
                                         r"Rank 0 does not wait for the others: it is between its phases\."})
        self.plan({})
        self.raises("nothing once it goes on", {})

        self.plan({"apart": True})  # Nobody notices in a collective that a rank is gone.
        self.wait_for(lambda: len(self.query(f'rate(lockstep_step_phase_seconds_total{{job_id="{JOB}",phase="comm_exposed"}}[5s]) == 0')) == 4,
                      "no collective")
        [rank] = self.query(f'lockstep_rank_info{{job_id="{JOB}",rank="3"}}')
        self.nodes[1].run("kill", "-9", rank["metric"]["pid"])
        self.raises("a rank that is gone", {"LockstepRankDown": r"Only 3 of 4 ranks of job 4711 are there\. Rank 3 of node2 is gone\."})
        self.assertEqual(sorted(self.planted), self.fired())


if __name__ == "__main__":
    unittest.main()
