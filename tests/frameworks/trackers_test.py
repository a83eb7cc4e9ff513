"""lockstep.integrations.trackers: what `lockstep stages` says arrives in TensorBoard and at an OpenTelemetry collector, under the same names."""

import copy
import http.server
import io
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
from contextlib import redirect_stderr

import tensorboardX
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest, ExportMetricsServiceResponse
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import lockstep
from lockstep.integrations import trackers
from lockstep.integrations._job import StagesJob

END_NS = 1_700_000_000_000_000_000
STAGES = ("optimizer", "checkpoint", "validation", "other", "gc", "input", "h2d", "forward", "backward", "comm_exposed")
MS = 1_000_000


def row(stage, frontier_ms, cost_ms):
    return {"stage": stage, "frontier_ns": frontier_ms * MS, "imbalance_ns": cost_ms * MS, "rank_ns": [frontier_ms * MS, 0],
            "leader_ns": [frontier_ms * MS, 0], "cost_ns": [0, cost_ms * MS]}


def window(first, count, input_ms, forward_ms, cost_ms):
    frontier = {"input": input_ms, "forward": forward_ms}
    return {"first_step": first, "last_step": first + count - 1, "step_count": count, "ns": (input_ms + forward_ms) * MS,
            "median_step_ns": MS, "frontier_ns": [frontier.get(stage, 0) * MS for stage in STAGES], "largest_stage": "input",
            "rank_cost_ns": [0, cost_ms * MS], "cost_ns": cost_ms * MS, "rank": 1 if cost_ms else None, "stage": "input" if cost_ms else None}


# Of two ranks and 10 steps of 200 ms: 150 in input, 60 of which rank 1 costs, and 50 in forward.
SUMMARY = {"schema": "lockstep.stages/1", "partial": False, "ledger": [], "data": {
    "verdict": {"answer": "straggler", "doubt": None, "rank": 1, "stage": "input", "cost_ns": 60 * MS, "cost_ratio": 0.3, "step_count": 8,
                "occasional": False, "confidence": 0.9, "sentence": "Rank 1 costs the job 30 %."},
    "step_count": 10, "left_out_step_count": 0, "round_count": 10, "total_ns": 200 * MS, "unmet_ns": 0, "tail_ns": 0,
    "ranks": [{"rank": rank, "host": "n0", "process_id": rank, "step_count": 10, "lost_record_count": 0, "ended_in_order": True} for rank in (0, 1)],
    "stages": [row(stage, {"input": 150, "forward": 50}.get(stage, 0), 60 if stage == "input" else 0) for stage in STAGES],
    "steps": [], "windows": [window(0, 4, 30, 10, 0), window(4, 6, 120, 40, 60)],
    "changes": [], "memory": {"ranks": [], "findings": [{"sentence": "Rank 0 leaks."}]}}}

SERIES = {
    "lockstep/step_ms": [(3, 10.0), (9, 160 / 6)],
    "lockstep/cost_ms": [(3, 0.0), (9, 10.0)],
    "lockstep/costly_rank": [(9, 1.0)],
    "lockstep/stage/input_share": [(3, 0.75), (9, 0.75)],
    "lockstep/stage/forward_share": [(3, 0.25), (9, 0.25)],
    "lockstep/rank/1/cost_ms": [(3, 0.0), (9, 10.0)],
}
TOTALS = {
    "lockstep/summary/step_count": 10.0,
    "lockstep/summary/rank_count": 2.0,
    "lockstep/summary/step_ms": 20.0,
    "lockstep/summary/straggler_rank": 1.0,
    "lockstep/summary/cost_share": 0.3,
    "lockstep/summary/confidence": 0.9,
    "lockstep/summary/stage/input_share": 0.75,
    "lockstep/summary/stage/input_imbalance_share": 0.3,
    "lockstep/summary/stage/forward_share": 0.25,
    "lockstep/summary/stage/forward_imbalance_share": 0.0,
    "lockstep/summary/rank/1/cost_share": 0.3,
}


class Collector(http.server.BaseHTTPRequestHandler):
    """OpenTelemetry's, as far as it takes metrics."""

    def do_POST(self):  # noqa: N802  (its name there)
        request = ExportMetricsServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, request))
        answer = ExportMetricsServiceResponse().SerializeToString()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class TrackersTest(unittest.TestCase):
    def check(self, found):
        """found: points (step or time, value) by name."""
        self.assertEqual(set(SERIES) | set(TOTALS), set(found))
        for name, points in SERIES.items():
            self.assertEqual([step for step, _ in points], [step for step, _ in found[name]], name)
            for (_, wanted), (_, value) in zip(points, found[name], strict=True):
                self.assertAlmostEqual(wanted, value, 5, name)
        for name, wanted in TOTALS.items():
            self.assertEqual(1, len(found[name]), name)
            self.assertAlmostEqual(wanted, found[name][0][1], 5, name)

    def test_tensorboard(self):
        with tempfile.TemporaryDirectory() as folder:
            with tensorboardX.SummaryWriter(folder) as writer:
                self.assertEqual(SUMMARY, trackers.log_stages(SUMMARY, writer))
            events = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0}).Reload()
            self.check({name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]})
            texts = {name.removesuffix("/text_summary"): events.Tensors(name)[0].tensor_proto.string_val[0].decode() for name in events.Tags()["tensors"]}
            self.assertEqual({"lockstep/verdict": "Rank 1 costs the job 30 %.", "lockstep/answer": "straggler", "lockstep/stage": "input",
                              "lockstep/memory": "Rank 0 leaks."}, texts)

    def collector(self, status=200):
        server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
        server.requests, server.status = [], status
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return server, OTLPMetricExporter(f"http://127.0.0.1:{server.server_port}/v1/metrics", timeout=60)

    def test_opentelemetry(self):
        server, exporter = self.collector()
        trackers.log_stages(SUMMARY, exporter, end_unix_ns=END_NS)
        ((path, request),) = server.requests
        self.assertEqual("/v1/metrics", path)
        (resource,) = request.resource_metrics
        (scope,) = resource.scope_metrics
        self.assertEqual("lockstep", scope.scope.name)
        metrics = {metric.name: metric for metric in scope.metrics}
        (verdict,) = metrics.pop("lockstep/verdict").gauge.data_points
        self.assertEqual("Rank 1 costs the job 30 %.", {pair.key: pair.value.string_value for pair in verdict.attributes}["verdict"])
        self.assertEqual({"ms"}, {metric.unit for name, metric in metrics.items() if name.endswith("_ms")})
        # The windows end one after the other, the last one with the training; and which steps those were.
        times = {END_NS - 160 * MS: 3, END_NS: 9}
        points = {name: [(times[point.time_unix_nano], point.as_double or point.as_int) for point in metric.gauge.data_points]
                  for name, metric in metrics.items()}
        self.assertEqual([(3, 3), (9, 9)], points.pop("lockstep/step"))
        self.check(points)

    def test_a_collector_that_refuses_and_a_target_that_is_none(self):
        _, exporter = self.collector(status=400)
        with self.assertLogs("opentelemetry"), self.assertRaisesRegex(RuntimeError, "did not take them"):
            trackers.log_stages(SUMMARY, exporter)
        with self.assertRaisesRegex(TypeError, "dict is no tracker"):
            trackers.log_stages(SUMMARY, {})

    def test_a_job_without_steps(self):
        empty = copy.deepcopy(SUMMARY)
        empty["data"].update(step_count=0, total_ns=0, windows=[])
        empty["data"]["verdict"].update(rank=None, stage=None, cost_ratio=0, answer="undecided")
        self.assertNotIn("lockstep/summary/step_ms", trackers.summary_scalars(empty))
        self.assertNotIn("lockstep/stage", trackers.summary_texts(empty))
        self.assertEqual([], list(trackers.windows(empty)))

    def test_what_goes_wrong_is_said_once_and_stops_nothing(self):
        said = io.StringIO()
        with redirect_stderr(said):
            job = StagesJob("nowhere")
            self.assertIsNone(job.finish([object()]))
            self.assertIsNone(job.finish())
        self.assertEqual(1, said.getvalue().count("lockstep: "), said.getvalue())

    def test_the_package_stays_cheap(self):
        script = "import sys, lockstep; print([name for name in sys.modules if 'integrations' in name or name in ('numpy', 'subprocess')])"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual("[]", done.stdout.strip())
        self.assertTrue((pathlib.Path(lockstep.__file__).parent / "integrations/ray.py").is_file())


if __name__ == "__main__":
    unittest.main()
