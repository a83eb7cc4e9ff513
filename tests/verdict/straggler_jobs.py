"""Random jobs with one planted cause of waiting, or none, and whom `lockstep analyze` names.

By hand, for a table:  python3 tests/verdict/straggler_jobs.py --jobs 500 --seed 1
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", "build/release"))
GENERATOR = BUILD / "bin" / "lockstep_trace_gen"
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BINARY", BUILD / "bin" / "lockstep"))

# How a rank is slowed down, and by what share of the step at least and at most.
WAYS = ["kernel", "loader", "host", "operator", "gc", "allocator", "checkpoint", "copy", "unrecorded", "launch"]
RANKS_MISSING = 4  # exit status of a result that lacks ranks
TELLING = 0.15  # of a step, lost in each step in which the delay shows
WORLDS = [2, 2, 4, 4, 8, 8, 12, 16, 24, 32, 64]


@dataclass
class Job:
    """What is generated, and the truth of it."""

    kind: str  # "healthy", "chronic", "one_off", "periodic", "link"
    way: str = ""
    rank: int | None = None
    share: float = 0  # of the step that the planted delay is
    options: list = field(default_factory=list)
    recorded: list | None = None  # the ranks of which traces are kept; None: all

    def text(self):
        return f"{self.kind} {self.way} rank {self.rank} share {self.share:.2f}: {' '.join(self.options)}" + (f", recorded {self.recorded}" if self.recorded else "")


@dataclass
class Told:
    """What analyze says."""

    ranks: set  # in headlines and findings of a warning or above that name who holds others up
    link: set  # ends of links that are named
    causes: list
    lost: float  # of each step in which the delay shows, against the same job without it


def divisors(number):
    return [n for n in (1, 2, 4, 8) if number % n == 0 and n < number]


def layout(world, choose):
    """Options of the parallel layout, and step time in microseconds of a job without noise."""
    options = []
    kind = choose.choice(["data", "data", "tensor", "sharded", "pipeline"])
    if kind == "tensor" and world >= 4:
        options += ["--tensor-parallel", str(choose.choice([n for n in divisors(world) if n > 1]))]
    elif kind == "sharded":
        options += ["--sharded"]
    elif kind == "pipeline" and world >= 4:
        options += ["--pipeline-parallel", str(choose.choice([n for n in divisors(world) if 1 < n <= 4])),
                    "--micro-batches", str(choose.choice([2, 4])), "--gradient-norm"]
    return options


def random_job(seed):
    choose = random.Random(seed)
    world = choose.choice(WORLDS)
    steps = choose.choice([3, 3, 4, 5, 6, 8, 10, 12])
    options = ["--ranks", str(world), "--steps", str(steps), "--layers", str(choose.choice([4, 6, 12])),
               "--seed", str(seed), "--bucket-layers", str(choose.choice([2, 4])),
               "--overlap", str(choose.choice([0, 0.5, 1])), "--transfer-us", str(choose.choice([150, 400, 900]))]
    kind = choose.choice(["healthy", "healthy", "chronic", "chronic", "one_off", "periodic", "link"])
    if kind == "link" and world < 4:
        kind = "healthy"
    # A slow link of the only group of its kind is not told from a slow network.
    options += ["--tensor-parallel", str(choose.choice([n for n in divisors(world) if n > 1]))] if kind == "link" else layout(world, choose)
    noise = choose.choice([0, 0.1, 0.2, 0.3])
    batches = choose.choice([0, 0, 0.02, 0.05])
    options += ["--kernel-tail", str(noise), "--step-tail", str(batches)]
    if choose.random() < 0.5:
        on_host = choose.choice([n for n in (1, 2, 4, 8) if n <= world])
        offsets = [choose.randint(-5000, 5000) for _ in range(world)]
        options += ["--offset-us", ",".join(str(offsets[rank // on_host]) for rank in range(world)), "--ranks-per-host", str(on_host)]
    job = Job(kind, options=options)
    if kind == "healthy":
        return job
    job.rank = choose.randrange(world)
    job.way = "link" if kind == "link" else choose.choice(WAYS)
    job.share = choose.choice([0.1, 0.2, 0.4])
    if kind in ("one_off", "periodic"):
        job.share = choose.choice([0.3, 0.6, 1.0])
    if kind == "periodic" and steps < 6:
        job.options[job.options.index("--steps") + 1] = "8"
    return job


def generate(folder, options):
    """Out: how long a step is, in nanoseconds."""
    subprocess.run([GENERATOR, "--out", folder, *options], check=True, stdout=subprocess.DEVNULL)
    truth = json.loads(pathlib.Path(folder + ".truth.json").read_text())
    return truth["span_ns"] / truth["step_count"]


def planted(job, step_ns):
    """The option that puts the delay in, and in what share of the steps it shows."""
    steps = int(job.options[job.options.index("--steps") + 1])
    delay_us = job.share * step_ns / 1000
    if job.kind == "link":
        delay_us = max(delay_us / 4, 600)  # on each transfer
    where, hits = "", steps
    if job.kind == "one_off":
        where, hits = f":{random.Random(job.text()).randrange(steps)}", 1
    elif job.kind == "periodic":
        where, hits = ":1:3", len(range(1, steps, 3))
    return ["--straggler", f"{job.rank}:{delay_us:.0f}:{job.way}{where}"], hits / steps


def analyze(folder, all_recorded=True):
    done = subprocess.run([LOCKSTEP, "analyze", "--json", "--quiet", folder], capture_output=True)
    if done.returncode != (0 if all_recorded else RANKS_MISSING):
        raise RuntimeError(f"status {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def told(analysis, lost):
    named, link = set(), set()
    for finding in analysis["data"]["findings"]:
        if finding["severity"] == "info":
            continue
        if finding["id"] == "straggler":
            named.update(finding["ranks"])
        if finding["id"] == "slow_link":
            link.update(finding["ranks"])
    return Told(named, link, analysis["data"]["wait_states"]["causes"], lost)


def record_some(job, seed):
    """Keeps the traces of a part of the ranks, as people do: of one host, of one rank per host, of all but a few, of any."""
    choose = random.Random(seed)
    world = int(job.options[job.options.index("--ranks") + 1])
    ranks = list(range(world))
    per_host = choose.choice([n for n in (1, 2, 4, 8) if n < world])
    kept = choose.choice([ranks[:max(2, per_host)], ranks[::per_host], sorted(choose.sample(ranks, choose.randint(max(2, world // 2), world - 1))),
                          sorted(choose.sample(ranks, choose.randint(2, max(2, world // 2))))])
    job.recorded = kept if 2 <= len(kept) < world else ranks[:-1]


def run(job):
    with tempfile.TemporaryDirectory() as scratch:
        folder = scratch + "/job"
        step_ns = generate(folder, job.options)
        lost = 0
        if job.rank is not None:  # The same job once more, with the delay in it.
            shutil.rmtree(folder)
            option, hit_share = planted(job, step_ns)
            lost = (generate(folder, [*job.options, *option]) / step_ns - 1) / hit_share
        if job.recorded:
            for path in pathlib.Path(folder).iterdir():
                if int(re.search(r"\d+", path.name)[0]) not in job.recorded:
                    path.unlink()
        return told(analyze(folder, not job.recorded), lost)


def grade(job, answer):
    """"right", "wrong" (an innocent rank is named) or "silent"."""
    truth = set() if job.rank is None else {job.rank}
    if job.kind == "link":
        if answer.ranks:
            return "wrong"
        return "right" if job.rank in answer.link else "silent"
    if answer.ranks - truth or answer.link:
        return "wrong"
    return "right" if answer.ranks == truth else "silent"


def can_be_told(job, answer):
    """A delay that the device or the schedule hides makes nobody wait; a rank that was not recorded cannot be named."""
    return answer.lost >= TELLING and (not job.recorded or job.rank in job.recorded)


def campaign(count, seed, threads, all_recorded=True):
    """Yields (job, answer, grade)."""
    seeds = [seed * 100_000 + at for at in range(count)]
    jobs = [random_job(one) for one in seeds]
    if not all_recorded:
        seeds, jobs = zip(*((one, job) for one, job in zip(seeds, jobs) if int(job.options[1]) > 2))
        for one, job in zip(seeds, jobs):
            record_some(job, one)
    with ThreadPoolExecutor(threads) as pool:
        for job, answer in zip(jobs, pool.map(run, jobs)):
            yield job, answer, grade(job, answer)


class Tally:
    def __init__(self):
        self.table = collections.defaultdict(collections.Counter)

    def add(self, job, answer, result):
        kind = job.kind if job.rank is None or can_be_told(job, answer) else job.kind + " (hidden)"
        self.table[kind][result] += 1

    def count(self, result, *kinds):
        return sum(counts[result] for kind, counts in self.table.items() if not kinds or kind in kinds)

    def text(self):
        return "\n".join(f"{kind:20} " + ", ".join(f"{name} {counts[name]}" for name in ("right", "silent", "wrong"))
                         for kind, counts in sorted(self.table.items()))


def describe(job, answer, result):
    causes = [(c["cause"], c["ranks"], round(c["wait_ratio"], 2), c["pattern"]) for c in answer.causes[:4]]
    return (f"{result}: named {sorted(answer.ranks)}, links {sorted(answer.link)}, lost {answer.lost:.2f} of {job.text()}\n"
            f"    {causes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--some", action="store_true", help="of each job keep the traces of some ranks only")
    parser.add_argument("--verbose", action="store_true", help="tell of every job that is not right")
    arguments = parser.parse_args()
    tally = Tally()
    for job, answer, result in campaign(arguments.jobs, arguments.seed, arguments.threads, not arguments.some):
        tally.add(job, answer, result)
        if result != "right" and arguments.verbose:
            print(describe(job, answer, result), flush=True)
    print(tally.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
