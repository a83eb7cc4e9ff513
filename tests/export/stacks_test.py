"""Folded stacks and speedscope files: held against the traces read anew here, against the tables of the analysis, against
each other and against the rules of speedscope's file format."""

import collections
import decimal
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import analyze_program as lockstep  # noqa: E402

RECORDED = os.path.join(lockstep.SOURCE_ROOT, "examples", "recorded")
LANES = {"python_function": 0, "cpu_op": 1, "user_annotation": 1, "cuda_runtime": 2, "cuda_driver": 2}


def export(*arguments):
    done = lockstep.run(["export", *map(str, arguments), "--quiet"])
    if done.returncode != lockstep.DONE:
        raise AssertionError(f"{done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode()


def collapsed(*arguments):
    weights = {}
    for line in export("collapsed", *arguments).splitlines():
        stack, weight = line.rsplit(" ", 1)
        assert stack not in weights, f"twice: {stack}"
        weights[stack] = int(weight)
    return weights


def step_name(name):
    return "ProfilerStep" if name.startswith("ProfilerStep#") else name


def nanoseconds(micros):
    return int((decimal.Decimal(micros) * 1000).to_integral_value(decimal.ROUND_HALF_EVEN))


def stacks_of(path):
    """Self time by stack, from the trace itself: intervals are nested by start and length, a child ends with its parent."""
    with (lockstep.gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
        events = json.load(file, parse_float=str, parse_int=str)["traceEvents"]
    threads = collections.defaultdict(list)
    for index, event in enumerate(events):
        lane = LANES.get(event.get("cat"))
        if event.get("ph") != "X" or lane is None or event["name"].startswith("gloo:"):
            continue
        start, length = nanoseconds(event["ts"]), nanoseconds(event.get("dur", "0"))
        threads[event["pid"], event["tid"]].append((start, -length, lane, index, event["name"]))
    weights = collections.Counter()
    for rows in threads.values():
        placed = []  # (start, end, depth, path)
        around = []
        for start, minus_length, _, _, name in sorted(rows):
            while around and around[-1][1] <= start:
                around.pop()
            end = min(start - minus_length, around[-1][1]) if around else start - minus_length
            path_here = (around[-1][2] + ";" if around else "") + step_name(name).replace(";", ":")
            if around:
                weights[around[-1][2]] -= end - start
            weights[path_here] += end - start
            around.append((start, end, path_here))
            placed.append(path_here)
    return {stack: weight for stack, weight in weights.items() if weight > 0}


def fold(document):
    """A speedscope file as folded stacks. Checks what its format demands on the way."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert document["exporter"].startswith("lockstep@")
    frames = document["shared"]["frames"]
    names = []
    for frame in frames:
        assert isinstance(frame["name"], str) and frame["name"]
        assert set(frame) <= {"name", "file", "line", "col"}
        name = f"{frame['file']}({frame['line']}): {frame['name']}" if "file" in frame else frame["name"]
        names.append(step_name(name).replace(";", ":"))
    weights = collections.Counter()
    for profile in document["profiles"]:
        assert profile["unit"] == "nanoseconds" and profile["name"]
        start, end = profile["startValue"], profile["endValue"]
        assert start <= end
        if profile["type"] == "sampled":
            assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
            assert len(profile["samples"]) == len(profile["weights"]) and sum(profile["weights"]) == end - start
            for stack, weight in zip(profile["samples"], profile["weights"]):
                assert stack and all(0 <= frame < len(frames) for frame in stack) and weight >= 0
                weights[";".join(names[frame] for frame in stack)] += weight
            continue
        assert profile["type"] == "evented"
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        stack, before = [], start
        for event in profile["events"]:
            assert set(event) == {"type", "frame", "at"} and before <= event["at"] <= end, event
            if stack:
                weights[";".join(names[frame] for frame in stack)] += event["at"] - before
            before = event["at"]
            if event["type"] == "O":
                assert 0 <= event["frame"] < len(frames)
                stack.append(event["frame"])
            else:
                assert event["type"] == "C" and stack.pop() == event["frame"], "ends are not nested"
        assert not stack
    return {stack: weight for stack, weight in weights.items() if weight > 0}


class RecordedJobTest(unittest.TestCase):
    def test_folded_stacks_are_those_of_the_trace(self):
        for rank in range(4):
            wanted = stacks_of(os.path.join(RECORDED, f"rank{rank}.json.gz"))
            self.assertGreater(len(wanted), 50)
            self.assertEqual(wanted, collapsed(RECORDED, "--ranks", rank))

    def test_ranks_add_up_and_can_be_kept_apart(self):
        whole = collapsed(RECORDED)
        apart = collapsed(RECORDED, "--per-rank")
        self.assertEqual({"rank 0", "rank 1", "rank 2", "rank 3"}, {stack.split(";")[0] for stack in apart})
        added = collections.Counter()
        for stack, weight in apart.items():
            added[stack.split(";", 1)[1]] += weight
        self.assertEqual(whole, dict(added))

    def test_speedscope_has_the_same_stacks(self):
        document = json.loads(export("speedscope", RECORDED, "--ranks", "0"))
        self.assertEqual(collapsed(RECORDED, "--ranks", "0"), fold(document))
        names = [profile["name"] for profile in document["profiles"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all(name.startswith("rank 0, thread ") for name in names))

    def test_speedscope_puts_ranks_on_one_clock(self):
        document = json.loads(export("speedscope", RECORDED))
        fold(document)
        firsts = [min(event["at"] for event in profile["events"]) for profile in document["profiles"]]
        rows = lockstep.analyze_whole(RECORDED).data["ranks"]
        span = max(row["last_ns"] - row["clock"]["offset_ns"] for row in rows) - min(
            row["first_ns"] - row["clock"]["offset_ns"] for row in rows)
        self.assertGreaterEqual(min(firsts), 0)
        self.assertLess(max(profile["endValue"] for profile in document["profiles"]), span + 100_000)

    def test_steps_of_a_selection_add_up_to_the_whole_of_the_steps(self):
        steps = sorted({row["step"] for row in lockstep.analyze_whole(RECORDED).data["steps"]})
        added = collections.Counter()
        for step in steps:
            added.update(collapsed(RECORDED, "--steps", step))
        self.assertEqual(collapsed(RECORDED, "--steps", f"{steps[0]}-{steps[-1]}"), dict(added))
        document = json.loads(export("speedscope", RECORDED, "--ranks", "0", "--steps", steps[1]))
        self.assertEqual(collapsed(RECORDED, "--ranks", "0", "--steps", steps[1]), fold(document))

    def test_what_is_not_there_cannot_be_selected_and_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            for flags in (["--ranks", "7"], ["--steps", "999"], ["--ranks", "x"]):
                for form in ("collapsed", "speedscope"):
                    done = lockstep.run(["export", form, RECORDED, "-o", path, *flags])
                    self.assertEqual(lockstep.MISUSED, done.returncode, flags)
                    self.assertFalse(os.path.exists(path))


class PlantedJobTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.traces = os.path.join(holder.name, "traces")
        lockstep.generate(cls.traces, "--ranks", 2, "--steps", 3, "--layers", 4)
        cls.with_python = os.path.join(holder.name, "python")
        lockstep.generate(cls.with_python, "--ranks", 1, "--steps", 2, "--layers", 2, "--stacks")
        cls.answer = lockstep.analyze_whole(cls.traces)

    def test_host_time_by_last_frame_is_the_operators_own_time(self):
        last = collections.Counter()
        for stack, weight in collapsed(self.traces).items():
            last[stack.rsplit(";", 1)[-1]] += weight
        own = collections.Counter()
        for row in self.answer.data["operators"]:
            own[step_name(row["name"])] += row["cpu_self_ns"]
        self.assertEqual({name: time for name, time in own.items() if time > 0},
                         {name: time for name, time in last.items() if name in own})
        self.assertTrue(any(name.startswith("cu") for name in last if name not in own))  # calls of the runtime

    def test_device_time_is_that_of_every_event_and_goes_to_the_launching_operator(self):
        weights = collapsed(self.traces, "--by", "device")
        self.assertEqual(sum(row["total_ns"] for row in self.answer.data["kernels"]), sum(weights.values()))
        by_operator = collections.Counter()
        by_kernel = collections.Counter()
        for stack, weight in weights.items():
            frames = stack.split(";")
            by_kernel[frames[-1]] += weight
            if len(frames) > 1:
                by_operator[frames[-2]] += weight
        wanted = collections.Counter()
        for row in self.answer.data["operators"]:
            wanted[step_name(row["name"])] += row["device_self_ns"]
        for name, time in wanted.items():
            self.assertEqual(time, by_operator[name], name)
        kernels = collections.Counter()
        for row in self.answer.data["kernels"]:
            kernels[row["name"].replace(";", ":")] += row["total_ns"]
        self.assertEqual(dict(kernels), dict(by_kernel))

    def test_speedscope_samples_are_the_same_stacks(self):
        document = json.loads(export("speedscope", self.traces, "--by", "device"))
        self.assertEqual({"sampled"}, {profile["type"] for profile in document["profiles"]})
        wanted = {stack: weight for stack, weight in collapsed(self.traces, "--by", "device").items()
                  if not stack.startswith("(no launch in the file)")}
        self.assertEqual(wanted, fold(document))

    def test_python_frames_have_file_and_line(self):
        document = json.loads(export("speedscope", self.with_python))
        with_file = [frame for frame in document["shared"]["frames"] if "file" in frame]
        self.assertTrue(with_file)
        self.assertTrue(all(isinstance(frame["line"], int) and "(" not in frame["name"][:1] for frame in with_file))
        fold(document)
        stacks = collapsed(self.with_python)
        self.assertTrue(any(".py(" in stack and "aten::" in stack for stack in stacks))


class RealTracesTest(lockstep.DataCase):
    def test_device_time_adds_up_to_that_of_every_event(self):
        for name in ("param_dlrm_8rank_v100", "tb_plugin_resnet50_w0", "hta_ns_resolution"):
            path = lockstep.data_path("traces", name)
            answer = lockstep.analyze(path)
            done = lockstep.run(["export", "collapsed", "--by", "device", "--quiet", path])
            self.assertEqual(answer.status, done.returncode)
            weights = [int(line.rsplit(" ", 1)[1]) for line in done.stdout.decode().splitlines()]
            self.assertEqual(sum(row["total_ns"] for row in answer.data["kernels"]), sum(weights), name)
            self.assertGreater(len(weights), 50)


if __name__ == "__main__":
    unittest.main()
