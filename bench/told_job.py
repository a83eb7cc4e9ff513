"""Jobs that run blocks of steps when a benchmark tells them to, so that jobs can take turns; and what is said of such pairs."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench/overhead_job.py"
RANKS = 4


def torchrun(python):
    return [python, "-W", "ignore", "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(RANKS),
            "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", str(PROGRAM)]


def wait_for(condition, what, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"waited too long for {what}")
        time.sleep(0.05)


class Job:
    """Four ranks of overhead_job.py that run steps when told to; `launcher` is the command before its arguments."""

    def __init__(self, name, launcher, folder, environment, *arguments):
        self.commands, self.results = folder / f"{name}.commands", folder / f"{name}.results"
        os.mkfifo(self.commands)
        self.results.touch()
        self.read_to = 0
        log = open(folder / f"{name}.log", "wb")
        self.process = subprocess.Popen([*launcher, str(self.commands), str(self.results), *arguments], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.writer = os.open(self.commands, os.O_RDWR)

    def tell(self, steps):
        os.write(self.writer, f"{steps}\n".encode())

    def times(self):
        """[(start_unix_ns, duration_ns)] of the block that was told last; then cpu_ns is what all threads of its ranks used."""
        def there():
            if self.process.poll() is not None:
                sys.exit("a job ended; see its log")
            with self.results.open(encoding="ascii") as file:
                file.seek(self.read_to)
                self.line = file.readline()
            return self.line.endswith("\n")
        wait_for(there, "a block of steps", 600)
        self.read_to += len(self.line)
        result = json.loads(self.line)
        self.cpu_ns = result["cpu_ns"]
        return result["steps"]

    def block(self, steps):
        self.tell(steps)
        return self.times()

    def end(self):
        self.tell(0)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()


def median_of(times):
    return statistics.median(duration for _, duration in times)


def spread(values):
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return f"median {statistics.median(ordered):.3f}, quartiles {ordered[quarter]:.3f} .. {ordered[-1 - quarter]:.3f}, all " \
           f"{ordered[0]:.3f} .. {ordered[-1]:.3f}, n {len(ordered)}"


def sign_interval(values):
    """Ends of the interval that holds the median with at least 95 %, whatever the distribution (sign test)."""
    from math import comb
    ordered, n = sorted(values), len(values)
    rank, tail = 0, 0.0
    while rank < n // 2 and tail + comb(n, rank) / 2**n <= 0.025:
        tail += comb(n, rank) / 2**n
        rank += 1
    return ordered[max(rank - 1, 0)], ordered[n - max(rank, 1)]
