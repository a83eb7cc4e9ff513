#!/usr/bin/env python3
"""`lockstep merge` from outside: what it writes obeys Perfetto's numbers and Chrome's rules and reads back to the same
tables; selections; refusals; exit statuses."""

import collections
import decimal
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import analyze_program as lockstep
import chrome_rules

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = os.path.join(lockstep.SOURCE_ROOT, "examples", "recorded")
PROTOC = os.environ.get("LOCKSTEP_PROTOC", "protoc")

# What a merged file cannot repeat: where it was read from, whose word the rank is, and how the clocks were before.
# Shapes of operators are not merged (docs/limits.md), so nothing that is counted from them comes back.
NOT_COMPARED = {"source", "rank_source", "clock", "flops", "flops_by_operator"}
# Instants on the rank's own clock: the merged file's are on the aligned one.
OWN_CLOCK = {"first_ns", "last_ns", "start_ns", "end_ns"}


def merge(*arguments):
    process = lockstep.run(["merge", "--json", "--quiet", *[str(argument) for argument in arguments]])
    error = process.stderr.decode("utf-8", "replace")
    if process.returncode < 0 or lockstep.CRASH.search(error):
        raise AssertionError(f"{process.returncode}: {error}")
    document = json.loads(process.stdout) if process.stdout.strip() else None
    return process.returncode, document, error


def differences(a, b, own_clock_moves=False, path="", found=None):
    """Paths at which two answers differ."""
    found = [] if found is None else found
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            if key in NOT_COMPARED or (own_clock_moves and key in OWN_CLOCK):
                continue
            differences(a.get(key), b.get(key), own_clock_moves, f"{path}.{key}", found)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            differences(x, y, own_clock_moves, f"{path}[{i}]", found)
    elif a != b:
        found.append(f"{path}: {str(a)[:60]} != {str(b)[:60]}")
    return found


class MergeCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def merged(self, name, *arguments):
        path = self.folder / name
        status, document, error = merge(*arguments, "-o", path)
        self.assertEqual(status, lockstep.DONE, error)
        return path, document["data"]

    def generated(self, *arguments):
        out = self.folder / "generated"
        subprocess.run([lockstep.GENERATOR, "--out", out, *arguments], check=True, stdout=subprocess.DEVNULL)
        return out

    def read_chrome(self, path):
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            return json.load(file, parse_float=decimal.Decimal)

    def check_same_tables(self, source, name="job.pftrace", own_clock_moves=False):
        path, _ = self.merged(name, source)
        before, after = lockstep.analyze_whole(source), lockstep.analyze_whole(path)
        self.assertEqual(differences(before.data, after.data, own_clock_moves), [])


class UpstreamCase(MergeCase):
    """Decoded by protoc under upstream's names, and put together again by Perfetto's rules."""

    def decode(self, path):
        with open(path, "rb") as file:
            text = subprocess.run([PROTOC, f"--proto_path={HERE}", "--decode=perfetto.protos.Trace", "upstream_trace.proto"],
                                  stdin=file, stdout=subprocess.PIPE, check=True).stdout.decode("utf-8")
        unknown = [line for line in text.splitlines() if re.match(r"\s*\d+(:| \{)", line)]
        self.assertEqual(unknown[:3], [], "fields that upstream does not have")
        return text

    def slices(self, text):
        """As chrome_rules.slices, and the flows: number of slices by flow id."""
        value = lambda body, key: (re.search(rf"\b{key}: (\S+)", body) or [None, None])[1]
        tracks, clock, names, default, stacks = {}, {}, {}, {}, collections.defaultdict(list)
        found, flows = collections.Counter(), collections.Counter()
        self.instants = []  # [(process, track, category, name, time)] of those with a category
        for body in text.split("\npacket {"):
            sequence = value(body, "trusted_packet_sequence_id")
            if "track_descriptor {" in body and "thread {" in body:
                descriptor = body[body.index("track_descriptor {"):]
                thread = descriptor[descriptor.index("thread {"):]
                tracks[value(descriptor, "uuid")] = (int(value(thread, "pid")),
                                                     re.search(r'thread_name: "((?:[^"\\]|\\.)*)"', thread)[1])
            if "trace_packet_defaults {" in body:
                default[sequence] = value(body, "track_uuid")
                names[sequence] = {}
            if "clock_snapshot {" in body:
                readings = dict(re.findall(r"clock_id: (\d+)\s+timestamp: (\d+)", body))
                self.assertEqual(readings["64"], readings["6"], "differences count from the trace clock")
                clock[sequence] = int(readings["64"])
            for iid, name in re.findall(r'event_names \{\s+iid: (\d+)\s+name: "((?:[^"\\]|\\.)*)"', body):
                names[sequence][iid] = name
            if "track_event {" not in body:
                continue
            clock[sequence] += int(value(body, "timestamp"))
            uuid = default[sequence]
            kind = value(body, "type")
            for flow in re.findall(r"flow_ids: (\d+)", body):
                flows[flow] += 1
            if kind == "TYPE_SLICE_BEGIN":
                event = body[body.index("track_event {"):]
                text_name = re.search(r'\n    name: "((?:[^"\\]|\\.)*)"', event)
                top_iid = re.search(r"\n    name_iid: (\d+)", event)
                name = text_name[1] if text_name else names[sequence][top_iid[1]]
                stacks[uuid].append((name, clock[sequence]))
            elif kind == "TYPE_INSTANT" and "categories:" in body:
                self.instants.append((*tracks[uuid], *re.search(r'categories: "(\w+)"', body).groups(),
                                      re.search(r'\n    name: "((?:[^"\\]|\\.)*)"', body)[1], clock[sequence]))
            elif kind == "TYPE_SLICE_END":
                name, start = stacks[uuid].pop()
                process, thread = tracks[uuid]
                found[(process, thread, name, start, clock[sequence] - start)] += 1
        self.assertEqual([uuid for uuid, stack in stacks.items() if stack], [], "slices without an end")
        return found, flows


class UpstreamNumbersTest(UpstreamCase):
    def check(self, source, *arguments):
        perfetto, data = self.merged("job.pftrace", source, *arguments)
        chrome, _ = self.merged("job.json", source, *arguments)
        text = self.decode(perfetto)
        found, flows = self.slices(text)
        # protoc escapes what JSON spells out: both as ASCII with the same escapes for the comparison.
        plain = lambda name: name.encode("utf-8").decode("unicode_escape").encode("latin-1").decode("utf-8")
        found = collections.Counter({(pid, plain(thread), plain(name), start, duration): count
                                     for (pid, thread, name, start, duration), count in found.items()})
        self.assertEqual(found, chrome_rules.slices(self.read_chrome(chrome)))
        self.assertEqual(sum(found.values()), data["slice_count"] + data["step_count"])
        self.assertEqual(len(flows), data["launch_flow_count"] + data["collective_flow_count"])
        self.assertTrue(all(count >= 2 for count in flows.values()))
        return text

    def test_the_recorded_job(self):
        text = self.check(RECORDED)
        ranks = re.findall(r'name: "(rank \d+)[^"]*"\s+process \{\s+pid: (\d+)[^}]*\}\s+sibling_order_rank: (\d+)', text)
        self.assertEqual(ranks, [(f"rank {i}", str(i), str(i)) for i in range(4)])
        root = text[:text.index("packet {", 10)]
        self.assertIn("process_ordering: PROCESS_ORDERING_EXPLICIT", root)
        self.assertIn("thread_ordering: THREAD_ORDERING_EXPLICIT", root)

    def test_a_generated_job_with_everything(self):
        text = self.check(self.generated("--ranks", "2", "--steps", "2", "--stacks", "--memory", "--offset-us", "0", "700"))
        self.assertIn("unit: UNIT_SIZE_BYTES", text)
        self.assertIn("extra_counter_values", text)


class LogsTest(UpstreamCase):
    """Lines of logs stand where their ranks' events of the same time stand, whatever the clocks say."""

    def setUp(self):
        super().setUp()
        self.source = self.generated("--ranks", "3", "--steps", "2", "--first-step", "10", "--offset-us", "0", "5000", "-3000")
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        self.said = {}  # text: name of the rank's event that begins when it was said
        for rank in range(3):
            [path] = [path for path in self.source.iterdir() if re.search(rf"rank-?_?{rank}\b", path.name)]
            trace = self.read_chrome(path)
            base = int(trace.get("baseTimeNanoseconds", 0))
            events = [(base + int(event["ts"] * 1000), event) for event in trace["traceEvents"] if event["ph"] == "X"]
            starts = collections.Counter(start for start, _ in events)
            alone = [(start, event) for start, event in events if starts[start] == 1 and event["cat"] == "cpu_op"]
            first, last = min(start for start, _ in events), max(start + int(event["dur"] * 1000) for start, event in events)
            line = lambda time_ns, level, text, of=rank: json.dumps({
                "time_ns": time_ns, "mono_ns": None, "level": level, "rank": of, "host": "node0", "source": "trainer", "text": text}, separators=(",", ":")) + "\n"
            if rank == 0:  # Of nobody knows whom: neither the line nor the file's name says it.
                (self.logs / "launcher.jsonl").write_text(line(last, "fatal", "of nobody", None), encoding="utf-8")
            with open(self.logs / f"rank{rank}.node0.jsonl", "w", encoding="utf-8") as log:
                say = lambda *what: log.write(line(*what))
                say(first - 1, "info", "before")
                for number, (start, event) in enumerate(alone[:40]):
                    text = f'line {number} of {rank} "é"'
                    self.said[text] = event["name"]
                    say(start, "error" if number % 8 == 0 else "info", text)
                say(last + 900_000_000, "fatal", f"the end of {rank}")
                say(last + 1_100_000_000, "fatal", "too late")

    def lines(self, chrome):
        """{text: (pid, time, level)}, and the start of each slice, by (pid, name)."""
        events = self.read_chrome(chrome)["traceEvents"]
        tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
        lines, starts = {}, collections.defaultdict(set)
        for event in events:
            if event["ph"] == "X":
                starts[event["pid"], event["name"]].add(event["ts"])
            if event.get("cat") == "log":
                self.assertEqual("log", tracks[event["pid"], event["tid"]])
                self.assertEqual("trainer", event["args"]["source"])
                self.assertNotIn(event["name"], lines)
                lines[event["name"]] = (event["pid"], event["ts"], event["args"]["level"])
        return lines, starts

    def test_lines_stand_at_what_began_when_they_were_said(self):
        chrome, data = self.merged("job.json", self.source, "--logs", self.logs)
        lines, starts = self.lines(chrome)
        self.assertGreater(len(self.said), 60)
        self.assertEqual({*self.said, *(f"the end of {rank}" for rank in range(3))}, set(lines))
        self.assertEqual((len(lines), 7), (data["log_line_count"], data["left_out_log_line_count"]))
        for text, name in self.said.items():
            rank, time, level = lines[text]
            self.assertEqual(str(rank), text.split()[3])
            self.assertIn(time, starts[rank, name], text)
            self.assertEqual("error" if int(text.split()[1]) % 8 == 0 else "info", level)
        self.assertEqual(chrome_rules.broken_rules(self.read_chrome(chrome)), [])

        # The same in Perfetto's form, and nothing of it is in the way when it is read back.
        perfetto, _ = self.merged("job.pftrace", self.source, "--logs", self.logs)
        self.slices(self.decode(perfetto))
        base = int(self.read_chrome(chrome)["baseTimeNanoseconds"])
        plain = lambda name: name.encode("utf-8").decode("unicode_escape").encode("latin-1").decode("utf-8")
        self.assertEqual({text: (rank, base + int(time * 1000)) for text, (rank, time, _) in lines.items()},
                         {plain(name): (rank, time) for rank, track, category, name, time in self.instants if (track, category) == ("log", "log")})
        bare, _ = self.merged("bare.pftrace", self.source)
        self.assertEqual(differences(lockstep.analyze_whole(bare).data, lockstep.analyze_whole(perfetto).data), [])

    def test_selections_hold_for_lines(self):
        chrome, data = self.merged("worst.json", self.source, "--logs", self.logs, "--log-level", "error", "--lanes", "device")
        lines, _ = self.lines(chrome)
        self.assertEqual({text for text in self.said if int(text.split()[1]) % 8 == 0} | {f"the end of {rank}" for rank in range(3)}, set(lines))
        chrome, data = self.merged("part.json", self.source, "--logs", self.logs, "--steps", "11", "--ranks", "1")
        steps = [event for event in self.read_chrome(chrome)["traceEvents"] if event["ph"] == "X" and event["name"] == "step 11"]
        [step] = steps
        lines, _ = self.lines(chrome)
        for _, time, _ in lines.values():
            self.assertTrue(step["ts"] <= time < step["ts"] + step["dur"])
        self.assertEqual(3 * 40 + 3 + 7, data["log_line_count"] + data["left_out_log_line_count"])

    def test_traces_that_do_not_say_when_they_were_take_no_lines(self):
        for path in self.source.iterdir():
            trace = json.loads(path.read_text(encoding="utf-8"))
            trace.pop("baseTimeNanoseconds")
            path.write_text(json.dumps(trace), encoding="utf-8")
        done = lockstep.run(["merge", str(self.source), "--logs", str(self.logs), "-o", str(self.folder / "undated.json")])
        self.assertEqual(lockstep.DONE, done.returncode, done.stderr)
        self.assertIn(b"129 log lines left out: the traces of their ranks have no start time", done.stdout)
        self.assertIn(b"1 log lines left out: they have no time, or no rank", done.stdout)
        lines, _ = self.lines(self.folder / "undated.json")
        self.assertEqual({}, lines)

    def test_refusals(self):
        for status, words, arguments in ((lockstep.MISUSED, "--logs PATH", ("--log-level", "error")),
                                         (lockstep.MISUSED, "expected trace", ("--logs", self.logs, "--log-level", "loud")),
                                         (lockstep.FAILED, "nowhere", ("--logs", self.folder / "nowhere"))):
            found, _, error = merge(self.source, "-o", self.folder / "a.json", *arguments)
            self.assertEqual(status, found, error)
            self.assertIn(words, error)


class ChromeRulesTest(MergeCase):
    def test_merged_json_breaks_no_rule(self):
        source = self.generated("--ranks", "4", "--steps", "3", "--memory", "--stacks", "--offset-us", "0", "900", "-400", "20")
        for name in ("job.json", "job.json.gz"):
            path, data = self.merged(name, source)
            document = self.read_chrome(path)
            self.assertEqual(chrome_rules.broken_rules(document), [])
            phases = collections.Counter(event["ph"] for event in document["traceEvents"])
            self.assertEqual(phases["X"], data["slice_count"] + data["step_count"])
            self.assertEqual(phases["s"], data["launch_flow_count"] + data["collective_flow_count"])
            self.assertEqual(phases["s"], phases["f"])
            self.assertGreater(phases["C"], 0)
            order = [event["args"]["sort_index"] for event in document["traceEvents"] if event["name"] == "process_sort_index"]
            self.assertEqual(order, [0, 1, 2, 3])

    def test_the_checker_finds_what_is_wrong(self):
        good = {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 1.0, "dur": 2.0}
        for change in ({"ph": "Q"}, {"ts": "1"}, {"dur": -1}, {"name": None}, {"ph": "E"}, {"ph": "B"}, {"ph": "s", "id": 3}):
            document = {"displayTimeUnit": "ns", "traceEvents": [dict(good, **change)]}
            self.assertNotEqual(chrome_rules.broken_rules(document), [], change)
        crossing = [good, dict(good, ts=2.0)]
        self.assertNotEqual(chrome_rules.broken_rules({"displayTimeUnit": "ns", "traceEvents": crossing}), [])
        self.assertEqual(chrome_rules.broken_rules({"displayTimeUnit": "ns", "traceEvents": [good]}), [])


class ReadBackTest(MergeCase):
    def test_the_recorded_job(self):
        for name in ("job.pftrace", "job.pftrace.gz", "job.tar"):
            self.check_same_tables(RECORDED, name)

    def test_generated_jobs(self):
        self.check_same_tables(self.generated("--ranks", "4", "--steps", "4", "--memory", "--stacks", "--straggler", "2:300"))

    def test_clocks_that_are_apart_come_together(self):
        source = self.generated("--ranks", "4", "--steps", "5", "--offset-us", "0", "5000", "-3000", "100")
        self.check_same_tables(source, own_clock_moves=True)
        path, _ = self.merged("again.pftrace", source)
        for row in lockstep.analyze_whole(path).data["ranks"]:
            self.assertEqual(row["clock"]["offset_ns"], 0)
            self.assertIsNotNone(row["clock"]["uncertainty_ns"])

    def test_a_merged_file_merges_to_itself(self):
        source = self.generated("--ranks", "3", "--steps", "2", "--offset-us", "0", "500", "-300")
        first, _ = self.merged("first.pftrace", source)
        second, _ = self.merged("second.pftrace", first)
        facts = lambda path: re.sub(rb'"source":"[^"]*"|"(?:offset|reference)_ns":-?\d+|"rank_source":"\w+"', b"",
                                    path.read_bytes())
        self.assertGreater(first.stat().st_size, 10000)
        before, after = lockstep.analyze_whole(first), lockstep.analyze_whole(second)
        self.assertEqual(differences(before.data, after.data), [])
        self.assertLess(abs(len(facts(first)) - len(facts(second))), 200)


class RealTracesTest(lockstep.DataCase, MergeCase):
    def setUp(self):
        lockstep.DataCase.setUp(self)
        MergeCase.setUp(self)

    def check_real(self, *parts):
        path = lockstep.data_path("traces", *parts)
        status, document, error = merge(path, "-o", self.folder / "job.pftrace")
        self.assertIn(status, (lockstep.DONE, lockstep.PARTIAL), error)
        before, after = lockstep.analyze(path), lockstep.analyze(self.folder / "job.pftrace")
        self.assertEqual(differences(before.data, after.data), [], parts)
        merge(path, "-o", self.folder / "job.json")
        chrome = self.read_chrome(self.folder / "job.json")
        self.assertEqual(chrome_rules.broken_rules(chrome), [], parts)
        self.assertGreater(document["data"]["slice_count"], 0)

    def test_eight_ranks_of_dlrm(self):
        self.check_real("param_dlrm_8rank_v100", "kineto")

    def test_traces_of_every_age_and_maker(self):
        for parts in (("hta_counters_memory", "cupti_profiler.json.gz"), ("hta_ddp_nccl_meta", "rank0.json.gz"),
                      ("hta_ns_resolution", "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"),
                      ("hta_critical_path", "alexnet.json.gz"), ("hta_trace_diff", "small_base.json.gz"),
                      ("hta_edge_cases", "old_category_names_rank1.json.gz"),
                      ("hta_edge_cases", "large_integer_rank-70.json.gz"),
                      ("tb_plugin_resnet50_w0", "worker0.1623143089861.pt.trace.json.gz"),
                      ("tracelens_single_gpu", "mi300_qwen1.5_0.5b.json.gz"), ("tracelens_b200_rank0of8", "eager_trace.json.gz")):
            with self.subTest(file=parts):
                self.check_real(*parts)


class SelectionTest(MergeCase):
    def setUp(self):
        super().setUp()
        self.source = self.generated("--ranks", "4", "--steps", "4", "--first-step", "10", "--stacks", "--memory",
                                     "--offset-us", "0", "5000", "-3000", "100")

    def test_ranks(self):
        path, data = self.merged("a.json", self.source, "--ranks", "0,2-3")
        self.assertEqual(data["ranks"], [0, 2, 3])
        self.assertEqual({event["pid"] for event in self.read_chrome(path)["traceEvents"]}, {0, 2, 3})

    def test_steps_keep_what_begins_in_them_whole(self):
        path, data = self.merged("a.pftrace", self.source, "--steps", "11-12")
        whole = lockstep.analyze_whole(self.source)
        part = lockstep.analyze_whole(path)
        self.assertGreater(data["left_out_slice_count"], 0)
        self.assertEqual({row["step"] for row in part.data["steps"]}, {11, 12})
        compute = lambda answer: {(row["rank"], row["step"]): row["compute_ns"] for row in answer.data["steps"]}
        for key, value in compute(part).items():
            self.assertEqual(value, compute(whole)[key], key)

    def test_a_stretch_of_time(self):
        _, everything = self.merged("all.pftrace", self.source)
        _, data = self.merged("a.pftrace", self.source, "--from", "10ms", "--to", "0.03s")
        self.assertGreaterEqual(data["first_ns"], everything["first_ns"] + 10_000_000)
        self.assertEqual(everything["slice_count"], data["slice_count"] + data["left_out_slice_count"])
        _, before = self.merged("b.pftrace", self.source, "--to", "10ms")
        _, after = self.merged("c.pftrace", self.source, "--from", "0.03s")
        self.assertEqual(before["slice_count"] + data["slice_count"] + after["slice_count"], everything["slice_count"])

    def test_lanes_and_flows(self):
        path, _ = self.merged("a.json", self.source, "--no-python", "--no-flows")
        events = self.read_chrome(path)["traceEvents"]
        self.assertFalse({"python_function"} & {event.get("cat") for event in events})
        self.assertFalse({"s", "t", "f"} & {event["ph"] for event in events})
        path, _ = self.merged("b.json", self.source, "--lanes", "device")
        slices = {event["cat"] for event in self.read_chrome(path)["traceEvents"] if event["ph"] == "X"}
        self.assertEqual(slices - {"user_annotation"}, slices & {"kernel", "gpu_memcpy", "gpu_memset"})
        self.assertEqual(chrome_rules.broken_rules(self.read_chrome(path)), [])


class RefusalTest(MergeCase):
    def refused(self, status, words, *arguments):
        got, document, error = merge(*arguments)
        self.assertEqual(got, status, error)
        self.assertIsNone(document)
        for word in words:
            self.assertIn(word, error)
        self.assertEqual([path.name for path in self.folder.iterdir()], [])

    def test_the_message_names_what_there_is(self):
        out = self.folder / "a.pftrace"
        self.refused(lockstep.MISUSED, ["no rank 9", "0-3"], RECORDED, "-o", out, "--ranks", "9")
        self.refused(lockstep.MISUSED, ["no step 99", "steps 4-8"], RECORDED, "-o", out, "--steps", "99")
        self.refused(lockstep.MISUSED, ["nothing is left"], RECORDED, "-o", out, "--from", "99s")

    def test_misuse(self):
        out = self.folder / "a.pftrace"
        self.refused(lockstep.MISUSED, [".pftrace"], RECORDED, "-o", self.folder / "a.txt")
        self.refused(lockstep.MISUSED, ["-o"], RECORDED)
        self.refused(lockstep.MISUSED, ["PATH"], "-o", out)
        self.refused(lockstep.MISUSED, ["--ranks", "3-1"], RECORDED, "-o", out, "--ranks", "3-1")
        self.refused(lockstep.MISUSED, ["--from", "unit"], RECORDED, "-o", out, "--from", "12")
        self.refused(lockstep.MISUSED, ["python", "known"], RECORDED, "-o", out, "--lanes", "pyhton")

    def test_failures(self):
        self.refused(lockstep.FAILED, ["no such file"], self.folder / "missing", "-o", self.folder / "a.pftrace")
        self.refused(lockstep.FAILED, ["cannot be created"], RECORDED, "-o", self.folder / "no" / "a.pftrace")
        self.refused(lockstep.FAILED, ["folder"], RECORDED, "-o", self.make_folder())

    def make_folder(self):
        folder = tempfile.TemporaryDirectory(suffix=".pftrace")
        self.addCleanup(folder.cleanup)
        return folder.name

    def test_what_there_is_of_a_damaged_job_is_written(self):
        source = self.folder / "job"
        shutil.copytree(RECORDED, source)
        for path in source.glob("rank3*"):
            path.write_bytes(path.read_bytes()[:20000])
        status, document, _ = merge(source, "-o", self.folder / "a.pftrace")
        self.assertEqual(status, lockstep.PARTIAL)
        self.assertTrue(document["partial"])
        self.assertTrue((self.folder / "a.pftrace").exists())

    def test_merged_json_of_several_ranks_says_what_to_give_instead(self):
        path, _ = self.merged("a.json", RECORDED)
        process = lockstep.run(["analyze", path])
        self.assertEqual(process.returncode, lockstep.FAILED)
        self.assertIn(b"holds 4 ranks", process.stderr)
        self.assertIn(b".pftrace", process.stderr)
        path, _ = self.merged("b.json", RECORDED, "--ranks", "2")
        self.assertEqual(len(lockstep.analyze(path).data["ranks"]), 1)

    def test_a_cut_merged_file_is_read_as_far_as_it_goes(self):
        path, _ = self.merged("a.pftrace", RECORDED)
        cut = self.folder / "cut.pftrace"
        cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])
        answer = lockstep.analyze(cut)
        self.assertEqual(answer.status, lockstep.PARTIAL)
        self.assertIn("truncated_file", answer.ledger_codes())


class ArchiveTest(MergeCase):
    def test_the_manifest_names_every_file_and_joins_their_clocks(self):
        path, _ = self.merged("a.tar", self.generated("--ranks", "4", "--steps", "2", "--ranks-per-host", "2", "--naming", "torch"))
        with tarfile.open(path) as archive:
            names = archive.getnames()
            manifest = json.load(archive.extractfile("perfetto_manifest.json"))["perfetto_manifest"]
        self.assertEqual(names, ["perfetto_manifest.json"] + [f"rank{i}.pftrace" for i in range(4)])
        self.assertEqual(manifest["version"], 1)
        files = manifest["files"]
        self.assertEqual([file["path"] for file in files], names[1:])
        machines = [file["machine"]["name"] for file in files]
        self.assertEqual(machines[0], machines[1])
        self.assertNotEqual(machines[0], machines[2])
        self.assertNotIn("clocks", files[1])
        self.assertEqual(files[2]["clocks"], {"clock": "BOOTTIME", "offset_ns": 0,
                                              "sync_to": {"file": "rank0.pftrace", "clock": "BOOTTIME"}})


if __name__ == "__main__":
    unittest.main()
