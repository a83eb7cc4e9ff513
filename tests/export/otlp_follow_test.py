"""`lockstep export otlp --follow` with a real lockstepd and ranks that record. The collector is a small receiver of our own, since
OpenTelemetry's is in no package registry that the tests use: it decodes the bytes with OpenTelemetry's own Python messages
(opentelemetry-proto), which refuse what is not OTLP."""

import http.server
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/monitoring"))

from follower import BINARY, FollowerTest  # noqa: E402
from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: E402
from monitored import Rank, Watched  # noqa: E402
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: E402
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from waiting import PATIENCE_S, wait_until  # noqa: E402

DONE, FAILED, MISUSED, PARTIAL = 0, 1, 2, 4


class OwnReceiver:
    """Not OpenTelemetry's collector: a server of our own that takes what its protocol says, and answers what a test wants."""

    def __init__(self, test):
        self.requests = []  # (path, headers, bytes), in order, those that were not taken included.
        self.answers = []  # (status, headers, body) of the next ones; then 200.
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, answer = receiver.answers.pop(0) if receiver.answers else (200, {}, b"")
                receiver.requests.append((self.path, dict(self.headers), body, status))  # Before anybody knows that it was answered.
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        test.addCleanup(thread.join)
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)

    def taken(self):
        """Decoded, as far as they were taken."""
        return [decode(body) for _, _, body, status in list(self.requests) if status == 200]


def unknown(message):
    """Fields that OpenTelemetry does not know, anywhere in it."""
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            count += sum(map(unknown, value if hasattr(value, "add") else [value]))
    return count


def decode(body):
    request = ExportMetricsServiceRequest.FromString(body)
    assert unknown(request) == 0
    return request


def attributes(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def points(request):
    """{(rank or None, metric): [(attributes, value)]} and what else must hold of each."""
    found = {}
    for resource in request.resource_metrics:
        of_resource = attributes(resource.resource.attributes)
        assert of_resource["service.name"] == "lockstep"
        for scope in resource.scope_metrics:
            assert scope.scope.name == "lockstep" and re.match(r"\d+\.\d+", scope.scope.version)
            for metric in scope.metrics:
                assert metric.description.endswith(".") and metric.unit, metric
                data = getattr(metric, metric.WhichOneof("data"))
                for point in data.data_points:
                    assert abs(point.time_unix_nano / 1e9 - time.time()) < 4 * PATIENCE_S
                    key = (of_resource.get("lockstep.rank"), metric.name)
                    found.setdefault(key, []).append((attributes(point.attributes), point.as_double))
    return found


class OtlpFollowTest(FollowerTest):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)

        class Holder:
            addCleanup = cls.addClassCleanup  # noqa: N815

        cls.daemon = Watched(Holder)
        cls.job = f"otlp-{os.getpid()}"
        cls.ranks = [Rank(Holder, cls.folder / "spans", rank, job=cls.job) for rank in range(2)]
        cls.stops = threading.Event()
        threads = [threading.Thread(target=cls.run_rank, args=(rank,)) for rank in cls.ranks]
        for thread in threads:
            thread.start()
            cls.addClassCleanup(thread.join)
        cls.addClassCleanup(cls.stops.set)
        cls.daemon.wait_for_steps(cls.job, len(cls.ranks), 12)

    @classmethod
    def run_rank(cls, rank):
        while not cls.stops.is_set():
            rank.do("step", 10, 10, 10, 5)
            rank.do("count", "tokens", 1000)
            rank.do("count", "loss", 0.25)
            rank.do("request", 2, 5, 0)

    def follow(self, receiver, *words, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        return self.start(self.daemon, "otlp", "--job", self.job, "--endpoint", receiver if isinstance(receiver, str) else receiver.url, *words,
                          environment={**clean, **environment})

    def test_opentelemetrys_messages_decode_what_a_receiver_of_our_own_takes(self):
        receiver = OwnReceiver(self)
        secrets = self.folder / "headers"
        secrets.touch(mode=0o600)
        secrets.write_text("# ours\nAuthorization: Bearer abc\nx-tenant: 7\n")
        process = self.follow(receiver, "--header-file", secrets)
        wait_until(lambda: len(receiver.taken()) >= 4, "metrics")
        counted = self.daemon.value("lockstep_steps_total", job_id=self.job, rank="0")
        wait_until(lambda: points(receiver.taken()[-1])[(0, "lockstep.step.count")][0][1] >= counted, "more steps")
        process.send_signal(signal.SIGINT)
        self.assertEqual(DONE, process.wait(PATIENCE_S))
        said = process.stderr.read()
        self.assertRegex(said, rf"follows job {self.job}: 2 ranks to {receiver.url}/v1/metrics")
        requests = receiver.taken()
        delivered = sum(len(values) for request in requests for values in points(request).values())
        self.assertIn(f"{delivered} points delivered\n", said)
        path, headers, _, _ = receiver.requests[0]
        self.assertEqual(("/v1/metrics", "application/x-protobuf", "Bearer abc", "7"),
                         (path, headers["Content-Type"], headers["Authorization"], headers["x-tenant"]))
        last = points(requests[-1])
        for rank in (0, 1):
            self.assertGreaterEqual(last[(rank, "lockstep.step.duration")][0][1], 0.035)  # Seconds, never shorter than asked for.
            shares = [values[0][1] for (of, name), values in last.items() if of == rank and re.match(r"lockstep\.step\.\w+\.ratio", name)]
            self.assertAlmostEqual(sum(shares), 1, delta=0.02)
            self.assertEqual(last[(rank, "lockstep.user.value")], [({"lockstep.user.name": "loss"}, 0.25)])
        self.assertEqual(last[(None, "lockstep.job.ranks")][0][1], 2)
        quantiles = {of["quantile"]: value for of, value in last[(None, "lockstep.serving.request.duration")]}
        self.assertEqual({0.5, 0.95, 0.99}, set(quantiles))
        self.assertGreaterEqual(quantiles[0.5], 0.01)
        self.assertEqual(last[(None, "lockstep.serving.request.duration")][0][0]["gen_ai.request.model"], "generate")
        self.assertNotIn((0, "lockstep.mfu"), last)

    def test_what_the_collector_cannot_take_now_is_sent_again(self):
        receiver = OwnReceiver(self)
        receiver.answers = [(429, {"Retry-After": "1"}, b""), (503, {}, b"busy"), (502, {}, b""), (504, {"Retry-After": "1"}, b"")]
        process = self.follow(receiver)
        wait_until(lambda: len(receiver.taken()) >= 2, "metrics")
        bodies = [(body, status) for _, _, body, status in receiver.requests]
        self.assertEqual([429, 503, 502, 504, 200], [status for _, status in bodies[:5]])
        self.assertEqual(1, len({body for body, _ in bodies[:5]}))  # The same, until it was taken.
        self.assertNotEqual(bodies[5][0], bodies[4][0])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(DONE, process.wait(PATIENCE_S))
        said = process.stderr.read()
        self.assertEqual(1, said.count("is tried again"))
        self.assertIn("answers again", said)

    def test_what_is_refused_or_has_no_room_is_counted(self):
        receiver = OwnReceiver(self)
        partial = ExportMetricsServiceResponse()
        partial.partial_success.rejected_data_points = 3
        partial.partial_success.error_message = "too old\x1b"
        receiver.answers = [(400, {}, b"what is this"), (200, {}, partial.SerializeToString())]
        process = self.follow(receiver)
        wait_until(lambda: len(receiver.requests) >= 3, "metrics")
        process.send_signal(signal.SIGINT)
        self.assertEqual(PARTIAL, process.wait(PATIENCE_S))
        said = process.stderr.read()
        first = len([0 for values in points(decode(receiver.requests[0][2])).values() for _ in values])
        self.assertRegex(said, "answered 400: what is this; what it refuses is dropped")
        self.assertRegex(said, r"takes only part of it: too old\?")
        self.assertIn(f", {first} dropped, 3 rejected", said)
        # Nobody there: two wait, older ones go, and the end does not wait for ever.
        gone = self.follow("http://127.0.0.1:1", "--queue", 2)
        lines = []
        while not lines or "the oldest request is dropped" not in lines[-1]:
            lines.append(gone.stderr.readline())
            self.assertTrue(lines[-1], lines)
        gone.send_signal(signal.SIGINT)
        self.assertEqual(PARTIAL, gone.wait(PATIENCE_S))
        said = "".join(lines) + gone.stderr.read()
        self.assertRegex(said, r": 0 points delivered, [1-9]\d* dropped, 0 rejected")
        self.assertIn("does not answer", said)

    def test_misuse(self):
        secrets = self.folder / "open"
        secrets.write_text("Authorization: Bearer abc\n")
        secrets.chmod(0o644)
        wrong = self.folder / "wrong"
        wrong.touch(mode=0o600)
        wrong.write_text("Bearer abc\n")
        for words, status, said in ((["--follow"], MISUSED, "--endpoint"), (["--follow", "--endpoint", "localhost:4318"], MISUSED, "http://"),
                                    (["--follow", "--endpoint", "http://h:1", "--header-file", secrets], MISUSED, "https://"),
                                    (["--follow", "--endpoint", "http://127.0.0.1:1", "--header-file", secrets], FAILED, "chmod 600"),
                                    (["--follow", "--endpoint", "http://127.0.0.1:1", "--header-file", wrong], FAILED, "Name: value"),
                                    (["--follow", "--endpoint", "http://127.0.0.1:1", "x"], MISUSED, "PATH"),
                                    (["x", "--endpoint", "http://127.0.0.1:1"], MISUSED, "--follow")):
            done = subprocess.run([BINARY, "export", "otlp", *map(str, words)], capture_output=True, text=True, check=False)
            self.assertEqual((status, True), (done.returncode, said in done.stderr), (words, done.stderr))
            self.assertNotIn("abc", done.stderr)


if __name__ == "__main__":
    unittest.main()
