#!/usr/bin/env python3
"""Hardware metrics: a real report of a T4, into which samples were put as the SQLite schema documents them, since no report
with sampled devices was to be had; then analysed, asked in SQL, and merged."""
import json
import lzma
import os
import re
import sqlite3
import subprocess
import tempfile
import unittest

import analyze_program as lockstep
from waiting import PATIENCE_S

REPORT = ("nsight", "nsightful", "power_iteration__baseline.sqlite.xz")
UPSTREAM = os.path.join(lockstep.SOURCE_ROOT, "tests", "timeline", "upstream_trace.proto")
TYPE_ID = 0x1000100000000  # its lowest byte is the device: TARGET_INFO_GPU.pwGpuId
PERIOD_NS = 100_000


def run(*words):
    done = subprocess.run([lockstep.PROGRAM, *words], capture_output=True, timeout=PATIENCE_S, check=False)
    if done.returncode not in (lockstep.DONE, lockstep.PARTIAL):
        raise AssertionError(f"{words}: exit status {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode()


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.report = os.path.join(cls.folder.name, "rank0.sqlite")
        with lzma.open(lockstep.data_path(*REPORT)) as packed, open(cls.report, "wb") as file:
            file.write(packed.read())
        database = sqlite3.connect(cls.report)
        database.execute("CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, "
                         "typeName TEXT NOT NULL, metricId INTEGER NOT NULL, metricName TEXT NOT NULL)")
        database.execute("CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, "
                         "value INTEGER NOT NULL)")
        database.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, 1, 'GPU Metrics [TU10x]', ?, ?)",
                             [(TYPE_ID, 7, "SMs Active [Throughput %]"), (TYPE_ID, 9, "GPC Clock Frequency [MHz]")])
        first, last = database.execute("SELECT min(start), max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        kernels = database.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
        cls.samples = []
        for time_ns in range(first, last, PERIOD_NS):
            busy = sum(max(0, min(end, time_ns) - max(start, time_ns - PERIOD_NS)) for start, end in kernels)
            cls.samples.append((time_ns, min(100, round(100 * busy / PERIOD_NS))))
        database.executemany(f"INSERT INTO GPU_METRICS VALUES (?, {TYPE_ID}, 7, ?)", cls.samples)
        database.executemany(f"INSERT INTO GPU_METRICS VALUES (?, {TYPE_ID}, 9, 1590)", [(time,) for time, _ in cls.samples])
        (cls.base,) = database.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
        database.commit()
        database.close()

    def test_the_summary_is_that_of_the_samples(self):
        self.assertGreater(len(self.samples), 20)
        data = json.loads(run("analyze", self.report, "--json"))["data"]
        clock, active = data["counters"]
        values = [value for _, value in self.samples]
        self.assertEqual([clock["name"], clock["unit"], clock["mean"]], ["GPC Clock Frequency", "MHz", 1590])
        self.assertEqual([active["rank"], active["device"], active["name"], active["unit"], active["sample_count"]],
                         [0, 0, "SMs Active", "%", len(values)])
        self.assertAlmostEqual(active["mean"], sum(values[:-1]) / (len(values) - 1), places=9)
        self.assertEqual([active["min"], active["max"]], [min(values), max(values)])
        self.assertEqual([row["series_count"] for row in data["counter_balance"]], [1, 1])
        self.assertNotIn("nsys_unread_tables", [row["code"] for row in json.loads(run("analyze", self.report, "--json"))["ledger"]
                                                if "GPU_METRICS" in row["message"]])

    def test_every_sample_can_be_asked_for(self):
        middle = self.base + self.samples[len(self.samples) // 2][0]
        asked = json.loads(run("query", self.report, "--format", "json", "-q",
                               "SELECT rank, device, trace_time_ns, value FROM counter_samples "
                               f"WHERE name = 'SMs Active' AND rank = 0 AND time_ns >= {middle}"))["rows"]
        self.assertEqual([(row["trace_time_ns"] - self.base, row["value"]) for row in asked],
                         [(time, value) for time, value in self.samples if self.base + time >= middle])

    def test_the_section_names_them(self):
        text = run("analyze", self.report, "--section", "counters")
        self.assertRegex(text, r"SMs Active\s+%\s+1\s")
        self.assertRegex(run("analyze", self.report, "--section", "counters", "--rank", "0"), r"GPC Clock Frequency\s+0\s+MHz")

    def test_merged_timelines_have_their_tracks(self):
        chrome = os.path.join(self.folder.name, "job.json")
        told = json.loads(run("merge", self.report, "-o", chrome, "--json"))["data"]
        self.assertEqual(told["counter_value_count"], 2 * len(self.samples))
        with open(chrome, encoding="utf-8") as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "C"]
        self.assertEqual([event["args"] for event in events if event["name"] == "SMs Active, device 0"],
                         [{"%": value} for _, value in self.samples])
        perfetto = os.path.join(self.folder.name, "job.pftrace")
        run("merge", self.report, "-o", perfetto)
        with open(perfetto, "rb") as file:
            text = subprocess.run([os.environ["LOCKSTEP_PROTOC"], f"--proto_path={os.path.dirname(UPSTREAM)}",
                                   "--decode=perfetto.protos.Trace", os.path.basename(UPSTREAM)], stdin=file,
                                  capture_output=True, text=True, check=True).stdout
        tracks = dict(re.findall(r'uuid: (\d+)\s+name: "((?:SMs|GPC)[^"]*)"', text))
        self.assertEqual(sorted(tracks.values()), ["GPC Clock Frequency, device 0", "SMs Active, device 0"])
        sequence_of, values = {}, {name: [] for name in tracks.values()}
        for body in text.split("\npacket {"):
            sequence = re.search(r"trusted_packet_sequence_id: (\d+)", body)
            track = re.search(r"track_uuid: (\d+)", body)
            if track and track[1] in tracks:
                sequence_of[sequence[1]] = tracks[track[1]]
            value = re.search(r"double_counter_value: ([\d.]+)", body)
            if value:
                self.assertIn("TYPE_COUNTER", body)
                values[sequence_of[sequence[1]]].append(float(value[1]))
        self.assertEqual(values["SMs Active, device 0"], [value for _, value in self.samples])
        self.assertIn('unit_name: "MHz"', text)


if __name__ == "__main__":
    unittest.main()
