"""`lockstep run -- CMD`: CMD is what it would be without, but for the environment. Real processes, signals and terminals."""

import json
import os
import pathlib
import pty
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from lockstep_program import BINARY, FAILED, MISUSED
from own_network import own_network
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

DAEMON = pathlib.Path(BINARY).with_name("lockstepd")


class RunCase(unittest.TestCase):
    def setUp(self):
        # Short: Unix sockets' paths are.
        scratch = tempfile.TemporaryDirectory(prefix="lkrun-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.runtime = self.folder / "runtime"
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("KINETO_")}
        self.environment["LOCKSTEP_SOCKET"] = str(self.runtime / "lockstepd.sock")

    def run_lockstep(self, *arguments, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([BINARY, "run", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**self.environment, **options.pop("variables", {})}, check=False, **options)

    def start(self, *arguments, **options):
        process = subprocess.Popen([BINARY, "run", *map(str, arguments)], env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def gone(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True


class DaemonCase(RunCase):
    """With a real lockstepd. Kineto's name is machine-wide, so this runs in a network namespace of its own."""

    @classmethod
    def setUpClass(cls):
        if not DAEMON.is_file():
            raise unittest.SkipTest("lockstepd is not built")
        own_network()

    def setUp(self):
        super().setUp()
        self.addCleanup(wait_until, lambda: not self.daemons(), "the daemon's end")

    def daemons(self):
        """Of this test's folder."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            if words[0] == "lockstepd" and str(self.runtime / "lockstepd.toml") in words and not self.gone(path.parent.name):
                found.append(int(path.parent.name))
        return found


class DaemonTest(DaemonCase):
    def test_a_daemon_is_there_before_the_command_and_ends_after_it(self):
        done = self.run_lockstep("--with-daemon", "--", BINARY, "doctor", "--json")
        checks = {check["id"]: check for check in json.loads(done.stdout)["data"]["checks"] if check["id"] != "process"}
        self.assertEqual("ok", checks["daemon"]["status"], done.stdout)
        self.assertEqual("ok", checks["kineto_socket"]["status"], done.stdout)
        self.assertRegex(done.stderr, r"lockstep capture --pid \d+ \(started a daemon, process \d+\)")
        wait_until(lambda: not self.daemons(), "the daemon's end")

    def test_runs_that_start_at_once_share_one_daemon(self):
        processes = [self.start("--with-daemon", "--", "sh", "-c", "echo up; read line", stdin=subprocess.PIPE)
                     for _ in range(8)]
        for process in processes:
            self.assertEqual("up\n", process.stdout.readline())
        (daemon,) = self.daemons()
        for process in processes[:-1]:
            process.stdin.close()
            self.assertEqual(1, process.wait(PATIENCE_S))  # read: end of file.
        said = "".join(process.stderr.read() for process in processes[:-1])
        time.sleep(3)  # Longer than a daemon stays that nobody needs.
        self.assertEqual([daemon], self.daemons())
        processes[-1].stdin.close()
        processes[-1].wait(PATIENCE_S)
        said += processes[-1].stderr.read()
        self.assertEqual(1, said.count("started a daemon"), said)
        wait_until(lambda: not self.daemons(), "the daemon's end")

    def test_a_run_that_is_killed_takes_its_daemon_along(self):
        process = self.start("--with-daemon", "--", "sh", "-c", "echo up; exec sleep 600")
        process.stdout.readline()
        process.kill()
        process.wait(PATIENCE_S)
        wait_until(lambda: not self.daemons(), "the daemon's end")

    def test_the_terminals_signals_do_not_reach_the_daemon(self):
        # Written at once: it may come twice, from here and passed on.
        code = "import os, signal, sys; signal.signal(signal.SIGINT, lambda *_: os.write(1, b'int\\n')); print('up', flush=True); sys.stdin.read()"
        process = self.start("--with-daemon", "--", sys.executable, "-c", code, stdin=subprocess.PIPE, start_new_session=True)
        process.stdout.readline()
        before = self.daemons()
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual("int\n", process.stdout.readline())
        self.assertEqual(before, self.daemons())
        process.stdin.close()

    def test_where_the_name_is_taken_the_daemon_gets_a_folder(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind("\0dynolog\0")
            done = self.run_lockstep("--with-daemon", "--", "sh", "-c", "echo $KINETO_IPC_SOCKET_DIR; ls $KINETO_IPC_SOCKET_DIR")
        self.assertEqual((0, f"{self.runtime}/kineto\ndynolog\n"), (done.returncode, done.stdout), done.stderr)
        self.assertIn(f"is used by process {os.getpid()} ", done.stderr)

    def test_a_socket_folder_is_served(self):
        folder = self.folder / "kineto"
        done = self.run_lockstep("--with-daemon", "--socket-dir", folder, "--", "sh", "-c", "ls $KINETO_IPC_SOCKET_DIR")
        self.assertEqual((0, "dynolog\n"), (done.returncode, done.stdout), done.stderr)
        self.assertNotIn("has no socket", done.stderr)

    def test_without_a_daemon_the_command_runs_unless_one_is_required(self):
        self.runtime.mkdir(mode=0o700)
        (self.runtime / "lockstepd.sock").mkdir()  # Where the daemon's socket should go.
        done = self.run_lockstep("--with-daemon", "--", "echo", "runs")
        self.assertEqual((0, "runs\n"), (done.returncode, done.stdout), done.stderr)
        self.assertIn("runs without a daemon", done.stderr)
        done = self.run_lockstep("--with-daemon", "--require-daemon", "--", "echo", "runs")
        self.assertEqual((FAILED, ""), (done.returncode, done.stdout), done.stderr)
        done = self.run_lockstep("--require-daemon", "--", "echo", "runs")
        self.assertEqual((FAILED, ""), (done.returncode, done.stdout), done.stderr)

    def test_a_launcher_for_other_nodes_is_answered_with_advice(self):
        srun = self.folder / "srun"
        srun.write_text("#!/bin/sh\necho started\n", encoding="utf-8")
        srun.chmod(0o755)
        done = self.run_lockstep("--with-daemon", "--", srun, "python", "train.py")
        self.assertEqual((0, "started\n"), (done.returncode, done.stdout))
        self.assertIn("srun ... lockstep run --with-daemon -- CMD", done.stderr)

    def test_one_rank_says_how_to_capture(self):
        said = [self.run_lockstep("--with-daemon", "--", "true", variables={"SLURM_PROCID": rank, "SLURM_STEP_ID": "0"}).stderr
                for rank in ("0", "1")]
        self.assertIn("lockstep capture", said[0])
        self.assertEqual("", said[1])

    def test_real_pytorch_registers_with_it(self):
        python = python_with_torch()
        process = self.start("--with-daemon", "--", python, "-W", "ignore", "-c",
                             "import os, sys, torch, torch.profiler; print(os.getpid(), flush=True); sys.stdin.read()",
                             stdin=subprocess.PIPE)
        pid = process.stdout.readline().strip()
        states = {}

        def registered():
            report = subprocess.run([BINARY, "doctor", "--json"], capture_output=True, text=True, env=self.environment,
                                    check=False)
            checks = json.loads(report.stdout)["data"]["checks"]
            states.update({check["subject"]: check for check in checks if check["id"] == "process"})
            return states[pid]["status"] == "ok"

        wait_until(registered, "the registration")
        self.assertRegex(states[pid]["finding"], r"^registered \(.*, PyTorch 2\.")
        process.stdin.close()
        self.assertEqual(0, process.wait(PATIENCE_S), process.stderr.read())


class EnvironmentTest(DaemonCase):
    def variables(self, *flags, **variables):
        done = self.run_lockstep(*(flags or ("--with-daemon",)), "--", sys.executable, "-c",
                                 "import os\nfor k, v in os.environ.items():\n if k.startswith('KINETO'): print(k, v)",
                                 variables=variables)
        self.assertEqual(0, done.returncode, done.stderr)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines()), done.stderr

    def test_kineto_finds_a_daemon_and_a_base_configuration(self):
        variables, _ = self.variables("--with-daemon", "--interval", "2s")
        self.assertEqual("1", variables["KINETO_USE_DAEMON"])
        self.assertNotIn("KINETO_IPC_SOCKET_DIR", variables)
        if "KINETO_CONFIG" not in variables:
            self.assertGreater(os.stat("/etc/libkineto.conf").st_size, 0)
            return
        path = pathlib.Path(variables["KINETO_CONFIG"])
        self.assertEqual(self.runtime, path.parent)
        self.assertIn("\nON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=2\n", path.read_text(encoding="utf-8"))
        self.assertEqual(0o700, stat.S_IMODE(self.runtime.stat().st_mode))

    def test_without_a_daemon_kineto_is_left_alone(self):
        """It would wait for one at the end of each process."""
        variables, said = self.variables("--interval", "2s")
        self.assertEqual({}, variables)
        self.assertIn("no lockstepd answers on this node", said)
        variables, _ = self.variables("--interval", "2s", KINETO_USE_DAEMON="1")
        self.assertEqual({"KINETO_USE_DAEMON": "1"}, variables)

    def test_the_users_own_configuration_is_kept(self):
        own = self.folder / "own.conf"
        own.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS = 3 # often enough\n", encoding="utf-8")
        variables, said = self.variables(KINETO_CONFIG=str(own))
        self.assertEqual(str(own), variables["KINETO_CONFIG"])
        self.assertNotIn("ON_DEMAND", said)
        own.write_text("# mine\n", encoding="utf-8")
        variables, said = self.variables(KINETO_CONFIG=str(own))
        self.assertEqual(str(own), variables["KINETO_CONFIG"])
        self.assertIn("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1", said)

    def test_an_empty_or_missing_configuration_is_replaced_and_that_is_said(self):
        empty = self.folder / "empty.conf"
        empty.touch()
        for path, word in ((empty, "is empty"), (self.folder / "none", "cannot be read")):
            variables, said = self.variables(KINETO_CONFIG=str(path))
            self.assertEqual(self.runtime, pathlib.Path(variables["KINETO_CONFIG"]).parent)
            self.assertIn(word, said)

    def test_a_socket_folder_is_made_for_all(self):
        folder = self.folder / "kineto"
        variables, _ = self.variables("--socket-dir", folder)
        self.assertEqual(str(folder), variables["KINETO_IPC_SOCKET_DIR"])
        self.assertEqual(0o1777, stat.S_IMODE(folder.stat().st_mode))

    def test_a_socket_folder_that_would_end_the_job_is_refused(self):
        link = self.folder / "link"
        link.symlink_to(self.folder)
        for path in ("relative", f"/tmp/{'x' * 60}", link, f"{self.folder}/", f"{self.folder}//x/.."):
            done = self.run_lockstep("--socket-dir", path, "--", "true")
            self.assertEqual(MISUSED, done.returncode, path)
            self.assertIn("--socket-dir", done.stderr)

    def test_a_folder_of_others_is_not_used(self):
        self.runtime.mkdir(mode=0o700)
        self.runtime.chmod(0o777)
        # No daemon is started: it would lie where other tests look for one.
        done = self.run_lockstep("--", "sh", "-c", "echo $PYTHONPATH")
        self.assertEqual(0, done.returncode, done.stderr)
        used = pathlib.Path(done.stdout.strip().split(":")[0])
        self.assertTrue(used.name.startswith("python-"), done.stdout)
        self.assertNotEqual(self.runtime, used.parent)


class CommandTest(RunCase):
    def test_status_and_streams_are_those_of_the_command(self):
        done = self.run_lockstep("-q", "--", "sh", "-c", "cat; echo aside >&2; exit 7", input="through\n", stdin=None)
        self.assertEqual((7, "through\n", "aside\n"), (done.returncode, done.stdout, done.stderr))

    def test_arguments_arrive_untouched(self):
        show = "import sys; print(sys.argv[1:])"
        for words in (["--lr", "3", "-q"], ["--", "--help"], ["analyze", "--json"], ["", "a b", "--interval=9s"]):
            for dashes in ([], ["--"]):
                done = self.run_lockstep(*dashes, sys.executable, "-c", show, *words)
                self.assertEqual(f"{words}\n", done.stdout, done.stderr)

    def test_a_command_ended_by_a_signal_is_told_as_shells_do(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            self.assertEqual(128 + number, self.run_lockstep("--", "sh", "-c", f"kill -{int(number)} $$").returncode)

    def test_a_command_that_cannot_be_run(self):
        self.assertEqual(127, self.run_lockstep("--", "no-such-program").returncode)
        self.assertEqual(126, self.run_lockstep("--", "/etc/passwd").returncode)

    def test_misuse_starts_nothing(self):
        for arguments in ([], ["--"], ["--intervall", "1s", "--", "echo"], ["--interval", "500ms", "--", "echo"]):
            done = self.run_lockstep(*arguments)
            self.assertEqual((MISUSED, ""), (done.returncode, done.stdout), arguments)
        self.assertIn("did you mean '--interval'", self.run_lockstep("--intervall", "1s", "--", "echo").stderr)

    def test_signals_are_passed_on_once(self):
        script = ("import signal, sys, time\n"
                  "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
                  "signal.signal(signal.SIGUSR1, lambda *_: print('usr1', flush=True))\n"
                  "print('ready', flush=True)\nwhile True: time.sleep(0.01)")
        process = self.start("--", sys.executable, "-c", script)
        self.assertEqual("ready\n", process.stdout.readline())
        process.send_signal(signal.SIGUSR1)
        self.assertEqual("usr1\n", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(9, process.wait(PATIENCE_S))
        self.assertEqual("", process.stdout.read())

    def test_ignored_signals_stay_ignored(self):
        process = self.start("--", "sh", "-c", "echo ready; read line; echo still here", stdin=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.addCleanup(process.stdin.close)
        self.assertEqual("ready\n", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(0, process.wait(PATIENCE_S))
        self.assertEqual("still here\n", process.stdout.read())

    def test_the_command_does_not_outlive_it(self):
        process = self.start("--", "sh", "-c", "echo $$; exec sleep 600")
        pid = int(process.stdout.readline())
        process.kill()
        process.wait(PATIENCE_S)
        wait_until(lambda: self.gone(pid), "the command's end")

    def test_the_terminal_is_the_commands(self):
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        process = subprocess.Popen(
            [BINARY, "run", "--", sys.executable, "-c",
             "import os, signal, sys, time\n"
             "count = 0\n"
             "def on(*_):\n global count\n count += 1\n"
             "signal.signal(signal.SIGINT, on)\n"
             "print('group', os.getpgrp() == os.tcgetpgrp(0), sys.stdin.isatty(), flush=True)\n"
             "line = input()\n"
             "time.sleep(0.2)\n"
             "print('line', line, count, flush=True)"],
            env=self.environment, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(terminal)
        text = b""

        def read_until(word):
            nonlocal text
            while word not in text:
                text += os.read(controller, 1000)

        read_until(b"group True True")
        os.write(controller, b"\x03")  # Ctrl-C, from the terminal to both: handled once, and we stay.
        read_until(b"^C")
        os.write(controller, b"hello\n")
        read_until(b"line hello 1")
        self.assertEqual(0, process.wait(PATIENCE_S))

    def test_orphans_are_reaped_where_it_is_the_first_process(self):
        try:
            subprocess.run(["unshare", "-rpf", "--mount-proc", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no namespace of one's own: {error}")
        script = ("(sleep 1000 & ) ; (sleep 1000 & ); until [ $(grep -l sleep /proc/[0-9]*/comm | wc -l) -ge 2 ]; do :; done; "
                  "for comm in $(grep -l sleep /proc/[0-9]*/comm); do pid=${comm#/proc/}; kill ${pid%/comm}; done; "
                  "while grep -lq sleep /proc/[0-9]*/comm; do sleep 0.001 & wait; done; "
                  "grep -h ^State /proc/[0-9]*/status | grep -c Z; true")
        done = subprocess.run(["unshare", "-rpf", "--mount-proc", BINARY, "run", "--", "sh", "-c", script], timeout=PATIENCE_S,
                              env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual((0, "0\n"), (done.returncode, done.stdout), done.stderr)


if __name__ == "__main__":
    unittest.main()
