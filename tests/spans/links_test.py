"""Requests of one process and the spans of another that served them: arrows in both forms of a merged timeline."""

import collections
import decimal
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from span_files import LOCKSTEP, query

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
JOB = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "bin/lockstep_span_job"
PROTOC = os.environ.get("LOCKSTEP_PROTOC", "protoc")
TIMELINE = SOURCE / "tests/timeline"

sys.path.insert(0, str(TIMELINE))
import chrome_rules  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

REQUESTS = 12
# From whom to whom, on which ranks. What is inside its caller on one thread needs no arrow.
EXPECTED = {("generate", 0, "send", 0): REQUESTS, ("send", 0, "prefill", 1): REQUESTS, ("prefill", 1, "beside prefill", 1): REQUESTS}


class LinksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        cls.spans = cls.scratch / "spans"
        environment = {**os.environ, "LOCKSTEP_TRACE": str(cls.spans), "RANK": "0", "WORLD_SIZE": "2"}
        done = subprocess.run([JOB, "serve", str(REQUESTS)], env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0 and int(done.stdout, 16) == REQUESTS, done

    def merge(self, name, *arguments, source=None):
        path = self.scratch / name
        done = subprocess.run([LOCKSTEP, "merge", source or self.spans, "-o", path, "--json", "-q", *arguments], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        return path, json.loads(done.stdout)["data"]

    def perfetto_arrows(self, path):
        """Decoded by protoc under upstream's names: (caller, its rank, called, its rank), counted."""
        with open(path, "rb") as file:
            text = subprocess.run([PROTOC, f"--proto_path={TIMELINE}", "--decode=perfetto.protos.Trace", "upstream_trace.proto"],
                                  stdin=file, stdout=subprocess.PIPE, check=True).stdout.decode()
        process_of, default, names, clock = {}, {}, {}, {}
        began, ended = {}, {}
        for body in text.split("\npacket {"):
            sequence = re.search(r"trusted_packet_sequence_id: (\d+)", body)[1]
            if "track_descriptor {" in body and "thread {" in body:
                process_of[re.search(r"uuid: (\d+)", body)[1]] = int(re.search(r"thread \{\s+pid: (\d+)", body)[1])
            if "trace_packet_defaults {" in body:
                default[sequence], names[sequence] = re.search(r"track_uuid: (\d+)", body)[1], {}
            if "clock_snapshot {" in body:
                clock[sequence] = int(re.search(r"clock_id: 64\s+timestamp: (\d+)", body)[1])
            for iid, name in re.findall(r'event_names \{\s+iid: (\d+)\s+name: "([^"]*)"', body):
                names[sequence][iid] = name
            if "track_event {" not in body:
                continue
            clock[sequence] += int(re.search(r"timestamp: (\d+)", body)[1])
            own = re.search(r'\n    name: "([^"]*)"', body)
            interned = re.search(r"\n    name_iid: (\d+)", body)
            name = own[1] if own else names[sequence][interned[1]] if interned else None
            here = (name, process_of[default[sequence]], clock[sequence])
            for flow in re.findall(r"\n    flow_ids: (\d+)", body):
                self.assertNotIn(flow, began)
                began[flow] = here
            for flow in re.findall(r"terminating_flow_ids: (\d+)", body):
                self.assertNotIn(flow, ended)
                ended[flow] = here
        self.assertEqual(set(began), set(ended))
        for flow, (_, _, start) in began.items():
            self.assertLessEqual(start, ended[flow][2])
        return collections.Counter((*began[flow][:2], *ended[flow][:2]) for flow in began)

    def chrome_arrows(self, path):
        document = json.loads(path.read_text(), parse_float=decimal.Decimal)
        self.assertEqual([], chrome_rules.broken_rules(document))
        at = collections.defaultdict(list)
        for event in document["traceEvents"]:
            if event["ph"] == "X":
                at[event["pid"], event["tid"], event["ts"]].append(event["name"])
        ends = collections.defaultdict(dict)
        for event in document["traceEvents"]:
            if event["ph"] in "sf":
                self.assertEqual("link", event["name"])
                [name] = at[event["pid"], event["tid"], event["ts"]]
                ends[event["id"]][event["ph"]] = (name, event["pid"])
        return collections.Counter((*flow["s"], *flow["f"]) for flow in ends.values())

    def test_arrows_go_from_each_caller_to_whom_it_called(self):
        path, data = self.merge("job.pftrace")
        self.assertEqual((3 * REQUESTS, 0, REQUESTS), (data["link_flow_count"], data["backward_link_count"], data["request_count"]))
        self.assertEqual(EXPECTED, self.perfetto_arrows(path))
        path, again = self.merge("job.json")
        self.assertEqual(data["link_flow_count"], again["link_flow_count"])
        self.assertEqual(EXPECTED, self.chrome_arrows(path))

    def test_the_table_of_links_says_the_same(self):
        rows = query(self.spans, "select c.name as caller, c.rank as of, l.name as called, l.rank as by, count(*) as n from linked_spans l "
                                 "join linked_spans c on l.parent_span_id = c.span_id and l.trace_id = c.trace_id group by 1, 2, 3, 4")
        found = {(row["caller"], row["of"], row["called"], row["by"]): row["n"] for row in rows}
        self.assertEqual({**EXPECTED, ("prefill", 1, "inside prefill", 1): REQUESTS}, found)

    def test_selections_take_arrows_with_them(self):
        path, data = self.merge("one.pftrace", "--ranks", "1")
        self.assertEqual({("prefill", 1, "beside prefill", 1): REQUESTS}, self.perfetto_arrows(path))
        path, data = self.merge("none.pftrace", "--no-flows")
        self.assertEqual((0, REQUESTS), (data["link_flow_count"], data["request_count"]))
        self.assertEqual({}, self.perfetto_arrows(path))

    def test_requests_are_slices_of_their_own_with_their_context(self):
        path, _ = self.merge("args.json")
        events = json.loads(path.read_text())["traceEvents"]
        tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
        requests = [event for event in events if event["ph"] == "X" and event["name"] == "generate"]
        self.assertEqual({"requests"}, {tracks[event["pid"], event["tid"]] for event in requests})
        by_span = {event["args"]["span id"]: event for event in requests}
        self.assertEqual(REQUESTS, len(by_span))
        traces = {event["args"]["trace id"] for event in requests}
        self.assertEqual(REQUESTS, len(traces), "each begins a trace of its own")
        self.assertEqual(traces, {event["args"]["trace id"] for event in events if event["ph"] == "X" and event["name"] == "prefill"})
        self.assertEqual({"1"}, {event["args"]["outputs"] for event in requests})

    def test_read_back_a_merged_file_has_the_same_events(self):
        path, _ = self.merge("back.pftrace")
        counted = "select rank, name, count(*) as n, sum(duration_ns) as ns from events group by 1, 2 order by 1, 2"
        self.assertEqual(query(self.spans, counted), query(path, counted))


if __name__ == "__main__":
    unittest.main()
