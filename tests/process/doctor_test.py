"""`lockstep doctor` in a network namespace of the test's own, so that Kineto's machine-wide name is the test's."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import jsonschema

from lockstep_program import BINARY, FINDING, SOURCE
from own_network import CLONE_NEWNET, own_network
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

SCHEMA = json.loads((SOURCE / "docs/schema/doctor-1.schema.json").read_text(encoding="utf-8"))
# Maps a file named as PyTorch's library, says so, and stays.
STAND_IN = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    library = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print("ready", flush=True)
sys.stdin.read()
"""


setUpModule = own_network


class DoctorCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkdoc-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("KINETO_")}
        self.environment["LOCKSTEP_SOCKET"] = str(self.folder / "none.sock")

    def doctor(self, output=None, status=FINDING, **variables):
        done = subprocess.run([BINARY, "doctor", "--json", "-o", output or self.folder], capture_output=True, text=True,
                              env={**self.environment, **variables}, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        checks = report["data"]["checks"]
        self.assertEqual(report["data"]["problem_count"], sum(check["status"] == "problem" for check in checks))
        return checks

    def one(self, checks, identity, subject=None):
        found = [check for check in checks if check["id"] == identity and subject in (None, check["subject"])]
        self.assertEqual(1, len(found), checks)
        return found[0]

    def start(self, arguments, **variables):
        process = subprocess.Popen(list(map(str, arguments)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**self.environment, **variables}, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        self.assertEqual("ready\n", process.stdout.readline())
        return process

    def stand_in(self, version, **variables):
        """A Python process that has, by its maps, this version of PyTorch. For versions that are not at hand."""
        library = self.folder / version / "torch" / "lib" / "libtorch_cpu.so"
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_bytes(b"\0" * 4096)
        (library.parent.parent / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
        return self.start([sys.executable, "-c", STAND_IN, library], **variables)


class NodeTest(DoctorCase):
    def test_a_bare_node_has_no_daemon_and_nobody_at_the_socket(self):
        checks = self.doctor()
        for identity in ("daemon", "kineto_socket"):
            check = self.one(checks, identity)
            self.assertEqual("problem", check["status"])
            self.assertIn("lockstep run --with-daemon", check["advice"])

    def test_text_says_the_same(self):
        done = subprocess.run([BINARY, "doctor"], capture_output=True, text=True, env=self.environment, check=False)
        self.assertEqual(FINDING, done.returncode)
        self.assertRegex(done.stdout, r"(?m)^problem  daemon: no lockstepd answers")
        self.assertRegex(done.stdout, r"\n\n\d+ problems?, \d+ warnings?\n$")

    def test_who_has_the_socket_is_named(self):
        program = self.folder / "dynolog"
        program.symlink_to(sys.executable)
        code = ("import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.bind('\\0dynolog\\0')\n"
                "print('ready', flush=True)\nsys.stdin.read()")
        process = self.start([program, "-c", code])
        check = self.one(self.doctor(), "kineto_socket")
        self.assertEqual("problem", check["status"])
        self.assertIn(f"process {process.pid} (dynolog) of user ", check["finding"])
        self.assertIn("--dynolog", check["advice"])

    def test_a_name_that_only_looks_like_it_is_not_it(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind("\0dynolog")
            self.assertIn("no process serves it", self.one(self.doctor(), "kineto_socket")["finding"])

    def test_a_base_configuration(self):
        config = self.folder / "kineto.conf"
        for text, status, word in (("", "warning", "is empty"), ("# mine\n", "ok", "each 5 s"),
                                   ("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS = 2\n", "ok", "each 2 s")):
            config.write_text(text, encoding="utf-8")
            check = self.one(self.doctor(KINETO_CONFIG=str(config)), "base_config", str(config))
            self.assertEqual(status, check["status"])
            self.assertIn(word, check["finding"])
        config.unlink()
        self.assertEqual("warning", self.one(self.doctor(KINETO_CONFIG=str(config)), "base_config")["status"])

    def test_socket_folders(self):
        folder = self.folder / "kineto"
        long = f"{self.folder}/{'x' * 60}"
        for path, mode, word in ((folder, None, "No such file"), (long, None, "characters"), (folder, 0o777, "mode 0777"),
                                 (folder, 0o1777, "no daemon serves it")):
            if mode is not None:
                folder.mkdir(exist_ok=True)
                folder.chmod(mode)
            check = self.one(self.doctor(KINETO_IPC_SOCKET_DIR=str(path)), "socket_folder", str(path))
            self.assertNotEqual("ok", check["status"])
            self.assertIn(word, check["finding"])
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(f"{folder}/dynolog")
            self.assertIn(f"process {os.getpid()}", self.one(self.doctor(KINETO_IPC_SOCKET_DIR=str(folder)), "socket_folder",
                                                             str(folder))["finding"])

    def test_an_output_folder_that_is_not_there_is_a_problem(self):
        checks = self.doctor(self.folder / "none")
        self.assertEqual("problem", self.one(checks, "space", str(self.folder / "none"))["status"])


class ProcessTest(DoctorCase):
    def reason(self, process, **variables):
        check = self.one(self.doctor(**variables), "process", str(process.pid))
        self.assertEqual("problem", check["status"])
        return check["finding"]

    def test_the_reason_is_that_of_the_version(self):
        use = {"KINETO_USE_DAEMON": "1"}
        for version, variables, word in (("2.2.1+cpu", use, "CPU builds of PyTorch 2.0 to 2.2 never register"),
                                         ("2.4.0", use, "static initialiser"),
                                         ("2.3.1", {**use, "KINETO_DAEMON_INIT_DELAY_S": "5"}, "INIT_DELAY_S"),
                                         ("1.13.1", use, "PyTorch 1.13.1"),
                                         ("2.9.1", {}, "was started without KINETO_USE_DAEMON=1"),
                                         ("2.9.1", use, "still starting")):
            with self.subTest(version=version, variables=variables):
                self.assertIn(word, self.reason(self.stand_in(version, **variables)))

    def test_the_reason_is_that_of_its_socket_folder(self):
        missing = str(self.folder / "missing")
        process = self.stand_in("2.9.1", KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR=missing)
        self.assertIn(f"{missing}, is not there", self.reason(process))
        os.mkdir(missing)
        self.assertIn("not there, or closed to it, when it started", self.reason(process))
        process = self.stand_in("2.9.1", KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR=f"/tmp/{'x' * 60}")
        self.assertIn("characters", self.reason(process))

    def test_the_reason_is_another_network(self):
        library = self.folder / "torch" / "lib" / "libtorch_cpu.so"
        library.parent.mkdir(parents=True)
        library.write_bytes(b"\0" * 4096)
        (library.parent.parent / "version.py").write_text("__version__ = '2.9.1'\n", encoding="utf-8")
        code = f"import ctypes; assert ctypes.CDLL(None).unshare({CLONE_NEWNET}) == 0\n" + STAND_IN
        process = self.start([sys.executable, "-c", code, library], KINETO_USE_DAEMON="1")
        self.assertIn("another network namespace", self.reason(process))

    def test_lockstepd_itself_is_no_process_with_pytorch_while_it_reads_ones_symbols(self):
        program = self.folder / "lockstepd"  # Made up: Python under that name.
        shutil.copy(os.path.realpath(sys.executable), program)
        library = self.folder / "torch" / "lib" / "libtorch_cpu.so"
        library.parent.mkdir(parents=True)
        library.write_bytes(b"\0" * 4096)
        process = self.start([program, "-c", STAND_IN, library], PYTHONHOME=sys.base_prefix)
        self.assertNotIn(str(process.pid), [check["subject"] for check in self.doctor()])

    def test_a_forked_worker_is_left_out(self):
        code = STAND_IN.replace('print("ready"', 'import os\nchild = os.fork()\nif child == 0:\n    sys.stdin.read()\n    '
                                'os._exit(0)\nprint("ready"')
        library = self.folder / "torch" / "lib" / "libtorch_cpu.so"
        library.parent.mkdir(parents=True)
        library.write_bytes(b"\0" * 4096)
        process = self.start([sys.executable, "-c", code, library])
        (child,) = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        checks = self.doctor()
        self.one(checks, "process", str(process.pid))
        self.assertNotIn(child, [check["subject"] for check in checks])

    def test_real_pytorch(self):
        python = python_with_torch()
        code = "import sys, torch, torch.profiler; print('ready', flush=True); sys.stdin.read()"
        version = subprocess.run([python, "-W", "ignore", "-c", "import torch; print(torch.__version__)"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        without = self.start([python, "-W", "ignore", "-c", code])
        with_it = self.start([python, "-W", "ignore", "-c", code], KINETO_USE_DAEMON="1", KINETO_LOG_LEVEL="5")
        self.assertIn("was started without KINETO_USE_DAEMON=1", self.reason(without))
        finding = ""

        def is_up():
            nonlocal finding
            finding = self.reason(with_it)
            return "still starting" not in finding
        wait_until(is_up, lambda: finding)
        self.assertIn("would register, but no daemon answers", finding)
        self.assertIn(f"PyTorch {version}", finding)


if __name__ == "__main__":
    unittest.main()
