"""`lockstep serve --host ...` as a program, and its stream of events, for tests."""

import base64
import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
import urllib.parse
import urllib.request

from waiting import PATIENCE_S

BINARY = os.environ["LOCKSTEP_BINARY"]


class LiveSite:
    """Runs until the test's end, unless it is ended before. `inside`: a command that runs it elsewhere."""

    def __init__(self, test, *words, inside=(), **environment):
        clean = {name: value for name, value in os.environ.items() if name not in ("LOCKSTEP_SOCKET", "http_proxy")}
        self.process = subprocess.Popen([*inside, BINARY, "serve", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**clean, **environment})
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        self.test = test
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise AssertionError("no address: " + self.process.stderr.read())
        url = urllib.parse.urlsplit(self.address)
        self.port = url.port
        self.token = urllib.parse.parse_qs(url.query)["token"][0]

    def ask(self, method, path, body=None, token=True, **headers):
        """(status, headers, body); with the token unless another is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            if token is not None:
                sent["Authorization"] = f"Bearer {self.token if token is True else token}"
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, answer.headers, text

    def json(self, path):
        status, _, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    @contextlib.contextmanager
    def events(self):
        """The stream: an iterator of (event, data)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("GET", f"/api/live/events?token={self.token}")
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            assert answer.headers["Content-Type"] == "text/event-stream"
            yield read_events(answer)

    def wait_for(self, kind, holds):
        """The first event of this kind for which `holds` gives something; what it gave."""
        newest = None
        with contextlib.suppress(TimeoutError), self.events() as events:
            for event, data in events:
                if event == kind:
                    newest = data
                    if found := holds(data):
                        return found
        raise AssertionError(f"the stream or the patience ended before what was waited for; the newest {kind}: {newest}")

    def end(self, by=signal.SIGINT):
        self.process.send_signal(by)
        status = self.process.wait(PATIENCE_S)
        return status, self.process.stderr.read()


def read_events(answer):
    """A comment keeps the connection, an empty line ends an event. TimeoutError: it goes on for longer than anybody waits for
    something in it; the comments keep the socket from saying so."""
    event = None
    end = time.monotonic() + PATIENCE_S
    while raw := answer.readline():
        if time.monotonic() > end:
            raise TimeoutError(f"the stream goes on after {PATIENCE_S} s")
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            event = line[len("event: "):]
        elif line.startswith("data: "):
            yield event, json.loads(line[len("data: "):])


def ask_prometheus(url, path):
    """Data that the server's own Prometheus answers, with the password of the link that the page is given (`url` of its alerts)."""
    parts = urllib.parse.urlsplit(url)
    request = urllib.request.Request(f"http://{parts.hostname}:{parts.port}{path}")
    request.add_header("Authorization", "Basic " + base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode())
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)["data"]
