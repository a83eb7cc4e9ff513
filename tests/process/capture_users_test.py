"""Two jobs of two users on one node, real ones: each user captures the own job and no other, root sees and captures both."""

import json
import os
import pathlib
import subprocess
import unittest

from capture_jobs import Node, end
from lockstep_program import BINARY, FAILED
from own_network import own_network
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

OTHER_UID = 65534
RANKS = 2
ASK = """
import http.client, socket, sys
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request("GET", "/api/v1/processes")
print(connection.getresponse().read().decode())
"""
AS_OTHER = ["setpriv", "--reuid", str(OTHER_UID), "--regid", str(OTHER_UID), "--clear-groups"]


class CaptureUsersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("two users need root to make the second")
        python = python_with_torch()
        script = pathlib.Path(__file__).with_name("steady_job.py")
        their_python, variables, why = cls.interpreter_of_theirs(python, script)
        if their_python is None:
            raise unittest.SkipTest(f"the second user may not read PyTorch or these tests: {why}")
        own_network()
        cls.node = Node()
        cls.addClassCleanup(cls.node.close)
        cls.node.folder.chmod(0o755)  # the socket is in it, and the base configuration
        cls.home = cls.node.folder / "home"
        cls.home.mkdir()
        os.chown(cls.home, OTHER_UID, OTHER_UID)
        cls.mine = cls.node.job(python, "alpha", RANKS)
        cls.theirs = cls.start_theirs(their_python, variables, script)
        wait_until(lambda: len(cls.processes()) >= 2 * RANKS, "both jobs to register")

    @staticmethod
    def interpreter_of_theirs(python, script):
        """(path, variables, None) of a Python with PyTorch that the second user may start; the first's own interpreter may
        lie in a folder that is closed to others, its packages need not. (None, {}, why) without."""
        packages = subprocess.run([python, "-c", "import torch; print(torch.__path__[0])"], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=True).stdout.strip()
        why = ""
        for path, variables in ((python, {}), ("/usr/bin/python3", {"PYTHONPATH": str(pathlib.Path(packages).parent)})):
            # A launcher starts its own interpreter by name.
            check = f"import subprocess, sys, torch; open({str(script)!r}); subprocess.check_call([{path!r}, '-c', ''])"
            tried = subprocess.run([*AS_OTHER, path, "-W", "ignore", "-c", check], capture_output=True, text=True, cwd="/",
                                   stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], **variables}, check=False)
            if tried.returncode == 0:
                return path, variables, None
            why = tried.stderr.strip()[-200:]
        return None, {}, why

    @classmethod
    def start_theirs(cls, python, variables, script):
        ready = cls.home / "ready"
        ready.mkdir()
        os.chown(ready, OTHER_UID, OTHER_UID)
        environment = {"PATH": os.environ["PATH"], "HOME": str(cls.home), "KINETO_USE_DAEMON": "1", "KINETO_LOG_LEVEL": "5",
                       "KINETO_CONFIG": str(cls.node.kineto_config), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                       "PYTHONWARNINGS": "ignore", **variables}
        log = cls.node.folder / "beta.log"
        with open(log, "wb") as said:
            launcher = subprocess.Popen(
                [*AS_OTHER, python, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(RANKS), "--rdzv-id",
                 "beta", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", script,
                 ready], env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=cls.home)
        cls.addClassCleanup(end, launcher)
        try:
            wait_until(lambda: len(list(ready.iterdir())) == RANKS, "the second user's job to train", launcher)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}") from error
        return {int(path.name): int(path.read_text(encoding="ascii")) for path in ready.iterdir()}

    @classmethod
    def processes(cls, *prefix):
        """What the daemon shows of trainers, to root or to whom `prefix` makes of it."""
        done = subprocess.run([*prefix, "/usr/bin/python3", "-c", ASK, cls.node.socket], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, cwd="/", check=True)
        return [process for process in json.loads(done.stdout)["processes"] if process["role"] == "trainer"]

    def capture_as_other(self, folder, *arguments):
        return subprocess.run([*AS_OTHER, BINARY, "capture", "--socket", self.node.socket, "-o", folder, "--json",
                               *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
                              cwd=self.home, env={"PATH": os.environ["PATH"], "HOME": str(self.home)}, check=False)

    def test_the_daemon_tells_the_users_and_their_jobs_apart(self):
        users = {process["pid"]: (process["uid"], process["job_id"]) for process in self.processes()}
        for pid in self.mine.pids.values():
            self.assertEqual((0, "alpha"), users[pid])
        for pid in self.theirs.values():
            self.assertEqual((OTHER_UID, "beta"), users[pid])

    def test_a_user_captures_the_own_job_without_naming_it(self):
        folder = self.home / "traces"
        done = self.capture_as_other(folder, "--start-in", "now", "--duration", "200ms")
        self.assertEqual(0, done.returncode, done.stderr + self.node.daemon_log())
        capture = json.loads(done.stdout)["data"]["captures"][0]
        self.assertEqual(sorted(self.theirs.values()), sorted(process["pid"] for process in capture["processes"]))
        for process in capture["processes"]:
            self.assertEqual("done", process["state"], process)
            self.assertEqual(OTHER_UID, (folder / process["file"]).stat().st_uid)

    def test_another_users_job_is_refused(self):
        folder = self.home / "stolen"
        for arguments in (["--job", "alpha"], ["--pid", self.mine.pids[0]]):
            done = self.capture_as_other(folder, "--duration", "200ms", *arguments)
            self.assertEqual(FAILED, done.returncode, done.stdout)
            self.assertIn("may not trace", done.stderr)
            self.assertFalse(folder.exists() and list(folder.iterdir()))

    def test_another_users_command_lines_are_not_shown(self):
        shown = {process["pid"]: process["command"] for process in self.processes(*AS_OTHER)}
        for pid in self.mine.pids.values():
            self.assertFalse(shown.get(pid), shown)

    def test_root_captures_either(self):
        for job, pids in (("alpha", self.mine.pids), ("beta", self.theirs)):
            capture = self.node.capture_json("-o", self.node.folder / f"of-{job}", "--start-in", "now", "--duration", "200ms", "--job",
                                             job)["data"]["captures"][0]
            self.assertEqual(sorted(pids.values()), sorted(process["pid"] for process in capture["processes"]))
            self.assertEqual({"done"}, {process["state"] for process in capture["processes"]})


if __name__ == "__main__":
    unittest.main()
