"""`lockstep serve` and `lockstep open` as a browser meets them: real programs, real sockets on loopback."""

import contextlib
import gzip
import http.client
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.parse

from lockstep_program import BINARY, RECORDED, analyze_json, run
from waiting import PATIENCE_S


class Program(contextlib.AbstractContextManager):
    """A serving program; the first line it prints is its address."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline().strip()
        if not self.line:
            raise AssertionError("no address: " + self.process.communicate()[1])

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, by=signal.SIGINT):
        self.process.send_signal(by)
        _, talk = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, talk


def ask(port, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response, response.read()


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = Program("serve", RECORDED, "-q")
        cls.port = urllib.parse.urlsplit(cls.program.line).port

    @classmethod
    def tearDownClass(cls):
        cls.program.__exit__()

    def test_the_page_is_there_and_fetches_its_data_from_here(self):
        response, body = ask(self.port, "/")
        self.assertEqual(200, response.status)
        self.assertIn(b'name="lockstep-data"', body)
        self.assertIn(b"connect-src 'self'", body)
        self.assertNotIn(b"application/x-lockstep\" id", body, "data is fetched, not embedded")

    def test_every_block_is_there_and_main_is_the_document(self):
        response, body = ask(self.port, "/data/main", Accept_Encoding="gzip")
        self.assertEqual("gzip", response.headers["Content-Encoding"])
        document = json.loads(gzip.decompress(body))
        self.assertEqual("lockstep.page/1", document["schema"])
        for name in ("steps", "collectives", "timeline", "names", *(f"events-{rank}" for rank in range(4))):
            self.assertEqual(200, ask(self.port, f"/data/{name}")[0].status, name)
        self.assertEqual(404, ask(self.port, "/data/events-4")[0].status)
        self.assertEqual(404, ask(self.port, "/data/")[0].status)

    def test_a_block_that_the_browser_has_is_not_sent_again(self):
        tag = ask(self.port, "/data/steps")[0].headers["ETag"]
        response, body = ask(self.port, "/data/steps", If_None_Match=tag)
        self.assertEqual((304, b""), (response.status, body))

    def test_a_client_without_gzip_is_told_what_it_gets(self):
        response, body = ask(self.port, "/data/main", Accept_Encoding="identity")
        self.assertEqual((None, "application/gzip"), (response.headers["Content-Encoding"], response.headers["Content-Type"]))
        gzip.decompress(body)

    def test_the_interface_for_programs_is_the_commands_json(self):
        self.assertEqual(analyze_json(RECORDED), json.loads(ask(self.port, "/api/analyze")[1]))
        self.assertEqual(b"healthy\n", ask(self.port, "/-/healthy")[1])

    def test_only_get_and_head_under_a_loopback_name(self):
        self.assertEqual(405, ask(self.port, "/", "POST")[0].status)
        self.assertEqual(403, ask(self.port, "/", Host="evil.example")[0].status)
        self.assertEqual(b"", ask(self.port, "/", "HEAD")[1])

    def test_it_listens_on_the_loopback_address_alone(self):
        listening = []
        for table in ("tcp", "tcp6"):
            for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
                address, port = line.split()[1].split(":")
                if int(port, 16) == self.port and line.split()[3] == "0A":
                    listening.append(address)
        self.assertEqual(["0100007F"], listening, "127.0.0.1, as the kernel writes it")

    def test_signals_end_it_with_status_0(self):
        for by in (signal.SIGINT, signal.SIGTERM):
            with Program("serve", RECORDED) as program:
                port = urllib.parse.urlsplit(program.line).port
                idle = socket.create_connection(("127.0.0.1", port))
                status, talk = program.end(by)
                idle.close()
                self.assertEqual(0, status)
                self.assertIn("Ctrl-C ends it", talk)

    def test_a_port_in_use_is_said_with_the_remedy(self):
        done = run("serve", RECORDED, "--port", str(self.port))
        self.assertEqual(1, done.returncode)
        self.assertIn(f"port {self.port} on 127.0.0.1 is in use", done.stderr)


class OpenTest(unittest.TestCase):
    def fetch(self, link, **headers):
        origin, _, target = link.partition("/#!/?url=")
        url = urllib.parse.urlsplit(target)
        return origin, ask(url.port, url.path, **headers)

    def test_a_file_is_handed_over_as_it_is_and_the_program_ends(self):
        trace = sorted(pathlib.Path(RECORDED).glob("*.json*"))[0]
        with Program("open", trace, "--port", "0") as program:
            origin, (response, body) = self.fetch(program.line)
            self.assertEqual("https://ui.perfetto.dev", origin)
            self.assertEqual("https://ui.perfetto.dev", response.headers["Access-Control-Allow-Origin"])
            self.assertEqual(trace.read_bytes(), body)
            self.assertEqual(0, program.process.wait(timeout=PATIENCE_S))

    def test_a_job_is_merged_first_and_nothing_is_left_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            expected = pathlib.Path(folder) / "job.pftrace"
            self.assertEqual(0, run("merge", RECORDED, "-o", expected, "-q").returncode)
            with Program("open", RECORDED, "--port", "0", "--perfetto-origin", "http://localhost:10000") as program:
                origin, (response, body) = self.fetch(program.line)
                self.assertEqual("http://localhost:10000", origin)
                self.assertEqual("http://localhost:10000", response.headers["Access-Control-Allow-Origin"])
                self.assertEqual(expected.read_bytes(), body)
                self.assertEqual(0, program.process.wait(timeout=PATIENCE_S))

    def test_a_part_leaves_it_waiting_until_the_end_was_fetched(self):
        trace = sorted(pathlib.Path(RECORDED).glob("*.json*"))[0]
        content = trace.read_bytes()
        with Program("open", trace, "--port", "0") as program:
            _, (response, body) = self.fetch(program.line, Range="bytes=10-19")
            self.assertEqual((206, content[10:20]), (response.status, body))
            self.assertIsNone(program.process.poll())
            _, (response, body) = self.fetch(program.line, Range="bytes=20-")
            self.assertEqual((206, content[20:]), (response.status, body))
            self.assertEqual(0, program.process.wait(timeout=PATIENCE_S))

    def test_kept_it_serves_again_and_ends_on_a_signal(self):
        trace = sorted(pathlib.Path(RECORDED).glob("*.json*"))[0]
        with Program("open", trace, "--port", "0", "--keep") as program:
            for _ in range(2):
                self.assertEqual(200, self.fetch(program.line)[1][0].status)
            self.assertEqual(0, program.end()[0])

    def test_misuse_is_told(self):
        self.assertEqual(2, run("open").returncode)
        self.assertEqual(2, run("open", RECORDED, "--perfetto-origin", "ui.example.org").returncode)
        self.assertEqual(1, run("open", "no-such-file.json").returncode)


if __name__ == "__main__":
    unittest.main()
