"""A lockstepd of its own for a test, and requests to it."""

import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import tempfile

from request import ask, connect  # noqa: F401
from waiting import PATIENCE_S, wait_until

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
DAEMON = pathlib.Path(os.environ.get("LOCKSTEP_BINARY", SOURCE / "build/release/bin/lockstep")).with_name("lockstepd")
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable  # every user's to run
OTHER_UID = 65534  # nobody


def ask_as(uid, where, method, path, body=None):
    """The same as another user, from a process of its own. Root only."""
    # As text: the other user need not be able to read this folder.
    program = pathlib.Path(__file__).with_name("request.py").read_text(encoding="utf-8")
    done = subprocess.run([PYTHON, "-c", program, str(where), method, path, json.dumps(body)], user=uid, group=uid,
                          extra_groups=[], cwd="/", capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return tuple(json.loads(done.stdout))


class Daemon:
    """Runs until the test's end. `path` is its Unix socket, `ports` its TCP ports. `wrapper`: a command that ends in another."""

    def __init__(self, test, *flags, port="0", folder=None, expect_start=True, environment=None, wrapper=()):
        if folder is None:
            scratch = tempfile.TemporaryDirectory(prefix="lkd-", dir="/tmp")
            test.addCleanup(scratch.cleanup)
            folder = pathlib.Path(scratch.name)
            folder.chmod(0o755)
        self.folder = folder
        self.path = folder / "s" / "lockstepd.sock"
        self.state = folder / "state"
        self.kineto_name = f"lockstep-test-{secrets.token_hex(4)}"
        self.lines = []
        command = [*wrapper, DAEMON, "--socket", self.path, "--state", self.state, "--output", folder / "output", "--port", port,
                   "--kineto-name", self.kineto_name, "--allow-unsafe", *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        if expect_start:
            line = self.wait_for_line("serves")
            self.ports = [int(port) for port in re.findall(r"https?://\S+:(\d+)", line)]
            if os.getuid() == 0:  # /run/lockstep is everybody's to enter, too
                os.chmod(self.path.parent, 0o755)

    def wait_for_line(self, word):
        """The next line of its log that holds the word."""
        while line := self.process.stderr.readline():
            self.lines.append(line)
            if word in line:
                return line
        raise AssertionError(f"ended without '{word}': {''.join(self.lines)}")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)

    def ask(self, method, path, body=None, **options):
        return ask(self.path, method, path, body, **options)


def register(test, daemon, count, period_s):
    """Starts processes that poll as PyTorch's do, and waits until the daemon knows them."""
    program = (SOURCE / "tests/dynolog/kineto_client.py").read_text(encoding="utf-8")
    program += "\nimport sys\nclient = KinetoClient(sys.argv[1], period_s=float(sys.argv[2]))\ntime.sleep(600)\n"
    for _ in range(count):
        process = subprocess.Popen([PYTHON, "-c", program, daemon.kineto_name, str(period_s)], stdin=subprocess.DEVNULL)
        test.addCleanup(process.wait)
        test.addCleanup(process.kill)
    wait_until(lambda: len(daemon.ask("GET", "/api/v1/processes")[2]["processes"]) >= count, "their registration")


def write_token(folder, name):
    """A token in a file of mode 0600; (token, the file's path)."""
    token = secrets.token_hex(32)
    path = folder / f"{name}.token"
    path.touch(mode=0o600)
    path.write_text(token + "\n")
    return token, path


def write_config(folder, text):
    path = folder / "lockstep.toml"
    path.write_text(text)
    path.chmod(0o644)
    return path
