#!/usr/bin/env python3
"""Checks the trace generator against what real traces are like: valid JSON in every layout, streams in order, operators
nested, no kernel before its launch, and a truth file that an independent count confirms."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

GENERATOR = os.path.join(os.environ.get("LOCKSTEP_BUILD", "build/release"), "bin", "lockstep_trace_gen")
DEVICE_CATEGORIES = {"kernel": None, "gpu_memcpy": "memory", "gpu_memset": "memory"}


def generate(folder, *options):
    command = [GENERATOR, "--out", folder, "--layers", "6", "--steps", "3", "--ranks", "4", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(folder + ".truth.json") as file:
        return json.load(file)


def union(intervals):
    total, end = 0, None
    for start, stop in sorted(intervals):
        if end is None or start > end:
            total, end = total + stop - start, stop
        elif stop > end:
            total, end = total + stop - end, stop
    return total


def text_times(path):
    """Device intervals with times from the decimal text, so that no double rounds them."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as file:
        return json.load(file, parse_float=lambda text: exact_ns(text))["traceEvents"]


class Nanoseconds(int):
    """A time that was written with a fraction; already in nanoseconds."""


def exact_ns(text):
    whole, _, fraction = text.partition(".")
    return Nanoseconds(int(whole) * 1000 + int((fraction + "000")[:3]))


def ns(value):
    return int(value) if isinstance(value, Nanoseconds) else int(value) * 1000


class GeneratorTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def check_rank(self, path, truth):
        events = text_times(path)
        self.assertEqual(len(events), truth["event_count"])
        complete = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(complete), truth["complete_count"])
        streams, threads, launches = {}, {}, {}
        classes = {"compute": [], "communication": [], "memory": []}
        for event in complete:
            start = ns(event["ts"])
            stop = start + ns(event["dur"])
            category = event["cat"]
            if category in DEVICE_CATEGORIES:
                kind = DEVICE_CATEGORIES[category] or ("communication" if "nccl" in event["name"] else "compute")
                classes[kind].append((start, stop))
                streams.setdefault(event["tid"], []).append((start, stop, event["args"]["correlation"]))
            elif category == "cuda_runtime":
                launches[event["args"]["correlation"]] = start
            elif category in ("cpu_op", "user_annotation", "python_function"):
                threads.setdefault(event["tid"], []).append((start, stop))
        for rows in streams.values():
            rows.sort()
            for before, after in zip(rows, rows[1:]):
                self.assertLessEqual(before[1], after[0])
            for start, _, correlation in rows:
                self.assertGreaterEqual(start, launches.get(correlation, start))
        for rows in threads.values():
            open_ranges = []
            for start, stop in sorted(rows, key=lambda row: (row[0], -row[1])):
                while open_ranges and open_ranges[-1] <= start:
                    open_ranges.pop()
                if open_ranges:
                    self.assertLessEqual(stop, open_ranges[-1])
                open_ranges.append(stop)
        device = truth["device"]
        every = classes["compute"] + classes["communication"] + classes["memory"]
        self.assertEqual(union(every), device["busy_ns"])
        self.assertEqual(union(classes["compute"]), device["compute_ns"])
        self.assertEqual(union(classes["communication"]), device["communication_ns"])
        self.assertEqual(union(classes["memory"]), device["memory_ns"])
        both = union(classes["compute"] + classes["communication"])
        self.assertEqual(device["compute_ns"] + device["communication_ns"] - both, device["overlapped_communication_ns"])
        self.assertEqual(max(stop for _, stop in every) - min(start for start, _ in every), device["span_ns"])

    def test_every_style_is_valid_json_and_agrees_with_its_truth(self):
        for style in ("torch22", "current", "us", "indent4", "min"):
            with self.subTest(style=style):
                truth = generate(self.path(style), "--style", style, "--shapes", "--stacks", "--memory",
                                 "--offset-us", "0,37.5,-1200,9000", "--drift-ppm", "0,12,-7,0")
                for rank in truth["ranks"]:
                    self.check_rank(os.path.join(self.path(style), rank["file"]), rank)

    def test_every_kind_of_job_agrees_with_its_truth(self):
        kinds = {"ddp": [], "sharded": ["--sharded"], "tensor": ["--tensor-parallel", "2"],
                 "late": ["--overlap", "0"], "clipped": ["--clip", "2:4000:20000"],
                 "straggler": ["--straggler", "1:3000:loader", "--straggler", "3:2500:kernel:1"]}
        for name, options in kinds.items():
            with self.subTest(kind=name):
                truth = generate(self.path(name), "--gz", "1", *options)
                for rank in truth["ranks"]:
                    self.check_rank(os.path.join(self.path(name), rank["file"]), rank)

    def test_a_collective_ends_on_every_member_when_the_last_arrived_and_the_data_is_over(self):
        truth = generate(self.path("a"), "--straggler", "2:4000:kernel", "--jitter-us", "0.5")
        self.assertGreater(len(truth["collectives"]), 3)
        for collective in truth["collectives"]:
            ends = [start + length for start, length in zip(collective["arrival_ns"], collective["duration_ns"])]
            self.assertLess(max(ends) - min(ends), 500)
            self.assertEqual(min(collective["wait_ns"]), 0)
            self.assertGreaterEqual(min(collective["duration_ns"]), 400_000)

    def test_the_bytes_depend_on_the_seed_and_not_on_the_threads(self):
        def digest(name, *options):
            generate(self.path(name), *options)
            sums = []
            for entry in sorted(os.listdir(self.path(name))):
                with open(os.path.join(self.path(name), entry), "rb") as file:
                    sums.append(hashlib.sha256(file.read()).hexdigest())
            return sums
        one = digest("one", "--threads", "1")
        self.assertEqual(one, digest("two", "--threads", "2"))
        self.assertNotEqual(one, digest("three", "--seed", "2"))

    def test_a_cut_file_ends_inside_and_its_truth_counts_whole_events_only(self):
        truth = generate(self.path("cut"), "--cut", "1:0.7")
        path = os.path.join(self.path("cut"), truth["ranks"][1]["file"])
        with open(path) as file:
            text = file.read()
        self.assertEqual(len(text), truth["ranks"][1]["json_bytes"])
        with self.assertRaises(ValueError):
            json.loads(text)
        end = text.rfind("\n  }") + len("\n  }")
        with open(self.path("whole.json"), "w") as file:
            file.write(text[:end] + "]}")
        self.check_rank(self.path("whole.json"), truth["ranks"][1])

    def test_a_missing_rank_leaves_no_file(self):
        truth = generate(self.path("missing"), "--missing", "2")
        self.assertEqual(truth["ranks"][2]["file"], "")
        self.assertEqual(sorted(os.listdir(self.path("missing"))), ["rank0.json", "rank1.json", "rank3.json"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:], verbosity=1)
