"""What the cases of step_tracer_job.py share: the tracer, loaded as `lockstep run` does; a lockstepd that is played; a job that trains."""

import importlib.util
import json
import os
import pathlib
import socket
import struct
import sys
import threading
import time

CASE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
os.environ["KINETO_IPC_SOCKET_DIR"] = str(FOLDER)


def load(name):
    """A file of the package, without the package."""
    full = f"lockstep.{name}"
    spec = importlib.util.spec_from_file_location(full, pathlib.Path(__file__).resolve().parents[2] / f"python/lockstep/{name}.py")
    module = sys.modules[full] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


load("_boundaries")
load("_step_trace")
tracer = load("_capture")
tracer._PERIOD_S = 0.1

HEADER = struct.Struct("<Q32s")


class Daemon:
    """The other end: reads polls, hands out texts."""

    def __init__(self):
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.link.bind(str(FOLDER / "dynolog"))
        self.link.settimeout(120)
        self.address = None

    def poll(self):
        data, self.address = self.link.recvfrom(65536)
        size, tag = HEADER.unpack_from(data)
        mask, count, _ = struct.unpack_from("<iiq", data, HEADER.size)
        assert size == len(data) - HEADER.size and tag.rstrip(b"\0") == b"lsreq", tag
        pids = struct.unpack_from(f"<{count}i", data, HEADER.size + 16)
        assert pids[0] == os.getpid() and pids[1] == os.getppid(), pids
        self.send(b"lsreq", "")
        return {"free": bool(mask & 2), "steps": bool(mask & 4), "note": data[HEADER.size + 16 + 4 * count:].decode()}

    def wait(self, wanted):
        while not wanted(poll := self.poll()):
            pass
        return poll

    def send(self, tag, text):
        self.link.sendto(HEADER.pack(len(text), tag) + text.encode(), self.address)

    def ask(self, name, **options):
        """Sends a request once it polls. The trace's path."""
        self.wait(lambda poll: poll["free"])
        lines = {"ACTIVITIES_LOG_FILE": f"{FOLDER}/{name}.json", "REQUEST_TRACE_ID": name, **options}
        self.send(b"lsreq", "".join(f"{key}={value}\n" for key, value in lines.items()))
        return FOLDER / f"{name}_{os.getpid()}.json"


class Job:
    """A small model that trains in this thread; each step takes a little."""

    def __init__(self):
        import torch
        self.torch = torch
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.steps = 0

    def step(self):
        self.optimizer.zero_grad()
        self.model(self.torch.ones(4, 8)).sum().backward()
        self.optimizer.step()
        self.steps += 1
        time.sleep(0.002)

    def until(self, condition, limit_s=120):
        end = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end, "it does not come"
            self.step()


def is_recording():
    job = tracer._tracer.job
    return job is not None and job.trace is not None and job.trace.is_recording


def names(trace, prefix):
    events = json.loads(trace.read_text())["traceEvents"]
    return sorted({event["name"] for event in events if event.get("name", "").startswith(prefix) and event.get("ph") == "X"})


def asked(daemon, name, **options):
    """In a thread of its own, while the job trains: (the trace's path, a thread to join)."""
    result = []
    thread = threading.Thread(target=lambda: result.append(daemon.ask(name, **options)))
    thread.start()
    return result, thread


def ask_and_train(daemon, job, name, **options):
    result, thread = asked(daemon, name, **options)
    job.until(lambda: not thread.is_alive())
    return result[0]


def memory():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
