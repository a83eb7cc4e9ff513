"""`lockstep export otlp`: read by OpenTelemetry's own messages, and linked as the program linked it."""

import base64
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

JOB = pathlib.Path(__file__).with_name("python_job.py")


def parse(text):
    """OTLP's JSON differs from protobuf's in the ids, which are hexadecimal."""
    document = json.loads(text)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for field in {"traceId", "spanId", "parentSpanId"} & set(span):
                    span[field] = base64.b64encode(bytes.fromhex(span[field])).decode()
    return json_format.ParseDict(document, ExportTraceServiceRequest())


class OtlpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            environment = {**os.environ, "LOCKSTEP_TRACE": folder, "RANK": "3",
                           "PYTHONPATH": os.path.join(os.environ["LOCKSTEP_BUILD"], "python")}
            subprocess.run([os.environ["LOCKSTEP_PYTHON_BASE"], JOB], env=environment, check=True, stdout=subprocess.DEVNULL)
            done = subprocess.run([os.environ["LOCKSTEP_BINARY"], "export", "otlp", folder], capture_output=True, text=True)
            assert done.returncode in (0, 4), done.stderr
            cls.request = parse(done.stdout)
            cls.said = done.stderr

    def test_a_rank_is_a_resource(self):
        [resource] = self.request.resource_spans
        attributes = {pair.key: pair.value for pair in resource.resource.attributes}
        self.assertEqual(3, attributes["lockstep.rank"].int_value)
        self.assertGreater(attributes["process.pid"].int_value, 1)
        self.assertIn("40 spans of 1 traces", self.said)

    def test_spans_are_linked_as_the_program_linked_them(self):
        spans = list(self.request.resource_spans[0].scope_spans[0].spans)
        self.assertEqual({bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736")}, {span.trace_id for span in spans})
        self.assertEqual(40, len({span.span_id for span in spans}))
        requests = {span.span_id: span for span in spans if span.kind == Span.SPAN_KIND_SERVER}
        inside = [span for span in spans if span.kind == Span.SPAN_KIND_INTERNAL]
        self.assertEqual((20, 20), (len(requests), len(inside)))
        self.assertEqual({bytes.fromhex("00f067aa0ba902b7")}, {span.parent_span_id for span in requests.values()})
        for span in inside:
            around = requests[span.parent_span_id]
            self.assertEqual("prefill", span.name)
            self.assertLessEqual(around.start_time_unix_nano, span.start_time_unix_nano)
            self.assertLessEqual(span.end_time_unix_nano, around.end_time_unix_nano)
        failed = [span for span in requests.values() if span.status.code == Status.STATUS_CODE_ERROR]
        self.assertEqual(2, len(failed))
        for span in requests.values():
            self.assertEqual(0 if span in failed else 1, len(span.events))


if __name__ == "__main__":
    unittest.main()
