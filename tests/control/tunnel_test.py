"""`lockstep tunnel`: standard input and output are a connection to a Unix socket, byte for byte."""

import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import unittest

from waiting import PATIENCE_S

BINARY = os.environ["LOCKSTEP_BINARY"]


class Listener(contextlib.AbstractContextManager):
    """A Unix socket whose connections `serve` takes."""

    def __init__(self, path, serve):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(8)
        self.serve = serve
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.serve(connection)

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(20)


def read_all(connection):
    return b"".join(iter(lambda: connection.recv(65536), b""))


class TunnelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "lockstep" / "lockstepd.sock"
        self.path.parent.mkdir()
        self.environment = {name: value for name, value in os.environ.items() if name != "LOCKSTEP_SOCKET"}
        self.environment["XDG_RUNTIME_DIR"] = str(self.folder)

    def tunnel(self, *arguments, **named):
        return subprocess.run([BINARY, "tunnel", *map(str, arguments)], capture_output=True, timeout=PATIENCE_S,
                              env=self.environment, **named)

    def test_bytes_go_through_unchanged(self):
        question, answer = os.urandom(2_000_003), os.urandom(3_000_001)
        heard = []

        def serve(connection):
            talking = threading.Thread(target=connection.sendall, args=(answer,))
            talking.start()
            heard.append(read_all(connection))
            talking.join()

        with Listener(self.path, serve):
            done = self.tunnel("--socket", self.path, input=question)
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        self.assertEqual(question, heard[0])
        self.assertEqual(answer, done.stdout)

    def test_it_ends_when_the_daemon_closes(self):
        with Listener(self.path, lambda connection: connection.sendall(b"bye")):
            program = subprocess.Popen([BINARY, "tunnel", "--socket", self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.assertEqual(b"bye", program.stdout.read())  # Its standard input stays open.
            self.assertEqual(0, program.wait(60))
            program.stdin.close()
            program.stdout.close()

    def test_it_ends_when_its_caller_has_gone(self):
        def serve(connection):
            connection.recv(1)  # Until the tunnel has gone: nothing is sent, nothing closed.

        with Listener(self.path, serve):
            ours, its = socket.socketpair()
            program = subprocess.Popen([BINARY, "tunnel", "--socket", self.path], stdin=its, stdout=its)
            its.close()
            ours.close()
            self.assertEqual(0, program.wait(60))

    def test_this_nodes_daemon_is_found(self):
        for name, value in (("XDG_RUNTIME_DIR", self.folder), ("LOCKSTEP_SOCKET", self.folder / "own.sock")):
            path = self.path if name == "XDG_RUNTIME_DIR" else value
            self.environment[name] = str(value)
            with Listener(path, lambda connection, name=name: connection.sendall(name.encode())):
                done = self.tunnel(stdin=subprocess.DEVNULL)
            if name == "XDG_RUNTIME_DIR" and os.access("/run/lockstep/lockstepd.sock", os.W_OK):
                continue  # This machine has a daemon of its own; that one goes first.
            self.assertEqual((0, name.encode()), (done.returncode, done.stdout), done.stderr)

    def test_without_a_daemon_one_line_says_so(self):
        done = self.tunnel("--socket", self.path, stdin=subprocess.DEVNULL)
        self.assertEqual(1, done.returncode)
        self.assertEqual(b"", done.stdout)
        self.assertRegex(done.stderr.decode(), r"\Alockstep: no lockstepd answers at \S+ \(No such file or directory\); start it with .*\n\Z")
        if os.access("/run/lockstep/lockstepd.sock", os.W_OK):
            return
        done = self.tunnel(stdin=subprocess.DEVNULL)
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr.decode(), r"\Alockstep: no lockstepd answers on this node \(looked for .*lockstepd\.sock.*\); start it .*\n\Z")

    def test_misuse_is_told(self):
        self.assertEqual(2, self.tunnel("surplus").returncode)
        self.assertEqual(2, self.tunnel("--socket", "/" + "a" * 200).returncode)


if __name__ == "__main__":
    unittest.main()
