"""`lockstep run -- CMD`: CMD is what it would be without, but for the environment. Real processes, signals and terminals."""

import os
import pathlib
import pty
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from lockstep_program import BINARY, MISUSED

WAIT_S = 60


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
        return subprocess.run([BINARY, "run", *map(str, arguments)], capture_output=True, text=True, timeout=WAIT_S,
                              env={**self.environment, **options.pop("variables", {})}, check=False, **options)

    def start(self, *arguments, **options):
        process = subprocess.Popen([BINARY, "run", *map(str, arguments)], env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, condition, what):
        end = time.monotonic() + WAIT_S
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited for {what}")
            time.sleep(0.01)

    def gone(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True


class EnvironmentTest(RunCase):
    def variables(self, *flags, **variables):
        done = self.run_lockstep(*flags, "--", sys.executable, "-c",
                                 "import os\nfor k, v in os.environ.items():\n if k.startswith('KINETO'): print(k, v)",
                                 variables=variables)
        self.assertEqual(0, done.returncode, done.stderr)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines()), done.stderr

    def test_kineto_finds_a_daemon_and_a_base_configuration(self):
        variables, _ = self.variables("--interval", "2s")
        self.assertEqual("1", variables["KINETO_USE_DAEMON"])
        self.assertNotIn("KINETO_IPC_SOCKET_DIR", variables)
        if "KINETO_CONFIG" not in variables:
            self.assertGreater(os.stat("/etc/libkineto.conf").st_size, 0)
            return
        path = pathlib.Path(variables["KINETO_CONFIG"])
        self.assertEqual(self.runtime, path.parent)
        self.assertIn("\nON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=2\n", path.read_text(encoding="utf-8"))
        self.assertEqual(0o700, stat.S_IMODE(self.runtime.stat().st_mode))

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
        variables, _ = self.variables()
        self.assertNotEqual(self.runtime, pathlib.Path(variables.get("KINETO_CONFIG", "/")).parent)


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
        self.assertEqual(9, process.wait(WAIT_S))
        self.assertEqual("", process.stdout.read())

    def test_ignored_signals_stay_ignored(self):
        process = self.start("--", "sh", "-c", "echo ready; read line; echo still here", stdin=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.addCleanup(process.stdin.close)
        self.assertEqual("ready\n", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(0, process.wait(WAIT_S))
        self.assertEqual("still here\n", process.stdout.read())

    def test_the_command_does_not_outlive_it(self):
        process = self.start("--", "sh", "-c", "echo $$; exec sleep 600")
        pid = int(process.stdout.readline())
        process.kill()
        process.wait(WAIT_S)
        self.wait_until(lambda: self.gone(pid), "the command's end")

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
        self.assertEqual(0, process.wait(WAIT_S))

    def test_orphans_are_reaped_where_it_is_the_first_process(self):
        try:
            subprocess.run(["unshare", "-rpf", "--mount-proc", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no namespace of one's own: {error}")
        script = ("(sleep 0.05 & ) ; (sleep 0.05 & ); "
                  "while grep -lq sleep /proc/[0-9]*/comm; do sleep 0.001 & wait; done; "
                  "grep -h ^State /proc/[0-9]*/status | grep -c Z; true")
        done = subprocess.run(["unshare", "-rpf", "--mount-proc", BINARY, "run", "--", "sh", "-c", script], timeout=WAIT_S,
                              env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual((0, "0\n"), (done.returncode, done.stdout), done.stderr)


if __name__ == "__main__":
    unittest.main()
