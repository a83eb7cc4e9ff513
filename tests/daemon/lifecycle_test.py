"""How lockstepd starts, reloads, ends, and what it says when it cannot."""

import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest

from daemon_process import DAEMON, OTHER_UID, SOURCE, Daemon, ask, write_config, write_token
from waiting import PATIENCE_S, wait_until


def run(*words, **options):
    return subprocess.run([DAEMON, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, **options)


class LifecycleTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkd-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.folder.chmod(0o755)

    def test_signals_end_it_in_order(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            daemon = Daemon(self)
            # A waiting capture, its listener and a half-sent request hold nothing up.
            capture = daemon.ask("POST", "/api/v1/captures", {"wait_ns": 600 * 10**9})[2]
            listener = socket.socket(socket.AF_UNIX)
            listener.connect(str(daemon.path))
            listener.sendall(f"GET /api/v1/captures/{capture['id']}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertTrue(listener.recv(100))
            slow = socket.create_connection(("127.0.0.1", daemon.ports[0]))
            slow.sendall(b"GET / HTT")
            self.assertEqual(0, daemon.stop(how))
            self.assertFalse(daemon.path.exists())
            listener.close()
            slow.close()

    def test_a_killed_one_is_followed_by_another_in_its_place(self):
        first = Daemon(self, folder=self.folder)
        capture = first.ask("POST", "/api/v1/captures", {"wait_ns": 600 * 10**9})[2]
        first.stop(signal.SIGKILL)
        self.assertTrue(first.path.exists())
        second = Daemon(self, folder=self.folder)
        self.assertEqual("waiting", second.ask("GET", f"/api/v1/captures/{capture['id']}")[2]["state"])

    def test_a_second_one_says_what_is_taken(self):
        first = Daemon(self, folder=self.folder)
        common = ["--port", "none", "--output", self.folder / "o", "--kineto-name", first.kineto_name + "x"]
        state = run("--state", first.state, "--socket", self.folder / "b.sock", *common)
        self.assertEqual(1, state.returncode)
        self.assertIn(f"another lockstepd (pid {first.process.pid}) uses this folder", state.stderr)
        path = run("--state", self.folder / "b", "--socket", first.path, *common)
        self.assertEqual(1, path.returncode)
        self.assertIn("in use", path.stderr)
        name = run("--state", self.folder / "c", "--socket", self.folder / "c.sock", *common[:-1], first.kineto_name)
        self.assertEqual(1, name.returncode)
        self.assertIn(f"already uses Kineto's socket abstract:{first.kineto_name}", name.stderr)
        port = run("--state", self.folder / "d", "--socket", self.folder / "d.sock", *common[2:], "--port", str(first.ports[0]))
        self.assertEqual(1, port.returncode)
        self.assertIn(str(first.ports[0]), port.stderr)
        self.assertEqual(200, first.ask("GET", "/-/healthy")[0])

    def test_a_reload_takes_tokens_and_keeps_what_is_when_it_cannot(self):
        token, path = write_token(self.folder, "one")
        entry = '[[token]]\nname = "{0}"\nrole = "{1}"\nfile = "{2}"\n'
        config = write_config(self.folder, entry.format("one", "read", path))
        daemon = Daemon(self, "--config", config, folder=self.folder)
        post = lambda token: ask(daemon.ports[0], "POST", "/api/v1/captures", {"wait_ns": 1}, token=token)[0]
        self.assertEqual(403, post(token))
        other, other_path = write_token(self.folder, "two")
        write_config(self.folder, entry.format("one", "admin", path) + entry.format("two", "read", other_path))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_line("read again")
        self.assertEqual((201, 403), (post(token), post(other)))
        for bad, said in (("listne = []\n", "did you mean 'listen'"), (entry.format("x", "read", "/nowhere"), "/nowhere"), ("a = ", "lockstep.toml:1")):
            write_config(self.folder, bad)
            daemon.process.send_signal(signal.SIGHUP)
            self.assertIn(said, daemon.wait_for_line("settings are unchanged"))
            self.assertEqual((201, 403), (post(token), post(other)))
        write_config(self.folder, 'state = "/elsewhere"\n[capture]\nkeep_hours = 1\n')
        daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("capture has changed", daemon.wait_for_line("restart"))
        daemon.wait_for_line("read again")
        self.assertEqual(401, post(token))  # no longer there

    def test_systemd_is_told(self):
        told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(told.close)
        told.settimeout(PATIENCE_S)
        told.bind(str(self.folder / "notify"))
        daemon = Daemon(self, environment={"NOTIFY_SOCKET": str(self.folder / "notify"), "WATCHDOG_USEC": "2000000"})
        self.assertIn(b"READY=1", told.recv(4096))
        self.assertEqual(b"WATCHDOG=1", told.recv(4096))
        daemon.process.send_signal(signal.SIGHUP)
        def until(word):
            while True:
                message = told.recv(4096)
                if message != b"WATCHDOG=1":
                    self.assertTrue(message.startswith(word), message)
                    return
        until(b"RELOADING=1\nMONOTONIC_USEC=")
        until(b"READY=1")
        daemon.process.send_signal(signal.SIGTERM)
        until(b"STOPPING=1")

    def test_a_private_one_ends_with_its_lease(self):
        lease = self.folder / "lease"
        lease.touch()
        with lease.open() as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            daemon = Daemon(self, "--lease", lease, port="none")
            time.sleep(3)
            self.assertIsNone(daemon.process.poll())
        self.assertIn("lease", daemon.wait_for_line("stops"))
        self.assertEqual(0, daemon.process.wait(PATIENCE_S))

    def test_wrong_settings_and_flags_are_refused_with_what_to_do(self):
        for text, said in (("[tls\n", "lockstep.toml:1:"), ("sokcet = 1\n", "did you mean 'socket'"), ('state = "here"\n', "absolute path"),
                           ('[kineto]\ndirectories = ["/' + "d" * 60 + '"]\n', "at most 54"), ('[[token]]\nname="t"\nrole="admin"\nfile="/nowhere"\n', "/nowhere")):
            done = run("--check", "--config", write_config(self.folder, text))
            self.assertEqual((1, ""), (done.returncode, done.stdout), text)
            self.assertIn(said, done.stderr)
        config = write_config(self.folder, "")
        config.chmod(0o666)
        self.assertIn("others can write it", run("--check", "--config", config).stderr)
        for words, said in ((["--sokcet", "x"], "did you mean '--socket'"), (["extra"], "unknown argument extra"), (["--log-level", "loud"], "loud"),
                            (["--dynolog-rpc=x"], "x")):
            done = run(*words)
            self.assertEqual(2, done.returncode, words)
            self.assertIn(said, done.stderr)
        self.assertEqual(1, run("--port", "70000").returncode)
        self.assertRegex(run("--version").stdout, r"^lockstepd \d+\.\d+")
        for line in run("--help").stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_the_packaged_settings_are_fine_as_they_are_and_with_every_line(self):
        packaged = SOURCE / "packaging/lockstep.toml"
        text = packaged.read_text()
        done = run("--check", "--config", write_config(self.folder, text))
        self.assertEqual(0, done.returncode, done.stderr)
        whole = re.sub(r"(?m)^#(?=[a-z_\[]+)", "", text)
        self.assertGreater(len(re.findall(r"(?m)^[a-z_]+ = ", whole)), 25)
        for name in ("prometheus", "alice", "vllm"):
            _, path = write_token(self.folder, name)
            whole = whole.replace(f"/etc/lockstep/{name}.token", str(path))
        done = run("--check", "--config", write_config(self.folder, whole.replace('user = "alice"', 'user = "root"')))
        self.assertEqual(0, done.returncode, done.stderr)
        # It says every key that there is.
        reader = re.sub(r"OneOf\(\{[^}]*\}\)", "", (SOURCE / "src/node/agent/daemon/config_toml.cc").read_text())
        keys = set(re.findall(r'\{"(\w{2,})",', reader))  # One letter is a unit of time.
        self.assertEqual(set(), {key for key in keys if not re.search(rf"(?m)^(\[+{key}\]|{key} = )", whole)})

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_the_unit_is_one(self):
        text = (SOURCE / "packaging/systemd/lockstepd.service").read_text()
        unit = self.folder / "lockstepd.service"
        unit.write_text(text.replace("/usr/bin/lockstepd", str(DAEMON)))
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
        mine = [line for line in done.stderr.splitlines() if "lockstepd" in line]
        self.assertEqual([], mine)

    def test_folders_that_are_not_its_own_are_refused(self):
        def refusal(state):
            done = run("--state", state, "--socket", self.folder / "s.sock", "--port", "none", "--kineto-name", f"lockstep-test-{os.getpid()}-f")
            self.assertEqual(1, done.returncode)
            return done.stderr
        if os.getuid() == 0:
            theirs = self.folder / "theirs"
            theirs.mkdir(0o700)
            os.chown(theirs, 4242, 4242)
            self.assertIn("belongs to uid 4242", refusal(theirs))
            self.assertIn("belongs to uid 4242", refusal(theirs / "below"))
        open_folder = self.folder / "open"
        open_folder.mkdir()
        open_folder.chmod(0o777)
        link = self.folder / "link"
        link.symlink_to(self.folder / "open")
        self.assertIn("others can write there", refusal(open_folder))
        self.assertIn("is not a folder", refusal(link))

    def test_the_log_goes_to_a_file_of_its_own_and_follows_a_rotation(self):
        log = self.folder / "log"
        daemon = Daemon(self, "--log-file", log, port="none", expect_start=False)
        def wait_for(word):
            wait_until(lambda: log.exists() and word in log.read_text(), f"{word} in its log", daemon.process)
        wait_for("serves")
        self.assertEqual(0o600, stat.S_IMODE(log.stat().st_mode))
        log.rename(self.folder / "log.1")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("read again")

    @unittest.skipUnless(os.getuid() == 0, "needs root, to be another user")
    def test_an_ordinary_users_daemon_needs_no_rights(self):
        program = self.folder / "lockstepd"
        shutil.copy(DAEMON, program)  # The build folder need not be theirs to enter.
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, OTHER_UID, OTHER_UID)
        process = subprocess.Popen([program, "--port", "none", "--kineto-name", f"lockstep-test-{os.getpid()}-user"], user=OTHER_UID,
                                   group=OTHER_UID, extra_groups=[], cwd="/", stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                   env={"HOME": str(home), "XDG_RUNTIME_DIR": str(home)})
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn("serves", process.stderr.readline())
        path = home / "lockstep" / "lockstepd.sock"
        self.assertEqual(0o700, stat.S_IMODE(path.parent.stat().st_mode))
        status, _, body = ask(path, "GET", "/api/v1/status")
        self.assertEqual((200, OTHER_UID), (status, body["daemon_uid"]))
        self.assertTrue((home / ".local/state/lockstep" / socket.gethostname() / "lock").exists())
        process.terminate()
        self.assertEqual(0, process.wait(PATIENCE_S))


if __name__ == "__main__":
    unittest.main()
