"""A real job of four ranks under torchrun, with spans, logs and Kineto's traces of the same steps: one timeline."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from pytorch import job_environment, python_with_torch, torchrun
from span_files import LOCKSTEP, ledger, lockstep, query
from waiting import PATIENCE_S

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
RANKS = 4
# Spans and Kineto read the same counter, but Kineto turns it to wall-clock time by a line of its own; and a rank may be
# interrupted between the two reads.
TYPICAL_NS = 20_000


def quantile(values, part):
    """On the line between the two nearest ranks."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class TorchJobTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        python = python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        cls.addClassCleanup(scratch.cleanup)
        cls.spans = pathlib.Path(scratch.name) / "spans"
        cls.traces = pathlib.Path(scratch.name) / "traces"
        cls.traces.mkdir()
        cls.logs = pathlib.Path(scratch.name + "-logs")
        cls.addClassCleanup(shutil.rmtree, cls.logs, ignore_errors=True)
        # Not where the traces are: it would be read as one of them.
        cls.merged = cls.logs / "merged.json"
        environment = job_environment(PYTHONPATH=os.path.join(os.environ["LOCKSTEP_BUILD"], "python"))
        command = torchrun(python, RANKS, SOURCE / "tests/spans/training_spans.py", cls.traces)
        plain = subprocess.run([*command, cls.logs / "plain"], capture_output=True, text=True, env=environment, timeout=PATIENCE_S)
        job = subprocess.run([*command, cls.logs / "traced"], capture_output=True, text=True, env={**environment, "LOCKSTEP_TRACE": str(cls.spans)}, timeout=PATIENCE_S)
        assert plain.returncode == 0 and job.returncode == 0, plain.stderr + job.stderr
        # Ranks may write into each other's lines.
        cls.results = [sorted(re.findall(r"rank \d: loss \d\.\d{6}", done.stdout)) for done in (plain, job)]

    def test_the_jobs_result_is_the_same(self):
        self.assertEqual(RANKS, len(self.results[0]))
        self.assertEqual(*self.results)

    def test_spans_join_the_trace_of_their_rank(self):
        rows = ledger(self.traces.parent)
        self.assertNotIn("rank_conflict", rows)
        self.assertEqual([{"n": RANKS}], query(self.traces.parent, "select count(*) as n from ranks"))
        marked = query(self.traces.parent, "select rank, name, count(*) as n from events where name like 'span %' group by rank, name")
        self.assertEqual({(rank, f"span {part}"): 8 for rank in range(RANKS) for part in ("forward", "backward")},
                         {(row["rank"], row["name"]): row["n"] for row in marked})
        # Steps are the profiler's, once.
        self.assertEqual([{"n": 8 * RANKS}], query(self.traces.parent, "select count(*) as n from steps"))
        # What is after the profiler's window is not in it.
        self.assertEqual([{"n": RANKS}], query(self.traces.parent, "select sum(count) as n from ledger where code = 'spans_outside_trace'"))
        self.assertEqual([{"n": RANKS}], query(self.traces.parent, "select count(*) as n from counters where name = 'loss' and sample_count >= 7"))

    def test_spans_are_around_the_operators_that_they_are_around(self):
        pairs = query(self.traces.parent, """
            select s.rank, r.start_ns - s.start_ns as before_ns, s.end_ns - r.end_ns as after_ns, s.track = r.track as same_thread
            from events s, events r where s.rank = r.rank and substr(s.name, 6) = substr(r.name, 7) and s.name like 'span %'
            and r.name like 'range %'
            and (select count(*) from events x where x.rank = s.rank and x.name = s.name and x.start_ns < s.start_ns) =
                (select count(*) from events y where y.rank = r.rank and y.name = r.name and y.start_ns < r.start_ns)""")
        self.assertEqual(2 * 8 * RANKS, len(pairs))
        self.assertTrue(all(pair["same_thread"] for pair in pairs))
        for side in ("before_ns", "after_ns"):
            margins = sorted(pair[side] for pair in pairs)
            print(f"range inside span, {side}: least {margins[0]}, median {margins[len(margins) // 2]}, most {margins[-1]}")
            # Never outside by more than the clocks are apart, and where nothing came between, as near as the calls are.
            self.assertGreater(margins[0], -TYPICAL_NS)
            self.assertLess(margins[0], 200_000)
        # Operators of the forward pass, by the spans alone.
        [inside] = query(self.traces.parent, """
            select count(*) as n from events s, events o where s.name = 'span forward' and o.name = 'aten::linear'
            and o.rank = s.rank and o.start_ns >= s.start_ns and o.end_ns <= s.end_ns""")
        self.assertEqual(2 * 8 * RANKS, inside["n"])

    def test_regions_and_the_merged_timeline_have_them(self):
        regions = {(row["rank"], row["name"]) for row in query(self.traces.parent, "select rank, name from regions")}
        self.assertIn((3, "span backward"), regions)
        done = subprocess.run([LOCKSTEP, "merge", self.traces.parent, "-o", self.merged], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        names = [event.get("name") for event in json.loads(self.merged.read_text())["traceEvents"]]
        self.assertEqual(8 * RANKS, names.count("span forward"))

    def test_one_timeline_holds_spans_operators_and_lines(self):
        done = subprocess.run([LOCKSTEP, "merge", self.traces.parent, "--logs", self.logs / "traced", "-o", self.merged], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        events = json.loads(self.merged.read_text())["traceEvents"]
        slices = [(event["pid"], event["ts"], event["ts"] + event["dur"], event["name"]) for event in events if event["ph"] == "X"]
        lines = [event for event in events if event.get("cat") == "log" and event["args"]["source"] == "trainer"]
        self.assertEqual(2 * 8 * RANKS, len(lines))
        slack_us = TYPICAL_NS / 1000
        for line in lines:
            part = line["name"].split()[0]
            around = [name for rank, start, end, name in slices
                      if rank == line["pid"] and start - slack_us <= line["ts"] <= end + slack_us]
            self.assertIn(f"span {part}", around, line)
            self.assertIn(f"range {part}", around, line)

    def test_lines_of_the_log_lie_in_the_spans_that_they_were_written_in(self):
        done = subprocess.run([LOCKSTEP, "logs", self.logs / "traced", "--clocks", self.traces.parent, "--json", "--no-fold"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(0, done.returncode, done.stderr)
        *lines, summary = map(json.loads, done.stdout.splitlines())
        self.assertEqual((RANKS, []), (summary["log_count"], summary["problems"]))
        # Ranks of one host have one clock, which needs no correction; where traces tell one, lines get the same.
        is_corrected = bool(query(self.traces.parent, "select rank from ranks where clock_basis = 'collectives'"))
        self.assertEqual("aligned" if is_corrected else "wall", summary["clock"])
        at = {(line["ranks"][0], line["text"]): line for line in lines if line["source"] == "trainer"}
        self.assertEqual({(rank, f"{part} {step}") for rank in range(RANKS) for part in ("forward", "backward") for step in range(8)}, set(at))
        spans = query(self.traces.parent, """select rank, substr(name, 6) as part, start_ns, end_ns,
            (select count(*) from events x where x.rank = s.rank and x.name = s.name and x.start_ns < s.start_ns) as number
            from events s where name like 'span %'""")
        self.assertEqual(len(at), len(spans))
        margins = []
        for span in spans:
            line = at[span["rank"], f"{span['part']} {span['number']}"]
            self.assertEqual("info" if span["part"] == "forward" else "warning", line["level"])
            margins.append(min(line["time_unix_ns"] - span["start_ns"], span["end_ns"] - line["time_unix_ns"]))
        print(f"line inside span: least {min(margins)} ns from its begin or end, median {sorted(margins)[len(margins) // 2]}")
        # Never outside by more than the clocks are apart, as with the profiler's ranges.
        self.assertGreater(min(margins), -TYPICAL_NS)
        # In the order of times, over all ranks.
        times = [line["time_unix_ns"] for line in lines]
        self.assertEqual(sorted(times), times)

    def test_tails_of_requests_are_those_that_the_job_measured(self):
        rows = query(self.traces.parent, "select * from inference_requests where kind = 'answer' order by rank")
        self.assertEqual([(rank, 40, 0) for rank in range(RANKS)], [(row["rank"], row["request_count"], row["failed_count"]) for row in rows])
        for rank, row in enumerate(rows):
            measured = json.loads((self.logs / f"traced/measured{rank}.json").read_text(encoding="utf-8"))
            for column, part in (("median_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
                least, most = quantile(measured["inside"], part), quantile(measured["around"], part)
                with self.subTest(rank=rank, column=column):
                    # Two clocks of one machine differ by less than a thousandth.
                    self.assertGreaterEqual(row[column], least * 0.999)
                    self.assertLessEqual(row[column], most * 1.001)
            self.assertLess(row["median_ns"], row["p95_ns"])

    def test_spans_alone_are_a_run_with_steps(self):
        report = lockstep("analyze", self.spans)
        self.assertEqual(8, report["data"]["job"]["step_count"])
        self.assertEqual([{"n": RANKS}], query(self.spans, "select count(*) as n from events where name = 'after the profiler'"))


if __name__ == "__main__":
    unittest.main()
