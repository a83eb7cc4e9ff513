"""Nodes that are process tables of this machine, each with a lockstepd and ranks that record steps. Root only."""

import http.client
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cpu_ns(pid):
    """Of all threads of a process, by the scheduler."""
    return sum(int(path.read_text(encoding="ascii").split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def rss_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii"))[1]) / 1024


def spread(values, digits=2):
    ordered = sorted(values)
    return f"median {statistics.median(ordered):.{digits}f}, all {ordered[0]:.{digits}f} .. {ordered[-1]:.{digits}f}, n {len(ordered)}"


def say(what, value):
    print(f"{what:58} {value}", flush=True)


class Node:
    """Node `number` of `node_count` with `rank_count` ranks of the job."""

    def __init__(self, build, job, number, node_count, rank_count, folder):
        self.job = job
        self.folder = folder / str(number)
        self.folder.mkdir()
        self.daemon = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", build / "bin/lockstepd", "--socket", self.folder / "s/d.sock",
             "--state", self.folder / "state", "--output", self.folder / "output", "--port", "0", "--kineto-name", f"{job}-{number}"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "serves" not in (line := self.daemon.stderr.readline()):
            if not line:
                sys.exit(f"node {number}: no daemon")
        self.port = int(re.search(r"http://\S+:(\d+)", line)[1])
        self.pid = int(pathlib.Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children").read_text(encoding="ascii").split()[0])
        self.ranks = subprocess.Popen(
            ["nsenter", "-t", str(self.pid), "--pid", "--mount", "--", sys.executable, ROOT / "tests/support/stand_in_ranks.py",
             build / "bin/lockstep_recording_rank", job, str(number * rank_count), str(rank_count), str(node_count * rank_count), folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, line):
        self.ranks.stdin.write(line + "\n")
        self.ranks.stdin.flush()

    def hear(self):
        if not self.ranks.stdout.readline():
            sys.exit("the ranks have ended")

    def answer(self, last):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        begin = time.perf_counter()
        connection.request("GET", f"/api/v1/stages?job={self.job}&last={last}")
        body = connection.getresponse().read()
        took = time.perf_counter() - begin
        connection.close()
        return body, took

    def end(self):
        self.daemon.kill()
        self.daemon.wait()
        self.ranks.wait()


def step(nodes, count, forward_ms, backward_ms, slow_rank, slow_ms):
    """All ranks of all nodes do `count` steps; returns when they have."""
    for node in nodes:
        node.say(f"{count} {forward_ms} {backward_ms} {slow_rank} {slow_ms}")
    for node in nodes:
        node.hear()
