"""`lockstep status` against real daemons: over sockets, ports, TLS and tunnels, and with nodes that do not answer."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
BINARY = os.environ["LOCKSTEP_BINARY"]
sys.path.insert(0, str(SOURCE / "tests" / "daemon"))
from daemon_process import PYTHON, Daemon, write_config, write_token  # noqa: E402
from waiting import PATIENCE_S, wait_until  # noqa: E402

CLIENT = (SOURCE / "tests/dynolog/kineto_client.py").read_text(encoding="utf-8") + """
import sys
client = KinetoClient(sys.argv[1])
time.sleep(600)
"""
DONE, FAILED, MISUSED, PARTIAL = 0, 1, 2, 4
JOB = f"4711{os.getpid()}"  # As SLURM counts; other tests' daemons see its ranks, too.


def status(*words, **named):
    clean = {name: value for name, value in os.environ.items() if name not in ("LOCKSTEP_SOCKET", "http_proxy")}
    return subprocess.run([BINARY, "status", *map(str, words)], capture_output=True, text=True, encoding="utf-8", env=clean,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False, **named)


class StatusTest(unittest.TestCase):
    def data(self, *words, code=DONE):
        done = status("--json", *words)
        self.assertEqual(code, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        if jsonschema:
            jsonschema.validate(document, json.loads((SOURCE / "docs/schema/status-1.schema.json").read_text(encoding="utf-8")))
        self.assertEqual(code != DONE, document["partial"])
        return document["data"]

    def start_rank(self, daemon, rank, job=JOB):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 3, "SLURM_JOB_ID": job, "SLURM_PROCID": rank,
                     "SLURM_NTASKS": 3, "SLURM_LOCALID": rank}
        process = subprocess.Popen([PYTHON, "-c", CLIENT, daemon.kineto_name], cwd="/", stdin=subprocess.DEVNULL,
                                   env={**os.environ, **{name: str(value) for name, value in variables.items()}})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def is_known():
            known = daemon.ask("GET", "/api/v1/processes")[2]["processes"]
            return any(entry["pid"] == process.pid and entry["rank"] is not None for entry in known)
        wait_until(is_known, "its registration", process)
        return process.pid

    def test_jobs_and_ranks_are_shown(self):
        daemon = Daemon(self)
        done = status("--socket", daemon.path)
        self.assertEqual((DONE, ""), (done.returncode, done.stderr))
        self.assertIn("No process has registered", done.stdout)
        pids = [self.start_rank(daemon, rank) for rank in (0, 2)]
        done = status("--socket", daemon.path)
        self.assertEqual((DONE, ""), (done.returncode, done.stderr))
        self.assertIn(f"Job {JOB} (slurm)", done.stdout)
        self.assertIn("2 of 3 ranks", done.stdout)
        self.assertIn("not registered: rank 1", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("\x1b[", status("--socket", daemon.path, "--color", "always").stdout)
        for pid in pids:
            self.assertIn(str(pid), done.stdout)
        data = self.data("--socket", daemon.path)
        self.assertEqual([1], data["jobs"][0]["missing_ranks"])
        self.assertEqual(sorted(pids), sorted(process["pid"] for process in data["nodes"][0]["processes"]))
        self.assertLess(abs(data["nodes"][0]["clock_offset_ns"]), 1_000_000_000)
        self.assertEqual([], self.data("--socket", daemon.path, "--job", JOB + "0")["jobs"])
        self.assertEqual(2, self.data("--socket", daemon.path, "--job", JOB)["jobs"][0]["process_count"])

    def test_captures_are_shown(self):
        daemon = Daemon(self)
        pid = self.start_rank(daemon, 0)
        in_an_hour = {"start_unix_ns": (time.time_ns() // 10**9 + 3600) * 10**9}  # It runs for as long as anybody looks.
        code, _, capture = daemon.ask("POST", "/api/v1/captures", {"selector": {"pids": [pid]}, "group": "evening", "window": in_an_hour})
        self.assertEqual(201, code, capture)
        self.assertRegex(status("--socket", daemon.path).stdout, r"evening +running +0/1")
        daemon.ask("DELETE", f"/api/v1/captures/{capture['id']}")
        self.assertRegex(status("--socket", daemon.path).stdout, r"evening +cancelled +0/1")

    def test_nodes_that_do_not_answer_are_named_and_do_not_hold_up_the_rest(self):
        daemon = Daemon(self)
        silent, gone = socket.create_server(("127.0.0.1", 0)), socket.socket()
        self.addCleanup(silent.close)
        self.addCleanup(gone.close)
        gone.bind(("127.0.0.2", 0))  # Nobody listens, and nobody else gets it.
        gone_port = gone.getsockname()[1]
        hosts = f"127.0.0.1:{daemon.ports[0]},127.0.0.2:{gone_port},localhost:{silent.getsockname()[1]}"
        done = status("--host", hosts, "--timeout", "10s", "--width", 200)
        self.assertEqual(PARTIAL, done.returncode, done.stderr)
        self.assertIn("1 node answered, 2 did not", done.stdout)
        self.assertIn(f"no lockstepd answers at 127.0.0.2:{gone_port} (Connection refused)", done.stdout)
        self.assertRegex(done.stdout, r"localhost: localhost:\d+ did not answer within (10|9\.\d) s")  # What was left of the ten when it was asked.
        data = self.data("--host", hosts, "--timeout", "10s", code=PARTIAL)
        self.assertEqual([False, True, True], [node["problem"] is not None for node in data["nodes"]])
        self.assertEqual([True, False, False], [node["status"] is not None for node in data["nodes"]])
        none = f"127.0.0.2:{gone_port},127.0.0.3:{gone_port}"
        self.assertEqual(FAILED, status("--host", none).returncode)
        self.data("--host", none, code=FAILED)
        done = status("--host", f"127.0.0.2:{gone_port}")
        self.assertEqual((FAILED, ""), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r"\Alockstep: no lockstepd answers at .*\n\Z")

    def test_commands_carry_the_connection(self):
        daemon = Daemon(self)
        node = daemon.folder / "as-node"
        node.write_text('#!/bin/sh\n[ "$1" = down ] && { echo "ssh: connect to host down: No route to host" >&2; exit 255; }\nshift\nexec sh -c "$*"\n')
        node.chmod(0o755)
        words = ("--host", "a,b,down", "--via", f"{node} {{host}}", "--socket", daemon.path)
        data = self.data(*words, code=PARTIAL)
        self.assertEqual([True, True, False], [entry["status"] is not None for entry in data["nodes"]])
        self.assertIn("No route to host", data["nodes"][2]["problem"])
        no_daemon = status("--host", "a", "--via", f"{node} {{host}}", "--socket", daemon.folder / "none.sock")
        self.assertEqual(FAILED, no_daemon.returncode)
        self.assertIn("no lockstepd answers at", no_daemon.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_tls_tokens_and_certificates_are_spoken(self):
        scratch = tempfile.TemporaryDirectory(prefix="lks-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)

        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        for authority in ("ca", "other"):
            openssl("req", "-x509", *key, "-days", "2", "-subj", f"/CN={authority}", "-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        for name, extension in (("server", "subjectAltName=IP:127.0.0.1"), ("ops", "basicConstraints=CA:FALSE")):
            openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            (folder / "extension").write_text(extension)
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                    "-extfile", "extension", "-out", f"{name}.pem")
        _, token = write_token(folder, "reader")
        config = write_config(folder, f'''[tls]
certificate = "{folder}/server.pem"
key = "{folder}/server.key"
client_authority = "{folder}/ca.pem"
[[token]]
name = "reader"
role = "read"
file = "{token}"
[[certificate]]
name = "ops"
role = "admin"
''')
        daemon = Daemon(self, "--config", config, folder=folder)
        where = ("--host", f"127.0.0.1:{daemon.ports[0]}")
        self.data(*where, "--ca", folder / "ca.pem", "--token-file", token)
        self.data(*where, "--ca", folder / "ca.pem", "--cert", folder / "ops.pem", "--key", folder / "ops.key")

        def refusal(*words):
            done = status(*where, *words)
            self.assertEqual((FAILED, ""), (done.returncode, done.stdout), done.stderr)
            self.assertEqual(1, done.stderr.count("\n"))
            return done.stderr

        self.assertIn(f"by the CAs of {folder}/other.pem", refusal("--ca", folder / "other.pem", "--token-file", token))
        self.assertIn("by the CAs of this system (--ca names others)", refusal("--tls", "--token-file", token))
        self.assertIn(f"{folder}/none.pem", refusal("--ca", folder / "none.pem", "--token-file", token))
        self.assertIn(f"{folder}/none.pem", refusal("--ca", folder / "ca.pem", "--cert", folder / "none.pem"))
        _, wrong = write_token(folder, "wrong")
        refusal("--ca", folder / "ca.pem", "--token-file", wrong)
        token.chmod(0o644)
        self.assertIn("chmod 600", refusal("--ca", folder / "ca.pem", "--token-file", token))

    def test_misuse_is_told(self):
        for words in (("--via", "ssh"), ("--host", "a", "--hostfile", "b"), ("--timeout", "0s"), ("--timeout", "soon"), ("surplus",)):
            self.assertEqual(MISUSED, status(*words).returncode, words)


if __name__ == "__main__":
    unittest.main()
