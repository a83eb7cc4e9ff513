"""Ranks that record and a lockstepd that watches them, for tests."""

import os
import pathlib
import re
import subprocess
import sys

from waiting import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "daemon"))
from daemon_process import DAEMON, Daemon  # noqa: E402,F401

RANK = DAEMON.with_name("lockstep_recording_rank")
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """Prometheus's text: {(name, frozenset of labels): value}."""
    samples = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            key = (name, frozenset(LABEL.findall(labels or "")))
            assert key not in samples, f"twice: {line}"
            samples[key] = float(value)
    return samples


class Rank:
    """A process that is a rank by its environment, and does what it is told."""

    def __init__(self, test, folder, rank, world_size=2, *, job, **environment):
        launcher = {"RANK": str(rank), "WORLD_SIZE": str(world_size), "LOCAL_RANK": str(rank), "TORCHELASTIC_RUN_ID": job,
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        recording = {"LOCKSTEP_TRACE": str(folder)} if folder else {}
        self.process = subprocess.Popen([RANK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **launcher, **recording, **environment})
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.stdin.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def do(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        self.process.kill()
        self.process.wait()


class Watched(Daemon):
    """A daemon whose metrics are asked for."""

    def metrics(self):
        status, _, body = self.ask("GET", "/metrics")
        assert status == 200, body
        return body if isinstance(body, str) else body.decode()

    def value(self, name, /, **labels):
        """The sum over all samples with these labels; None: there is none."""
        found = [value for (sample, has), value in parse(self.metrics()).items()
                 if sample == name and labels.items() <= dict(has).items()]
        return sum(found) if found else None

    def steps_of(self, job_id):
        """{rank: steps} of the job's ranks that it has found."""
        return {dict(labels)["rank"]: value for (name, labels), value in parse(self.metrics()).items()
                if name == "lockstep_steps_total" and dict(labels)["job_id"] == job_id}

    def wait_for_steps(self, job_id, ranks, steps):
        """Until so many ranks are found and have made so many steps together. Ranks that begin at the same time may be found
        five seconds apart: one was still to call exec when the daemon looked. Steps of the job say nothing of all ranks."""
        def are_there():
            found = self.steps_of(job_id)
            return len(found) == ranks and sum(found.values()) >= steps
        self.wait_for(are_there, f"{steps} steps of {ranks} ranks")

    def wait_for(self, holds, what):
        wait_until(holds, lambda: f"{self.metrics()}\n{what}", every_s=0.2)
