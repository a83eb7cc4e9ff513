"""HTTP over a Unix socket or TCP. Run as a program it sends one request, so that it can be another user's: SOCKET|PORT METHOD
PATH BODY; prints status, headers and body as JSON."""

import http.client
import json
import socket
import sys

WAIT_S = 240  # As tests/support/waiting.py has it, which is not there for this as a program.


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=WAIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(WAIT_S)
        self.sock.connect(self.path)


def connect(where, tls=None):
    """`where`: a Unix socket's path, or a port of 127.0.0.1."""
    if isinstance(where, int):
        if tls:
            return http.client.HTTPSConnection("127.0.0.1", where, timeout=WAIT_S, context=tls)
        return http.client.HTTPConnection("127.0.0.1", where, timeout=WAIT_S)
    return UnixConnection(str(where))


def ask(where, method, path, body=None, token=None, headers=None, tls=None):
    """(status, headers, body); a body that is JSON is read."""
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
        body = body if isinstance(body, (str, bytes)) else json.dumps(body)
    connection = connect(where, tls)
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.headers.get_content_type() == "application/json" and text:
            text = json.loads(text)
        return answer.status, answer.headers, text
    finally:
        connection.close()


if __name__ == "__main__":
    target, method, path, text = sys.argv[1:]
    status, headers, body = ask(int(target) if target.isdigit() else target, method, path, json.loads(text))
    print(json.dumps([status, dict(headers), body if isinstance(body, (dict, list)) else body.decode(errors="replace")]))
