"""A real lockstepd and real jobs under it, for tests of capture."""

import gzip
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from lockstep_program import BINARY
from own_network import own_network
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

DAEMON = str(pathlib.Path(BINARY).with_name("lockstepd"))


class TorchTest(unittest.TestCase):
    """Tests with `python`, which has PyTorch, in a network of their own."""

    @classmethod
    def setUpClass(cls):
        cls.python = python_with_torch()
        own_network()


def steps_of(trace):
    """Numbers of the training steps that a trace holds whole."""
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return {int(match[1]) for event in events if event.get("ph") == "X" and event.get("args", {}).get("finished") != "false"
            for match in [re.fullmatch(r"train_step#(\d+)", event.get("name", ""))] if match}


class Api:
    """The daemon's interface over its Unix socket; waits for a daemon that is just starting."""

    def __init__(self, path):
        self.path = str(path)

    def ask(self, method, path, body=None, root="/api/v1", **headers):
        def attempt():
            connection = http.client.HTTPConnection("localhost")
            connection.sock = socket.socket(socket.AF_UNIX)
            try:
                connection.sock.settimeout(30)
                connection.sock.connect(self.path)
                connection.request(method, root + path, body=json.dumps(body) if body is not None else None,
                                   headers={"Content-Type": "application/json", **headers})
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (ConnectionRefusedError, ConnectionResetError, FileNotFoundError, http.client.RemoteDisconnected):
                return None
            finally:
                connection.sock.close()
        return wait_until(attempt, "an answer of the daemon's")

    def start(self, **spec):
        status, body = self.ask("POST", "/captures", spec)
        if status >= 300:
            raise AssertionError(f"{status}: {body}")
        return json.loads(body)["id"]

    def processes(self):
        return json.loads(self.ask("GET", "/processes")[1])["processes"]

    def captures(self):
        return json.loads(self.ask("GET", "/captures")[1])["captures"]

    def capture(self, number):
        status, body = self.ask("GET", f"/captures/{number}")
        if status != 200:
            raise AssertionError(f"{status}: {body}")
        return json.loads(body)

    def wait_for(self, number, states):
        """Until a target is in one of `states` (or past all of them)."""
        def there():
            capture = self.capture(number)
            held = [target["state"] for target in capture["targets"]]
            return capture if capture["finished_unix_ns"] or any(state in states for state in held) else None
        return wait_until(there, f"a process to be {' or '.join(states)}")

    def wait_for_fetch(self, number):
        """Until no target is queued."""
        wait_until(lambda: all(target["state"] != "queued" for target in self.capture(number)["targets"]),
                   "all ranks to have fetched the request")

    def wait_for_end(self, number):
        def ended():
            capture = self.capture(number)
            return capture if capture["finished_unix_ns"] else None
        return wait_until(ended, "the capture's end")


class Node:
    """A folder, a daemon in it, and the jobs and captures that use it."""

    def __init__(self, allow_unsafe=True):
        # Most of these jobs are Kineto's alone. Short: Unix sockets' paths are.
        self.flags = ["--allow-unsafe"] if allow_unsafe else []
        self.scratch = tempfile.TemporaryDirectory(prefix="lkcap-", dir="/tmp")
        self.folder = pathlib.Path(self.scratch.name)
        self.socket = self.folder / "d.sock"
        config = self.folder / "lockstep.toml"
        config.write_text(
            f'socket = "{self.socket}"\nlisten = []\nstate = "{self.folder}/state"\n'
            f'[capture]\noutput = "{self.folder}/out"\n', encoding="utf-8")
        config.chmod(0o600)
        self.config = config
        self.kineto_config = self.folder / "libkineto.conf"
        self.kineto_config.write_text("# as lockstep run writes it\nON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n",
                                      encoding="utf-8")
        self.log = open(self.folder / "daemon.log", "ab")
        self.processes = []
        self.daemon = None
        self.start_daemon()

    def start_daemon(self):
        self.daemon = subprocess.Popen([DAEMON, "--config", self.config, *self.flags], stdin=subprocess.DEVNULL, stdout=self.log,
                                       stderr=self.log)
        wait_until(self.socket.exists, "the daemon's socket", self.daemon)

    def close(self):
        for process in reversed(self.processes):
            end(process)
        end(self.daemon)
        self.log.close()
        self.scratch.cleanup()

    def daemon_log(self):
        return (self.folder / "daemon.log").read_text(encoding="utf-8", errors="replace")

    def job(self, python, name, ranks, *arguments, under=(), **variables):
        """Starts a job of that many ranks under torchrun and waits until it trains. `under`: what torchrun is started by."""
        ready = self.folder / f"ready-{name}"
        ready.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("KINETO", "SLURM", "PBS"))}
        environment.update(KINETO_USE_DAEMON="1", KINETO_CONFIG=str(self.kineto_config), GLOO_SOCKET_IFNAME="lo",
                           OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="5", PYTHONWARNINGS="ignore", LOCKSTEP_SOCKET=str(self.socket),
                           **variables)
        log = open(self.folder / f"{name}.log", "ab")
        launcher = subprocess.Popen(
            [*under, python, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(ranks), "--rdzv-id", name,
             "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1",
             pathlib.Path(__file__).with_name("steady_job.py"), ready, *arguments],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.processes.append(launcher)
        wait_until(lambda: len(list(ready.iterdir())) == ranks, f"job {name} to train", launcher)
        return Job(launcher, {int(path.name): int(path.read_text(encoding="ascii")) for path in ready.iterdir()})

    def capture(self, *arguments, timeout=PATIENCE_S):
        """`lockstep capture ARGUMENTS...` on this node: has returncode, stdout, stderr."""
        return subprocess.run([BINARY, "capture", "--socket", self.socket, *map(str, arguments)], capture_output=True,
                              text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=timeout, cwd=self.folder,
                              check=False)

    def start_capture(self, *arguments):
        """The same, under way: it says into capture.out and capture.err."""
        with open(self.folder / "capture.out", "wb") as out, open(self.folder / "capture.err", "wb") as err:
            return subprocess.Popen([BINARY, "capture", "--socket", self.socket, *map(str, arguments)], stdout=out,
                                    stderr=err, stdin=subprocess.DEVNULL, cwd=self.folder)

    def capture_json(self, *arguments, status=0):
        done = self.capture("--json", *arguments)
        if done.returncode != status:
            raise AssertionError(f"exit status {done.returncode}: {done.stderr}\n{done.stdout}\n{self.daemon_log()}")
        return json.loads(done.stdout)


class Job:
    def __init__(self, launcher, pids):
        self.launcher = launcher
        self.pids = pids  # By rank.


def end(process):
    """Ends a process that this test started, and its children with it (torchrun ends its ranks)."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
