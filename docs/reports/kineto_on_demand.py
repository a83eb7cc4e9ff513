#!/usr/bin/env python3
"""A process that Kineto traces on demand dies of a segmentation fault (PyTorch before 2.14). Needs nothing but PyTorch:

    python kineto_on_demand.py [--seconds 600] [--processes 4] [--by steps|time] [--threads N] [--load N] [--with stacks|shapes|memory ...]

Each process trains a small model in a loop, with KINETO_USE_DAEMON=1 and nothing else. This program plays the daemon that it asks for work, and
asks for one short trace after another: a new one only when the one before has been written. Processes that die are started anew. At the end:
how many traces were written, how many processes died, by which signal. `--load N` keeps N cores busy besides, which makes it die sooner.
"""

import argparse
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HEADER = struct.Struct("<Q32s")
PATIENCE_S = 60
RECORDED = {"stacks": "PROFILE_WITH_STACK", "shapes": "PROFILE_REPORT_INPUT_SHAPES", "memory": "PROFILE_PROFILE_MEMORY"}


def train(threads):
    import torch

    torch.set_num_threads(threads)
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        optimizer.zero_grad()
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()


class Process:
    """One that trains, and what it has been asked for."""

    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.traces, self.deaths = 0, []
        self.start()

    def start(self):
        environment = {**os.environ, "KINETO_USE_DAEMON": "1", "KINETO_CONFIG": str(self.folder / "kineto.conf"), "KINETO_LOG_LEVEL": "5",
                       "KINETO_IPC_SOCKET_DIR": str(self.folder), "OMP_NUM_THREADS": str(self.options.threads)}
        self.child = subprocess.Popen([sys.executable, "-X", "faulthandler", __file__, "--train", str(self.options.threads)],
                                      env=environment, stdin=subprocess.DEVNULL, stderr=open(self.folder / "stderr.txt", "ab"))
        self.asked_s, self.trace = 0.0, None

    def look(self, now_s):
        """Whether it lives, and has written what it was asked for."""
        status = self.child.poll()
        if status is not None:
            self.deaths.append(status)
            self.start()
        elif self.trace is not None and self.trace.exists():
            self.traces += 1
            self.trace.unlink()
            self.trace = None
        elif self.trace is not None and now_s - self.asked_s > PATIENCE_S:
            self.trace = None  # Kineto has dropped it without a word.

    def request(self, now_s):
        if self.trace is not None:
            return ""
        name = self.folder / f"{self.child.pid}-{time.monotonic_ns()}.json"
        self.trace, self.asked_s = name.with_name(f"{name.stem}_{self.child.pid}.json"), now_s
        window = ("PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_ITERATIONS=1\n" if self.options.by == "steps"
                  else "ACTIVITIES_DURATION_MSECS=50\nACTIVITIES_WARMUP_PERIOD_SECS=0\n")
        recorded = [f"{setting}={'true' if what in self.options.recorded else 'false'}" for what, setting in RECORDED.items()]
        return "\n".join([f"{window}ACTIVITIES_LOG_FILE={name}", *recorded, ""])


def serve(link, processes, until_s):
    """Answers polls until then."""
    by_pid = {}
    while (left_s := until_s - time.monotonic()) > 0:
        link.settimeout(left_s)
        try:
            data, address = link.recvfrom(4096)
        except socket.timeout:
            return
        mask, _, _, pid = struct.unpack_from("<iiqi", data, HEADER.size)
        by_pid = {process.child.pid: process for process in processes}
        process = by_pid.get(pid)
        if process is None:
            continue
        text = process.request(time.monotonic()) if mask & 2 else ""
        try:
            link.sendto(HEADER.pack(len(text), b"req") + text.encode(), address)
        except OSError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--by", choices=("steps", "time"), default="steps")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--with", dest="recorded", nargs="+", choices=RECORDED, default=[], help="what a trace holds beside operators")
    parser.add_argument("--core-files", action="store_true", help="let the kernel write core files")
    parser.add_argument("--train", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        return train(options.train)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY) if options.core_files else (0, 0))
    with tempfile.TemporaryDirectory(prefix="kod-", dir="/tmp") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "kineto.conf").write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
        link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        link.bind(str(folder / "dynolog"))
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
        processes = [Process(folder, options) for _ in range(options.processes)]
        end_s = time.monotonic() + options.seconds
        try:
            while time.monotonic() < end_s:
                serve(link, processes, time.monotonic() + 0.1)
                for process in processes:
                    process.look(time.monotonic())
        except KeyboardInterrupt:
            pass
        for child in [*load, *(process.child for process in processes)]:
            child.kill()
        version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True).stdout.strip()
        stderr = (folder / "stderr.txt").read_text(errors="replace")
    traces, deaths = sum(process.traces for process in processes), [status for process in processes for status in process.deaths]
    signals = sorted({signal.Signals(-status).name if status < 0 else f"exit status {status}" for status in deaths})
    print(f"PyTorch {version}, by {options.by}, {options.processes} processes of {options.threads} threads, load {options.load}"
          f"{''.join(f', {what}' for what in options.recorded)}: {traces} traces, {len(deaths)} deaths ({', '.join(signals) or 'none'})")
    if deaths:
        print("\n".join(stderr.splitlines()[:40]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
