"""Captures of a real 4-rank job, one after another, while the daemon is killed now and then: how many ended whole, and how many ended the job.

    python3 tests/process/capture_soak.py [--captures 2000] [--kills 200] [--kineto]

`--kineto`: the job is not under `lockstep run`, so that Kineto traces it, and is started again where a capture ends it. Every other capture is of
two steps, the others are of 50 ms. The daemon is killed at a moment of the two seconds after its request, and started again at once. Needs
LOCKSTEP_BINARY and LOCKSTEP_SOURCE, as the tests do.
"""

import argparse
import collections
import pathlib
import random
import re
import sys
import time
import unittest

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from capture_jobs import Api, Node, end
from exact_interval import exact_interval
from lockstep_program import BINARY
from own_network import own_network
from pytorch import python_with_torch
from waiting import wait_until

RANKS = 4
WINDOWS = ({"mode": "iterations", "iterations": 2}, {"mode": "duration", "duration_ns": 50_000_000, "warmup_ns": 0})


class Soak:
    """`captures`: how many there are to be, `kills`: within how many of them the daemon is killed."""

    def __init__(self, python, captures, kills, kineto=False):
        self.node = Node(allow_unsafe=kineto)
        self.api = Api(self.node.socket)
        self.python, self.captures, self.kills, self.kineto = python, captures, kills, kineto
        self.job = None
        self.job_count = self.capture_count = self.kill_count = 0
        self.states = collections.Counter()
        self.reasons = collections.Counter()  # Of ranks without a trace.
        self.deaths = []  # For each job that ended: the signals of its ranks, as far as a capture says them.
        self.random = random.Random(22)  # The same moments each time; what falls into them is not.

    def close(self):
        self.node.close()

    def _start_job(self):
        self.job_count += 1
        under = [] if self.kineto else [BINARY, "run", "--quiet", "--"]
        self.job = self.node.job(self.python, f"soak{self.job_count}", RANKS, under=under, STEADY_JOB_LIMIT_S="86400",
                                 STEADY_JOB_PAUSE_S="0.002")

    def _has_ended(self):
        return self.job.launcher.poll() is not None

    def _bury(self, signals):
        self.deaths.append(signals)
        end(self.job.launcher)
        self.job = None

    def _make_ready(self):
        """A job that trains, all of whose ranks can be asked."""
        if self.job is not None and self._has_ended():
            self._bury(["after its captures"])
        if self.job is None:
            self._start_job()
        tracer = "kineto" if self.kineto else "steps"
        pids = set(self.job.pids.values())
        wait_until(lambda: self._has_ended() or pids <= {process["pid"] for process in self.api.processes()
                                                         if process["state"] == "idle" and process["tracer"] == tracer},
                   "all ranks to be idle")
        if self._has_ended():
            self._make_ready()

    def _is_killed(self, number):
        """Spread evenly over the captures."""
        return (number + 1) * self.kills // self.captures > number * self.kills // self.captures

    def _kill_daemon(self):
        time.sleep(self.random.uniform(0, 2))  # What is tested is any moment.
        self.kill_count += 1
        self.node.daemon.kill()
        self.node.daemon.wait()
        self.node.start_daemon()

    def run(self):
        """Yields each capture as it ended."""
        for number in range(self.captures):
            self._make_ready()
            name = self.api.start(selector={"pids": sorted(self.job.pids.values())}, window=WINDOWS[number % 2], allow_unsafe=self.kineto)
            if self._is_killed(number):
                self._kill_daemon()
            capture = self.api.wait_for_end(name)
            self.capture_count += 1
            self.states[capture["state"]] += 1
            self.reasons.update(re.sub(r"\d+", "N", target["reason"]) for target in capture["targets"] if target["state"] != "done")
            died = [target for target in capture["targets"] if target["state"] == "died"]
            if died or self._has_ended():
                self._bury([(target["end"] or {}).get("signal_name") for target in died])
            self.api.ask("DELETE", f"/captures/{name}")
            yield capture

    def summary(self):
        count = self.capture_count
        lines = [f"{count} captures by {'Kineto' if self.kineto else 'steps'}, {self.kill_count} daemons killed: "
                 + ", ".join(f"{number} {state}" for state, number in self.states.most_common())]
        if count:
            low, high = exact_interval(len(self.deaths), count)
            lines.append(f"  {len(self.deaths)} jobs ended: {len(self.deaths) / count:.2%} of captures, 95 % interval {low:.2%} .. {high:.2%}")
        lines += [f"  {number} x {reason}" for reason, number in self.reasons.most_common()]
        lines += [f"  ended: {', '.join(map(str, signals))}" for signals in self.deaths]
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--kineto", action="store_true")
    parser.add_argument("--python", help="an interpreter that has PyTorch; without it, the tests' own")
    options = parser.parse_args()
    try:
        python = options.python or python_with_torch()
    except unittest.SkipTest as why:
        sys.exit(str(why))
    own_network()
    soak = Soak(python, options.captures, options.kills, options.kineto)
    begin_s = time.monotonic()
    try:
        for _ in soak.run():
            if soak.capture_count % 50 == 0:
                print(f"after {time.monotonic() - begin_s:.0f} s: {soak.summary()}", flush=True)
    finally:
        print(f"after {time.monotonic() - begin_s:.0f} s: {soak.summary()}", flush=True)
        soak.close()


if __name__ == "__main__":
    main()
