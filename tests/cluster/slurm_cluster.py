"""A real SLURM of four nodes on this machine (network namespaces), with lockstepd on each, for the tests beside this.

slurm-up lies beside the checkout, in ../shared/cluster, or in $LOCKSTEP_CLUSTER_SCRIPTS, and installs SLURM where it is
missing without starting its services; without slurm-up, root, or PyTorch, the tests are skipped and say so.
"""

import json
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile

from waiting import PATIENCE_S, wait_until

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARIES = pathlib.Path(os.environ.get("LOCKSTEP_BINARY", SOURCE / "build/release/bin/lockstep")).parent
LOCKSTEP = BINARIES / "lockstep"
LOCKSTEPD = BINARIES / "lockstepd"
SCRIPTS = pathlib.Path(os.environ.get("LOCKSTEP_CLUSTER_SCRIPTS", SOURCE.parent / "shared/cluster"))
NODES = ["n001", "n002", "n003", "n004"]
PORT = 9476
SOCKET = "/run/lockstep/lockstepd.sock"  # /run is each host's own.
# Asks a node's daemon, on the node: argv is the socket and the path.
ASK = """
import http.client, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(sys.argv[1])
connection = Connection("localhost")
connection.request("GET", sys.argv[2])
answer = connection.getresponse()
sys.stdout.write(answer.read().decode())
sys.exit(answer.status != 200)
"""

def why_not():
    """Why there can be no cluster here, or None."""
    if not (SCRIPTS / "slurm-up").exists():
        return f"no slurm-up in {SCRIPTS} (set LOCKSTEP_CLUSTER_SCRIPTS)"
    if os.geteuid() != 0:
        return "a cluster of network namespaces needs root"
    return None


class Cluster:
    """The cluster, its folder (short: sockets lie in it), and what of ours runs on it."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ls-", dir="/tmp"))
        self.folder.chmod(0o755)  # munged wants to be reachable by all.
        self.slurm = self.folder / "slurm"
        self.daemons = {}
        self.jobs = []
        self.token_file = self.folder / "token"
        self.authority = self.folder / "ca.pem"

    def start(self):
        done = subprocess.run([SCRIPTS / "slurm-up", "-d", self.slurm, "-n", str(len(NODES)), "--ssh"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise AssertionError(done.stderr + done.stdout)
        self._write_credentials()
        for node in NODES:
            self._write_config(node)

    def stop(self):
        for node in list(self.daemons):
            self.stop_daemon(node)
        subprocess.run([SCRIPTS / "slurm-down", "-d", self.slurm], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- commands on hosts

    def command(self, host, *words):
        return [str(self.slurm / "on"), host, *map(str, words)]

    def on(self, host, *words, **options):
        """Runs a command on a host and returns what subprocess.run does."""
        return subprocess.run(self.command(host, *words), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=options.pop("timeout", PATIENCE_S), **options)

    def run(self, host, *words):
        done = self.on(host, *words)
        if done.returncode != 0:
            raise AssertionError(f"{words} on {host}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def crash(self, node):
        subprocess.run([SCRIPTS / "slurm-up", "-d", self.slurm, "--crash", node], check=True, capture_output=True)
        if node in self.daemons:
            self.daemons.pop(node).wait(60)

    def boot(self, node):
        subprocess.run([SCRIPTS / "slurm-up", "-d", self.slurm, "--boot", node], check=True, capture_output=True)

    # --- lockstepd

    def _openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=self.folder)

    def _write_credentials(self):
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2,
                      "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", self.authority)
        names = ",".join(f"DNS:{node}" for node in NODES)
        (self.folder / "names.cnf").write_text(f"subjectAltName={names}\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=lockstepd",
                      "-keyout", "node.key", "-out", "node.csr")
        self._openssl("x509", "-req", "-in", "node.csr", "-CA", self.authority, "-CAkey", "ca.key", "-CAcreateserial",
                      "-days", 2, "-extfile", "names.cnf", "-out", "node.pem")
        self.token_file.write_text(secrets.token_hex(32) + "\n")
        self.token_file.chmod(0o600)

    def _write_config(self, node):
        (self.folder / f"{node}.toml").write_text(f"""\
state = "{self.folder}/state-{node}"
listen = ["0.0.0.0:{PORT}"]
host_names = ["{node}"]
[tls]
certificate = "{self.folder}/node.pem"
key = "{self.folder}/node.key"
[[token]]
name = "operator"
role = "admin"
file = "{self.token_file}"
[log]
level = "debug"
""")

    def start_daemon(self, node):
        log = open(self.folder / f"lockstepd.{node}.log", "ab")
        daemon = subprocess.Popen(self.command(node, LOCKSTEPD, "--config", self.folder / f"{node}.toml", "--allow-unsafe"),
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.daemons[node] = daemon
        wait_until(lambda: self.ask(node, "/-/ready") is not None, f"lockstepd on {node}",
                   failed=lambda: daemon.poll() is not None and self.log(node))

    def ask(self, node, path):
        """What the node's daemon answers to root there; None where it does not."""
        done = self.on(node, "/usr/bin/python3", "-c", ASK, SOCKET, path)
        return done.stdout if done.returncode == 0 else None

    def log(self, node):
        return (self.folder / f"lockstepd.{node}.log").read_text(errors="replace")[-4000:]

    def daemon_pid(self, node):
        return int(self.run(node, "pgrep", "-x", "lockstepd").split()[0])

    def kill_daemon(self, node):
        """SIGKILL, as by the kernel's memory killer."""
        self.run(node, "kill", "-KILL", self.daemon_pid(node))
        self.daemons.pop(node).wait(60)

    def stop_daemon(self, node):
        daemon = self.daemons.pop(node)
        if daemon.poll() is None:
            daemon.terminate()
            daemon.wait(60)

    # --- jobs

    def submit(self, body, *options):
        """A batch job; returns its id. `options` go in front of the script, those of its further parts too."""
        number = len(self.jobs)
        script = self.folder / f"job{number}.sh"
        script.write_text(f"#!/bin/bash\nset -e\n{body}\n")
        output = self.folder / f"job{number}.out"
        answer = self.run("head", "sbatch", "--parsable", "--no-requeue", f"--output={output}", *options, script)
        job = answer.strip().split(";")[0]
        self.jobs.append((job, output))
        return job

    def job_output(self, job):
        path = next(output for name, output in self.jobs if name == job)
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def job_state(self, job):
        done = self.on("head", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T")
        return done.stdout.strip() or "GONE"

    def submit_training(self, python, launch, ranks, tasks_per_node=1):
        """A training job whose ranks all train when this returns. `launch`: the command in front of the program."""
        notes = self.folder / f"notes{len(self.jobs)}"
        notes.mkdir()
        body = f"""
export KINETO_USE_DAEMON=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 PYTHONUNBUFFERED=1
export MASTER_ADDR=$(hostname) MASTER_PORT=29500
{launch.format(python=python)} {SOURCE}/tests/cluster/training_job.py {notes}
"""
        job = self.submit(body, f"--nodes={len(NODES)}", f"--ntasks-per-node={tasks_per_node}")
        wait_until(lambda: len([path for path in notes.iterdir() if path.read_text().strip() not in ("", "0")]) == ranks,
                   f"job {job} trains on {ranks} ranks",
                   failed=lambda: self.job_state(job) not in ("PENDING", "CONFIGURING", "RUNNING") and self.job_output(job))
        return job

    def cancel(self, job):
        self.on("head", "scancel", job)
        wait_until(lambda: self.job_state(job) not in ("PENDING", "RUNNING", "COMPLETING"), f"job {job} ends")

    def wait_registered(self, nodes, ranks):
        """Waits until each of the nodes knows so many ranks: a daemon that has just started does not at once."""
        def known(node):
            answer = self.ask(node, "/api/v1/processes")
            processes = json.loads(answer)["processes"] if answer else []
            return sum(process["role"] == "trainer" and process["local_rank"] is not None for process in processes) == ranks

        for node in nodes:
            wait_until(lambda node=node: known(node), f"{ranks} ranks register on {node}")

    # --- what is tested

    def capture_command(self, *words):
        return self.command("head", LOCKSTEP, "capture", *words)

    def over_tls(self):
        return ["--token-file", self.token_file, "--ca", self.authority]

    def capture(self, *words, **options):
        return subprocess.run(self.capture_command(*words), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              cwd=self.folder, timeout=PATIENCE_S, **options)

    def begin_capture(self, *words):
        return subprocess.Popen(self.capture_command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True)


def trace_files(folder):
    return sorted(path for path in pathlib.Path(folder).rglob("*.json*") if not path.name.startswith("."))
