"""Two nodes on one machine, each a network, a process table and a host name of its own, with a lockstepd and a job of four ranks that
trains over both, under torchrun."""

import json
import os
import pathlib
import secrets
import subprocess
import tempfile
import unittest

from pytorch import python_with_torch
from shipped import SOURCE
from waiting import PATIENCE_S, wait_until

DAEMON = pathlib.Path(os.environ["LOCKSTEP_BINARY"]).with_name("lockstepd")
PORT = 9476
JOB = "4711"


class Node:
    """A network, a process table and a host name, held by a shell."""

    def __init__(self, test, number, tag, folder):
        self.namespace = f"ls{tag}{number}"
        self.address = f"10.77.{int(tag, 16) % 250}.{number}"
        self.folder = folder
        subprocess.run(["ip", "netns", "add", self.namespace], check=True, capture_output=True)
        test.addCleanup(subprocess.run, ["ip", "netns", "del", self.namespace], check=False)
        self.init = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, "unshare", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child",
             "sh", "-c", f"hostname node{number}; ip link set lo up; echo ready; exec sleep 100000"], stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.init.stdout.close)
        test.addCleanup(self.init.wait)
        test.addCleanup(self.init.kill)
        assert self.init.stdout.readline() == "ready\n"
        [child] = pathlib.Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()
        self.inside = ["nsenter", "-t", child, "--net", "--pid", "--mount", "--uts", "--"]

    def start(self, test, command, environment=None, **options):
        options = {"stdin": subprocess.DEVNULL, **options}
        process = subprocess.Popen([*self.inside, *command], env={**os.environ, **(environment or {})}, **options)
        test.addCleanup(process.wait)
        test.addCleanup(process.kill)
        return process

    def run(self, *command):
        return subprocess.run([*self.inside, *command], capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout


class TwoNodes(unittest.TestCase):
    is_captured = False  # Kineto's thread asks the daemon every second whether to record.
    trace_disk_bytes = None  # Of a disk of its own for traces on each node.
    work_s = 0.05  # What a step of the job takes at least.

    def setUp(self):
        if os.getuid() != 0 or subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
            self.skipTest("network and process namespaces cannot be made: run as root, in a container with CAP_SYS_ADMIN")
        self.python = python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lka-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        tag = secrets.token_hex(2)
        self.nodes = [Node(self, number, tag, self.folder) for number in (1, 2)]
        one, two = self.nodes
        subprocess.run(["ip", "link", "add", f"v{tag}1", "netns", one.namespace, "type", "veth", "peer", f"v{tag}2", "netns", two.namespace],
                       check=True)
        for number, node in enumerate(self.nodes, 1):
            node.run("ip", "address", "add", f"{node.address}/24", "dev", f"v{tag}{number}")
            node.run("ip", "link", "set", f"v{tag}{number}", "up")
            node.interface = f"v{tag}{number}"
        self.start_daemons()
        self.plan({})
        self.start_job(JOB, self.nodes, "plan.json")

    def start_daemons(self):
        for number, node in enumerate(self.nodes, 1):
            folder = self.folder / f"daemon{number}"
            folder.mkdir()
            # GPUs of a stand-in for NVIDIA's library, and a port in a stand-in for sysfs: this machine has neither.
            self.devices({}, number)
            if self.trace_disk_bytes:
                (folder / "output").mkdir()
                node.run("mount", "-t", "tmpfs", "-o", f"size={self.trace_disk_bytes}", "tmpfs", folder / "output")
            config = folder / "lockstep.toml"
            config.write_text(f'[sensors]\nnvml_library = "{DAEMON.with_name("libfake_nvml.so")}"\nsysfs = "{folder}/fake_sysfs"\n'
                              'host = true\nengine_period_seconds = 1\n[serving]\nslo_request_seconds = 30\nslo_first_token_seconds = 30\n'
                              + ('[[engines]]\nurl = "http://127.0.0.1:8000"\nkind = "vllm"\n' if number == 1 else ""))
            node.start(self, self.daemon_command(number))

    def daemon_command(self, number):
        folder = self.folder / f"daemon{number}"
        return ["env", f"FAKE_NVML_SCENARIO={folder / 'scenario'}", DAEMON, "--config", folder / "lockstep.toml", "--socket", folder / "s" / "d.sock",
                "--state", folder / "state", "--output", folder / "output", "--listen", f"{self.nodes[number - 1].address}:{PORT}",
                "--insecure-no-auth", "--allow-unsafe", "--log-file", folder / "log"]

    def devices(self, troubles, number=2):
        """What a node's devices say: {"scenario": lines of the stand-in, "state": of the port}."""
        folder = self.folder / f"daemon{number}"
        port = folder / "fake_sysfs/class/infiniband/mlx5_0/ports/1"
        (port / "counters").mkdir(parents=True, exist_ok=True)
        for name, text in (("state", troubles.get("state", "4: ACTIVE")), ("rate", "400 Gb/sec (4X NDR)"), ("counters/port_rcv_data", "1000"),
                           ("counters/port_xmit_data", "1000"), ("counters/symbol_error", "0"), ("counters/link_downed", "0")):
            new = port / "new"
            new.write_text(f"{text}\n")
            new.rename(port / name)
        new = folder / "scenario.new"
        new.write_text("".join(line + "\n" for line in troubles.get("scenario", [])))
        new.rename(folder / "scenario")

    def start_job(self, job, nodes, plan):
        (self.folder / "kineto.conf").write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
        kineto = {"KINETO_USE_DAEMON": "1", "KINETO_CONFIG": str(self.folder / "kineto.conf"), "KINETO_LOG_LEVEL": "5"} if self.is_captured else {}
        for number, node in enumerate(nodes):
            environment = {"LOCKSTEP_TRACE": str(self.folder / "spans"), "GLOO_SOCKET_IFNAME": node.interface, "OMP_NUM_THREADS": "1",
                           "PYTHONPATH": os.path.join(os.environ["LOCKSTEP_BUILD"], "python"), "PYTHONWARNINGS": "ignore", **kineto}
            # A rank that ends must not take its node's others with it: that is what is looked at.
            node.start(self, [self.python, "-m", "torch.distributed.run", "--nnodes", str(len(nodes)), "--nproc-per-node", "2", "--node-rank",
                              str(number), "--rdzv-id", job, "--master-addr", nodes[0].address, "--master-port", "29400", "--monitor-interval", "600",
                              SOURCE / "tests/monitoring/watched_training.py", self.folder / plan, str(self.work_s)], environment,
                       stdout=open(self.folder / f"job{job}-{number}.log", "w"), stderr=subprocess.STDOUT)  # noqa: SIM115

    def wait_for_steps(self):
        """Until each node's daemon has seen both of its ranks step."""
        def are_seen():
            said = [subprocess.run([*node.inside, "curl", "-sf", f"http://{node.address}:{PORT}/metrics"], capture_output=True, text=True).stdout
                    for node in self.nodes]
            return all(text.count("\nlockstep_steps_total{") == 2 for text in said)
        wait_until(are_seen, lambda: "no steps: " + "".join(path.read_text()[-1500:] for path in sorted(self.folder.glob("*.log"))), every_s=1)

    def plan(self, plan):
        new = self.folder / "plan.new"
        new.write_text(json.dumps(plan))
        new.rename(self.folder / "plan.json")
