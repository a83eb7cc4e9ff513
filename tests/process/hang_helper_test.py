"""python/lockstep/_hang.py and `lockstep run --hang-dumps`: a Python process answers, and is what it would be without."""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

from lockstep_program import BINARY, SOURCE
from waiting import PATIENCE_S

HELPER = pathlib.Path(SOURCE) / "python" / "lockstep"


class HelperCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkhang-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.sockets = self.folder / "sockets"
        self.environment = {**os.environ, "LOCKSTEP_HANG_DIR": str(self.sockets), "PYTHONPATH": str(HELPER),
                            "LOCKSTEP_SOCKET": str(self.folder / "runtime" / "lockstepd.sock")}
        for name in ("RANK", "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
            self.environment.pop(name, None)

    def start(self, *command, **variables):
        process = subprocess.Popen(command, env={**self.environment, **variables}, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for action in (process.stdin.close, process.stdout.close, process.stderr.close, process.wait, process.kill):
            self.addCleanup(action)
        return process

    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", code], env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)

    def ask(self, pid, request=b"dump\n"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE_S)
            connection.connect(str(next(self.sockets.glob(f"hang-{pid}-*.sock"))))
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))


class HelperTest(HelperCase):
    def test_it_answers_while_the_main_thread_waits_in_c(self):
        process = self.start(sys.executable, "-c", "import _hang, sys\nassert _hang.enable_hang_dumps()\n"
                             "def waits():\n print('ready', flush=True)\n sys.stdin.buffer.raw.read(1)\nwaits()")
        self.assertEqual("ready\n", process.stdout.readline())
        waiting = f"\nT {process.pid} MainThread\nF 5 <string>\twaits\n".encode()
        while waiting not in (answer := self.ask(process.pid)):  # It has said so a line before it waits.
            self.assertIn(b"F 4 <string>\twaits\n", answer)
        self.assertTrue(answer.startswith(b"lockstep.hang/1\n"), answer)
        self.assertTrue(answer.endswith(b"end\n"), answer)
        self.assertIn(b"error unknown request\n", self.ask(process.pid, b"delete everything\n"))
        self.assertIn(b"MainThread", self.ask(process.pid), "it goes on after a request that it does not know")

    def test_the_socket_is_for_its_user_and_goes_with_the_process(self):
        done = self.run_python("import _hang, os\nassert _hang.enable_hang_dumps() and _hang.enable_hang_dumps()\n"
                               "print(oct(os.stat(os.environ['LOCKSTEP_HANG_DIR']).st_mode & 0o777),"
                               " len(os.listdir(os.environ['LOCKSTEP_HANG_DIR'])))")
        self.assertEqual(("0o700 1\n", 0), (done.stdout, done.returncode), done.stderr)
        self.assertEqual([], list(self.sockets.iterdir()))

    def test_a_folder_open_to_others_is_not_used(self):
        self.sockets.mkdir()
        self.sockets.chmod(0o755)
        done = self.run_python("import _hang\nprint(_hang.enable_hang_dumps())")
        self.assertEqual(("False\n", "", 0), (done.stdout, done.stderr, done.returncode))

    def test_sockets_of_the_dead_are_removed(self):
        process = self.start(sys.executable, "-c", "import _hang, time\n_hang.enable_hang_dumps()\nprint('ready', flush=True)\n"
                             "time.sleep(1000)")
        self.assertEqual("ready\n", process.stdout.readline())
        process.kill()
        process.wait()
        left, = self.sockets.iterdir()
        os.utime(left, (0, 0))
        self.assertEqual(0, self.run_python("import _hang\nassert _hang.enable_hang_dumps()").returncode)
        self.assertEqual([], list(self.sockets.iterdir()))

    def test_a_rank_that_is_slower_to_remove_one_answers_all_the_same(self):
        self.sockets.mkdir(mode=0o700)
        left = self.sockets / "hang-1234-0a1b2c3d.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(left))
        os.utime(left, (0, 0))
        done = self.run_python("import _hang, os\nunlink = os.unlink\nos.unlink = lambda path: (unlink(path), unlink(path))\n"
                               "assert _hang.enable_hang_dumps()")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertFalse(left.exists())

    def test_the_socket_of_a_rank_that_is_about_to_listen_stays(self):
        self.sockets.mkdir(mode=0o700)
        starting = self.sockets / "hang-1234-0a1b2c3d.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(starting))
            self.assertEqual(0, self.run_python("import _hang\nassert _hang.enable_hang_dumps()").returncode)
            self.assertEqual([starting], list(self.sockets.iterdir()))

    def test_a_forked_child_has_its_own(self):
        process = self.start(sys.executable, "-W", "ignore", "-c", "import _hang, os, time\n_hang.enable_hang_dumps()\n"
                             "child = os.fork()\nif child == 0:\n print('ready', os.getpid(), flush=True)\n time.sleep(1000)\n"
                             "import sys\nsys.stdin.read()\nos.kill(child, 9)\nos.waitpid(child, 0)")
        word, child = process.stdout.readline().split()
        self.assertEqual("ready", word)
        self.assertIn(f"\npid {child}\n".encode(), self.ask(child))
        self.assertIn(f"\npid {process.pid}\n".encode(), self.ask(process.pid))
        process.stdin.close()
        process.wait(PATIENCE_S)

    def test_the_process_ends_and_nothing_is_raised(self):
        done = self.run_python("import _hang\nprint(_hang.enable_hang_dumps(folder='/proc/nowhere'), _hang.enable_hang_dumps())")
        self.assertEqual(("False True\n", "", 0), (done.stdout, done.stderr, done.returncode))

    def test_the_recorder_gets_a_buffer_unless_it_has_one(self):
        self.assertEqual("2000\n", self.run_python("import _hang, os\n_hang.enable_hang_dumps()\n"
                                                   "print(os.environ['TORCH_FR_BUFFER_SIZE'])").stdout)
        self.environment["TORCH_FR_BUFFER_SIZE"] = "5"
        self.assertEqual("5\n", self.run_python("import _hang, os\n_hang.enable_hang_dumps()\n"
                                                "print(os.environ['TORCH_FR_BUFFER_SIZE'])").stdout)


class RunTest(HelperCase):
    """Jobs that know nothing of it."""

    def start_run(self, code, **variables):
        return self.start(BINARY, "run", "--quiet", "--hang-dumps", "--", sys.executable, "-c", code, **variables)

    def test_a_rank_answers_without_a_change_to_it(self):
        process = self.start_run("import os, sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()", RANK="0")
        pid = process.stdout.readline().strip()
        self.assertIn(b"MainThread", self.ask(pid))

    def test_what_has_no_rank_is_left_alone(self):
        process = self.start_run("import threading\nprint(threading.active_count(), flush=True)")
        self.assertEqual("1\n", process.stdout.readline())
        self.assertFalse(self.sockets.exists())

    def test_the_sitecustomize_that_it_hides_is_run_and_paths_stay(self):
        own = self.folder / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("import os\nos.environ['HIDDEN'] = 'was run'\n", encoding="utf-8")
        (own / "mine.py").write_text("value = 7\n", encoding="utf-8")
        process = self.start_run("import os, sys, mine, sitecustomize\n"
                                 "print(os.environ['HIDDEN'], mine.value, sitecustomize.__file__, flush=True)",
                                 PYTHONPATH=str(own), RANK="1")
        self.assertEqual(f"was run 7 {own / 'sitecustomize.py'}\n", process.stdout.readline())


if __name__ == "__main__":
    unittest.main()
