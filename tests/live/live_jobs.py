"""Real jobs and daemons for the tests of `lockstep hang` and `lockstep watch` on what runs just now."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from waiting import PATIENCE_S

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOCKSTEP_BINARY", str(SOURCE / "build/release/bin/lockstep"))
DAEMON = str(pathlib.Path(BINARY).with_name("lockstepd"))
STAND_IN = pathlib.Path(__file__).with_name("stand_in_rank.py")
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable  # every user's to run
OTHER_UID = 65534  # nobody


def clean_environment(**variables):
    """This process's, without what would make its children ranks of something."""
    names = ("KINETO", "SLURM", "PBS", "OMPI", "PMI", "TORCHELASTIC", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCKSTEP_SOCKET")
    return {**{key: value for key, value in os.environ.items() if not key.startswith(names)}, **variables}


class LiveCase(unittest.TestCase):
    """Each test has a folder, and jobs of stand-in ranks: processes that have a rank's environment, step and wait. They
    are not PyTorch jobs; what is tested with them is how ranks are found, followed and named."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lklive-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.folder.chmod(0o755)
        self.job = f"live-{os.getpid()}-{self.folder.name}"

    def start_rank(self, rank, world_size=2, uid=None, arguments=(), job=None):
        options = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        # As text: another user need not be able to read this folder.
        program = STAND_IN.read_text(encoding="utf-8")
        process = subprocess.Popen(
            [PYTHON, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
            env=clean_environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size),
                                  TORCHELASTIC_RUN_ID=job or self.job), **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual("ready\n", process.stdout.readline())
        return process

    @staticmethod
    def tell(rank):
        """The line that it waits for."""
        rank.stdin.write("\n")
        rank.stdin.flush()

    def start_daemon(self, *flags):
        """(process, socket, ports)"""
        path = self.folder / "s" / "d.sock"
        daemon = subprocess.Popen(
            [DAEMON, "--socket", path, "--state", self.folder / "state", "--output", self.folder / "out", "--port", "0",
             "--kineto-name", f"lockstep-test-{self.folder.name}", *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(daemon.stderr.close)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        line = ""
        while "serves" not in line:
            line = daemon.stderr.readline()
            self.assertNotEqual("", line, "lockstepd did not start")
        if os.getuid() == 0:
            os.chmod(path.parent, 0o755)
        return daemon, path, line

    def hang(self, *arguments, status=(0, 3, 4), **variables):
        """(what `lockstep hang --json` found, where it is kept, what was said on standard error)"""
        kept = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        done = subprocess.run([BINARY, "hang", "--json", "--keep", kept, *map(str, arguments)], capture_output=True,
                              text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
                              env=clean_environment(LOCKSTEP_SOCKET=str(self.folder / "none.sock"), **variables))
        self.assertIn(done.returncode, status, done.stderr + done.stdout)
        data = json.loads(done.stdout)["data"] if done.stdout else None
        return data, kept, done.stderr

    def kept(self, folder):
        return json.loads((folder / "evidence.json").read_text(encoding="utf-8"))


class Watch:
    """A `lockstep watch --json` that runs; its events as they come."""

    def __init__(self, test, *arguments):
        self.process = subprocess.Popen(
            [BINARY, "watch", "--json", "--interval", "100ms", *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True, encoding="utf-8", env=clean_environment(LOCKSTEP_SOCKET="/nonexistent/s"))
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        self.events = []

    def next(self):
        """The next event, or None at the end."""
        line = self.process.stdout.readline()
        if not line:
            return None
        self.events.append(json.loads(line))
        return self.events[-1]

    def wait_for(self, name):
        while event := self.next():
            if event["event"] == name:
                return event
        raise AssertionError(f"no {name}: {self.events}")

    def end(self):
        """Reads to the end; (exit status, names of all events)."""
        while self.next():
            pass
        return self.process.wait(PATIENCE_S), [event["event"] for event in self.events]

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        return self.end()
