"""Nodes that are namespaces of this machine: each with a network, a host name, a lockstepd of its own, and a link to each other."""

import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from lockstep_program import BINARY
from waiting import wait_until

DAEMON = str(pathlib.Path(BINARY).with_name("lockstepd"))
# A process that the daemon takes for a rank: made up, not PyTorch. It maps a file named as PyTorch's library, and polls as
# Kineto does (docs/formats/kineto-ipc.md).
STAND_IN = """
import mmap, os, socket, struct, sys, time
with open(sys.argv[1], "rb") as file:
    library = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
client.bind("\\0dynoconfigclient%036d\\0" % os.getpid())
client.setblocking(False)
for _ in range(600):
    payload = struct.pack("<iiqi", 3, 1, 0, os.getpid())
    try:
        client.sendto(struct.pack("<q32s", len(payload), b"req") + payload, "\\0dynolog\\0")
        client.recv(65536)
    except OSError:
        pass
    time.sleep(0.5)
"""


def _ip(*words):
    done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest(f"no links between namespaces here: ip {' '.join(map(str, words))}: {done.stderr.strip()}")


class Nodes:
    """`names` as nodes. Skips where namespaces or links are not allowed."""

    def __init__(self, *names):
        if os.getuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
            raise unittest.SkipTest("links between namespaces take root, ip and nsenter")
        self._stack = contextlib.ExitStack()
        self._ports = itertools.count(29400)  # The networks are these nodes' own.
        try:
            scratch = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lknet-", dir="/tmp"))
            self.folder = pathlib.Path(scratch)
            self.holders = {name: self._hold(name) for name in names}
            for index, (a, b) in enumerate(itertools.combinations(names, 2)):
                self._link(a, b, index)
            for name in names:
                self._name_nodes(name, names)
                self._start_daemon(name)
        except BaseException:
            self.close()
            raise

    def close(self):
        self._stack.close()

    def start(self, name, words, **variables):
        """A process on that node."""
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(self._enter(name) + list(map(str, words)), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, **variables})
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def stand_in(self, name, rank, world_size, job, version="2.13.0+cpu", **variables):
        """A made-up rank on that node, as the daemon sees one."""
        library = self.folder / version / "torch" / "lib" / "libtorch_cpu.so"
        if not library.exists():
            library.parent.mkdir(parents=True)
            (library.parent.parent / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
            library.write_bytes(b"\0" * 4096)
        self.start(name, [sys.executable, "-c", STAND_IN, library], RANK=str(rank), LOCAL_RANK="0",
                   WORLD_SIZE=str(world_size), TORCHELASTIC_RUN_ID=job, KINETO_USE_DAEMON="1", **variables)

    def torchrun(self, python, job, ranks, script, **variables):
        """`script` under torchrun, so many ranks on each node as `ranks` says: {node: ranks}; the first one's is rank 0.
        `variables`: of a node's ranks, {node: {name: value}}. Returns the launchers, by node."""
        port = next(self._ports)
        first = next(iter(ranks))
        launchers = {}
        for name, count in ranks.items():
            words = [python, "-m", "torch.distributed.run", "--nnodes", len(ranks), "--nproc-per-node", count, "--rdzv-id", job,
                     "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first}:{port}", "--local-addr", name, *script]
            launchers[name] = self.start(name, words, **variables.get(name, {}))
        return launchers

    @staticmethod
    def end(process):
        """Kills what `start` or `torchrun` gave, and who ends with it: nsenter's child, which is the one that was meant."""
        for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split():
            os.kill(int(child), signal.SIGKILL)
        process.wait()

    def run_on(self, name, *words):
        """A command on that node, to its end."""
        subprocess.run(self._enter(name) + list(map(str, words)), stdin=subprocess.DEVNULL, check=True)

    def logs(self):
        """What the processes of all nodes said last."""
        return "".join(path.read_text(encoding="utf-8", errors="replace")[-4000:] for path in self.folder.glob("n*.log"))

    def via(self):
        """For --via: a way to the nodes that needs no network between them."""
        cases = "".join(f"{name}) pid={holder};; " for name, holder in self.holders.items())
        script = self.folder / "enter"
        script.write_text(f'#!/bin/sh\nnode=$1\nshift\ncase $node in {cases}esac\n'
                          'exec nsenter --target "$pid" --net --uts --mount --pid "$@"\n', encoding="ascii")
        script.chmod(0o755)
        return f"{script} {{host}}"

    def sockets(self):
        """For --socket: where all the daemons' sockets are, each node's by its own link."""
        return self.folder / "daemon" / "lockstepd.sock"

    def cut_off(self, name):
        """No packet reaches the node or leaves it; its interfaces keep their addresses."""
        for other in self.holders:
            if other != name:
                self._ip_of(self.holders[other], "link", "set", f"to-{name}", "down")

    def _enter(self, name):
        return ["nsenter", "--target", str(self.holders[name]), "--net", "--uts", "--mount", "--pid", "--"]

    def _hold(self, name):
        """The process that keeps a node's namespaces, its first one: of the network, its name, processes and mounts."""
        (self.folder / name).mkdir()
        (self.folder / "daemon").mkdir(exist_ok=True)
        ready = self.folder / f"{name}.ready"
        code = (f"hostname {name} && mount --make-rprivate / && mount --bind {self.folder}/{name} {self.folder}/daemon && "
                f"ip link set lo up && touch {ready} && exec sleep 600")
        holder = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                                   "sh", "-c", code], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._stack.callback(self._wait_for_end, name)
        self._stack.callback(holder.wait)
        self._stack.callback(holder.kill)
        wait_until(lambda: ready.exists() or holder.poll() is not None, f"namespaces of {name}")
        if holder.poll() is not None:
            raise unittest.SkipTest("no namespaces of one's own here")
        children = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text(encoding="ascii")
        return int(children.split()[0])

    def _wait_for_end(self, name):
        """What runs there dies with the namespaces' first process, a moment later, and may write until then."""
        process = self.holders.get(name) if hasattr(self, "holders") else None
        wait_until(lambda: process is None or not pathlib.Path(f"/proc/{process}").exists(), f"the end of {name}")

    def _link(self, a, b, index):
        pids = [self.holders[name] for name in (a, b)]
        _ip("link", "add", f"to-{b}", "netns", pids[0], "type", "veth", "peer", "name", f"to-{a}", "netns", pids[1])
        for pid, device, last in ((pids[0], f"to-{b}", 1), (pids[1], f"to-{a}", 2)):
            self._ip_of(pid, "address", "add", f"10.77.{index}.{last}/24", "dev", device)
            self._ip_of(pid, "link", "set", device, "up")

    @staticmethod
    def _ip_of(pid, *words):
        done = subprocess.run(["nsenter", "--target", str(pid), "--net", "ip", *words], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise unittest.SkipTest(f"no addresses in namespaces here: {done.stderr.strip()}")

    def _name_nodes(self, name, names):
        """On that node, each other's name is the address at the other end of their link."""
        hosts = self.folder / f"{name}.hosts"
        lines = ["127.0.0.1 localhost"]
        for index, pair in enumerate(itertools.combinations(names, 2)):
            if name not in pair:
                continue
            for place, other in enumerate(pair, 1):
                if other != name or not any(line.endswith(f" {name}") for line in lines):
                    lines.append(f"10.77.{index}.{place} {other}")
        hosts.write_text("\n".join(lines) + "\n", encoding="ascii")
        self.run_on(name, "mount", "--bind", hosts, "/etc/hosts")

    def _start_daemon(self, name):
        folder = self.folder / name
        config = folder / "lockstep.toml"
        config.write_text(f'socket = "{self.folder}/daemon/lockstepd.sock"\nlisten = []\nstate = "{folder}/state"\n',
                          encoding="utf-8")
        config.chmod(0o600)
        self.start(name, [DAEMON, "--config", config])
        wait_until((folder / "lockstepd.sock").exists, f"the daemon of {name}")
