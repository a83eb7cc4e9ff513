"""Every route of docs/formats/daemon-api.md, by every method and role, and hostile requests, against the program."""

import http.client
import json
import pathlib
import random
import re
import socket
import tempfile
import unittest

from daemon_process import SOURCE, Daemon, ask, connect, write_config, write_token
from waiting import PATIENCE_S, wait_until

DOCUMENT = (SOURCE / "docs/formats/daemon-api.md").read_text(encoding="utf-8")
METHODS = ("GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW")
ROLES = ("none", "read", "capture", "admin")
UNKNOWN_ID = "abcdefgh01234567"


def documented_routes():
    """{path: {method: least role}}, HEAD beside GET."""
    routes = {}
    for method, path, role in re.findall(r"^\| `([A-Z]+) (\S+)` \| (\w+) \|", DOCUMENT, re.MULTILINE):
        routes.setdefault(path, {})[method] = role
        if method == "GET":
            routes[path]["HEAD"] = role
    return routes


class RoutesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addCleanup = cls.addClassCleanup  # Daemon cleans up behind the class
        scratch = tempfile.TemporaryDirectory(prefix="lkd-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        cls.tokens, text = {"none": "wrong-token"}, ""
        for role in ROLES[1:]:
            cls.tokens[role], path = write_token(folder, role)
            user = 'user = "4242"\n' if role == "capture" else ""
            text += f'[[token]]\nname = "{role}"\nrole = "{role}"\nfile = "{path}"\n{user}'
        cls.daemon = Daemon(cls, "--config", write_config(folder, text), folder=folder)

    def test_every_route_by_every_method_and_role(self):
        routes = documented_routes()
        self.assertEqual(15, len(routes))
        count = 0
        for path, least in routes.items():
            concrete = path.replace("ID", UNKNOWN_ID).replace("NAME", "n1_rank0.json")
            for where in (self.daemon.path, self.daemon.ports[0]):
                for method in METHODS:
                    for role in ROLES:
                        with self.subTest(path=path, method=method, role=role, where=str(where)):
                            # What does not match is waited for.
                            body = ({"wait_ns": 600 * 10**9} if path.endswith("captures") else {}) if method == "POST" else None
                            # Failed attempts are limited from some number on: 429 is as much of a refusal.
                            refused = (401, 429) if role == "none" else (403,)
                            status, headers, _ = ask(where, method, concrete, body, token=self.tokens[role])
                            count += 1
                            if method not in least:
                                self.assertEqual(405, status)
                                self.assertIn("Allow", headers)
                            elif ROLES.index(role) < ROLES.index(least[method]):
                                self.assertIn(status, refused)
                            else:
                                made = (202, 503) if "inspections" in path else (201,)  # 503: others wait for their turn
                                allowed = (404,) if "ID" in path else made if method == "POST" else (200,)
                                self.assertIn(status, allowed)
        self.assertEqual(15 * 2 * len(METHODS) * len(ROLES), count)

    def test_unknown_paths_are_not_found_for_anybody(self):
        for path in ("/", "/api", "/api/v1", "/api/v1/", "/api/v2/status", "/status", "/api/v1/status/", "/metrics/", "/-/quit"):
            for method in ("GET", "POST", "DELETE"):
                for token in (None, *self.tokens.values()):
                    self.assertEqual(404, self.daemon.ask(method, path, token=token)[0], path)

    def test_names_lead_nowhere_else(self):
        random.seed(7)
        pieces = ["..", ".", "%2e%2e", "%2e", "%2f", "/", "//", "\\", "%5c", "%00", "%0a", "etc", "passwd", "a", ".json", "~", "%25",
                  "lock", "captures", UNKNOWN_ID, "%c0%ae", "\u00fc", "traces", "\x7f", "%", "%zz", "A" * 300]
        names = ["../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "....//....//etc/passwd",
                 "/etc/passwd", "..\\..\\etc\\passwd", "%00.json", "x.json%00", ".json", "../" + UNKNOWN_ID + ".json"]
        names += ["".join(random.choices(pieces, k=random.randint(1, 6))) for _ in range(400)]
        connection = connect(self.daemon.path)
        for name in names:
            for prefix in ("/api/v1/captures/", f"/api/v1/captures/{UNKNOWN_ID}/traces/"):
                for method in ("GET", "DELETE"):
                    raw = f"{method} {prefix}{name} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.tokens['admin']}\r\n\r\n"
                    if connection.sock is None:
                        connection.connect()
                    connection.sock.sendall(raw.encode())
                    answer = http.client.HTTPResponse(connection.sock, method=method)
                    answer.begin()
                    body = answer.read()
                    self.assertIn(answer.status, (400, 404, 405), raw)
                    self.assertNotIn(b"root:", body)
                    if answer.will_close:
                        connection.close()
                    answer.close()
        connection.close()

    def test_bodies_are_bounded_and_must_be_json(self):
        post = lambda body, **more: self.daemon.ask("POST", "/api/v1/captures", body, **more)
        self.assertEqual(400, post("")[0])
        self.assertEqual(400, post("{")[0])
        self.assertEqual(400, post("[]")[0])
        status, _, body = post({"window": {"duration_ns": 5}})
        self.assertEqual((400, "invalid_argument"), (status, body["error"]["code"]))
        self.assertIn("window.duration_ns", body["error"]["message"])
        self.assertEqual(413, post('{"x":' + "[" * 200_000)[0])  # nested too deep
        self.assertEqual(413, post(b" " * (1 << 20) + b"{}")[0])
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            self.assertEqual(415, post("{}", headers={"Content-Type": kind})[0])

    def test_web_pages_of_other_sites_are_refused(self):
        port = self.daemon.ports[0]
        for method, body in (("POST", {}), ("DELETE", None)):
            path = "/api/v1/captures" + ("" if body is not None else "/" + UNKNOWN_ID)
            for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
                self.assertEqual(403, ask(port, method, path, body, headers=headers)[0], headers)
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"):
            self.assertEqual(403, ask(port, "GET", "/api/v1/status", headers={"Host": host})[0])
            self.assertEqual(403, ask(port, "POST", "/api/v1/captures", {}, headers={"Host": host})[0])

    def test_events_begin_with_the_state_and_end_with_the_final_one(self):
        status, _, capture = self.daemon.ask("POST", "/api/v1/captures", {"wait_ns": 600 * 10**9})
        self.assertEqual((201, "waiting"), (status, capture["state"]))
        connection = connect(self.daemon.path)
        connection.request("GET", f"/api/v1/captures/{capture['id']}/events")
        answer = connection.getresponse()
        self.assertEqual("text/event-stream", answer.headers.get_content_type())
        self.assertEqual(b"event: capture\n", answer.readline())
        self.assertEqual("waiting", json.loads(answer.readline().removeprefix(b"data: "))["state"])
        self.assertEqual(200, self.daemon.ask("DELETE", f"/api/v1/captures/{capture['id']}")[0])
        rest = answer.read().decode()
        connection.close()
        self.assertIn('"state":"cancelled"', rest.split("event: capture\n")[-1])

    def test_metrics_are_those_of_the_document(self):
        document = (SOURCE / "docs/daemon-metrics.md").read_text()
        of_daemon, of_jobs = (set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) for part in document.split("\n## Jobs\n"))
        self.assertTrue(of_daemon and of_jobs)

        def names():
            return set(re.findall(r"^# TYPE (\w+) ", self.daemon.ask("GET", "/metrics")[2].decode(), re.MULTILINE))
        # A sensor's are there once it has looked.
        has = wait_until(lambda: of_daemon <= (found := names()) and found, lambda: f"without {of_daemon - names()}")
        headers = self.daemon.ask("GET", "/metrics")[1]
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        # Those of jobs are there while there are jobs: other tests may have some.
        self.assertEqual(of_daemon, has - of_jobs)

    def test_every_field_is_in_the_document(self):
        written = set()
        for path in (SOURCE / "src/node/control/api").glob("json_*.cc"):
            written |= set(re.findall(r'(?:\bjson\.\w+|Key)\("(\w+)"', path.read_text(encoding="utf-8")))
        self.assertLess(50, len(written))
        for name in written:
            self.assertTrue(re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", DOCUMENT), name)

    def test_what_is_not_http_ends_the_connection_alone(self):
        for data in (b"\0" * 100, b"\x16\x03\x01" + b"a" * 200, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", self.daemon.ports[0]), timeout=PATIENCE_S) as raw:
                raw.sendall(data)
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(4096):
                    pass
        self.assertEqual(200, self.daemon.ask("GET", "/-/healthy")[0])


if __name__ == "__main__":
    unittest.main()
