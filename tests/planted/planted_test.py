#!/usr/bin/env python3
"""Traces with planted truth through the whole program: what was planted must come out. Breakdown to the nanosecond,
clocks within 10 us, the planted straggler first, and the same answer whatever the order of files or the threads."""

import copy
import os
import random
import tarfile
import tempfile
import unittest

import analyze_program as lockstep

CLOCK_NS = 10_000
BREAKDOWN = ("span_ns", "busy_ns", "compute_ns", "communication_ns", "overlapped_communication_ns",
             "exposed_communication_ns", "memory_ns", "idle_ns")


class PlantedCase(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def generate(self, name, *options):
        defaults = {"--ranks": 4, "--steps": 4, "--layers": 6}
        for option in options:
            defaults.pop(option, None)
        flat = [part for pair in defaults.items() for part in pair]
        return lockstep.generate(self.path(name), *flat, *options)

    def check_breakdown(self, answer, truth):
        written = [rank for rank in truth["ranks"] if rank["file"]]
        self.assertEqual(len(answer.data["breakdown"]), len(written))
        for rank in written:
            row = answer.row("breakdown", rank=rank["rank"])
            self.assertEqual(row["basis"], "device")
            self.assertEqual({key: row[key] for key in BREAKDOWN}, {key: rank["device"][key] for key in BREAKDOWN},
                             f"rank {rank['rank']}")
            self.assertEqual(answer.row("ranks", rank=rank["rank"])["event_count"], rank["event_count"])

    def check_clocks(self, answer, truth, tolerance_ns=CLOCK_NS):
        for rank in truth["ranks"]:
            row = answer.row("ranks", rank=rank["rank"])
            clock = row["clock"]
            for instant, wanted in ((row["first_ns"], rank["offset_start_ns"]), (row["last_ns"], rank["offset_end_ns"])):
                ours = clock["offset_ns"] + clock["drift_ppm"] * 1e-6 * (instant - clock["reference_ns"])
                self.assertLessEqual(abs(ours - wanted), tolerance_ns, f"rank {rank['rank']}: {clock}, not {wanted}")

    def check_collectives(self, answer, truth, tolerance_ns):
        ours = {(row["group"], row["sequence"], row["name"]): row for row in answer.data["collectives"]}
        self.assertEqual(len(answer.data["collectives"]), len(truth["collectives"]))
        by_start = sorted(answer.data["collectives"], key=lambda row: min(row["arrival_ns"]))
        planted = sorted(truth["collectives"], key=lambda row: min(row["arrival_ns"]))
        for row, wanted in zip(by_start, planted):
            self.assertEqual(row["name"], wanted["name"])
            self.assertEqual(row["ranks"], wanted["ranks"])
            for rank, wait_ns, wanted_ns in zip(row["ranks"], row["wait_ns"], wanted["wait_ns"]):
                self.assertLessEqual(abs(wait_ns - wanted_ns), tolerance_ns, (row["name"], row["sequence"], rank))
        return ours


class CriticalPathTest(PlantedCase):
    """The chain that fixes each step runs through what was planted, and lasts as long as the step."""

    def check(self, name, straggler, *options):
        rank, delay_us, by = straggler.split(":")
        self.generate(name, "--ranks", "8", "--straggler", straggler, *options)
        path = lockstep.analyze_whole(self.path(name)).data["critical_path"]
        delay_ns = lockstep.to_ns(float(delay_us))
        self.assertEqual(len(path["steps"]), 4)
        for step in path["steps"]:
            rows = [row for row in path["rows"] if row["step"] == step["step"]]
            self.assertEqual(step["path_ns"], step["step_ns"])
            self.assertEqual(sum(row["path_ns"] for row in rows), step["path_ns"])
            category = {"kernel": "compute", "loader": "data_loader", "host": "host"}[by]
            of_rank = [row for row in rows if row["rank"] == int(rank)]
            self.assertGreaterEqual(sum(row["path_ns"] for row in of_rank if row["category"] == category), delay_ns)
            self.assertGreater(sum(row["path_ns"] for row in of_rank), step["path_ns"] // 2)
            slack = {row["rank"]: row["slack_ns"] for row in step["slack"]}
            self.assertEqual(slack[int(rank)], 0)
        return path

    def test_a_slow_kernel(self):
        self.check("kernel", "5:4000:kernel")

    def test_a_slow_loader_on_shifted_clocks(self):
        self.check("loader", "2:6000:loader", "--offset-us=0,500,-70,900,3,-20000,7,1")

    def test_a_stalled_host(self):
        self.check("host", "6:9000:host")

    def test_a_slow_loader_without_a_device(self):
        path = self.check("cpu", "3:9000:loader", "--cpu-only")
        names = {row["name"] for row in path["rows"] if row["category"] == "data_loader"}
        self.assertTrue(any("DataLoader" in (name or "") for name in names), names)


class BreakdownTest(PlantedCase):
    def test_every_layout_of_the_json(self):
        for style in ("torch22", "current", "us", "indent4", "min"):
            with self.subTest(style=style):
                truth = self.generate(style, "--style", style, "--shapes", "--stacks", "--memory", "--straggler", "1:700:kernel")
                self.check_breakdown(lockstep.analyze_whole(self.path(style)), truth)

    def test_every_kind_of_parallelism(self):
        for name, options in {"sharded": ["--sharded"], "tensor": ["--tensor-parallel", "2"],
                              "both": ["--tensor-parallel", "2", "--sharded"], "one": ["--ranks", "1"]}.items():
            with self.subTest(kind=name):
                truth = self.generate(name, *options)
                self.check_breakdown(lockstep.analyze_whole(self.path(name)), truth)

    def test_gzip_zstd_and_tar(self):
        plain = self.generate("plain")
        self.generate("gzip", "--gz", "6")
        self.generate("zstd", "--zst", "3")
        answers = {name: lockstep.analyze_whole(self.path(name)) for name in ("plain", "gzip", "zstd")}
        for suffix, mode, source in ((".tar", "w", "plain"), (".tar.gz", "w:gz", "plain"), ("2.tar", "w", "gzip")):
            path = self.path("traces" + suffix)
            with tarfile.open(path, mode) as archive:
                archive.add(self.path(source), arcname="traces")
            answers[suffix] = lockstep.analyze_whole(path)
        for name, answer in answers.items():
            with self.subTest(container=name):
                self.check_breakdown(answer, plain)

    def test_drift_and_offset_change_nothing_within_a_rank(self):
        truth = self.generate("drift", "--offset-us", "0,500000,-7000.125,3", "--drift-ppm", "0,40,-25,3")
        self.check_breakdown(lockstep.analyze_whole(self.path("drift")), truth)

    def test_planted_overlap(self):
        for ratio in ("0", "0.5", "1"):
            with self.subTest(overlap=ratio):
                truth = self.generate("overlap" + ratio, "--overlap", ratio, "--bucket-layers", "2", "--transfer-us", "900")
                answer = lockstep.analyze_whole(self.path("overlap" + ratio))
                self.check_breakdown(answer, truth)
                row = answer.row("breakdown", rank=0)
                self.assertAlmostEqual(row["communication_overlap_ratio"],
                                       row["overlapped_communication_ns"] / row["communication_ns"], delta=1e-9)
        none = lockstep.analyze_whole(self.path("overlap0")).row("breakdown", rank=0)["communication_overlap_ratio"]
        full = lockstep.analyze_whole(self.path("overlap1")).row("breakdown", rank=0)["communication_overlap_ratio"]
        self.assertLess(none, 0.05)
        self.assertGreater(full, 0.5)

    def test_idle_by_cause(self):
        for name, options in {"loader": ["--loader-us", "5000"], "exposed": ["--overlap", "0", "--transfer-us", "2000"],
                              "stall": ["--straggler", "0:9000:host"]}.items():
            with self.subTest(cause=name):
                truth = self.generate(name, *options)
                answer = lockstep.analyze_whole(self.path(name))
                for rank in truth["ranks"]:
                    for stream in rank["idle"]:
                        row = answer.row("idle", rank=rank["rank"], stream=stream["stream"])
                        for key in ("host_wait_ns", "kernel_wait_ns", "other_ns"):
                            self.assertEqual(row[key], stream[key], (rank["rank"], stream["stream"], key))

    def test_a_data_loader_is_what_the_host_did_while_the_device_was_idle(self):
        truth = self.generate("loader", "--loader-us", "20000")
        answer = lockstep.analyze_whole(self.path("loader"))
        for row in answer.data["idle_host"]:
            parts = [row[key] for key in ("runtime_ns", "data_loader_ns", "operator_ns", "unknown_ns")]
            self.assertEqual(sum(parts), answer.row("breakdown", rank=row["rank"])["idle_ns"])
            # The first step's loader lies before the first device event, outside the span.
            self.assertGreaterEqual(row["data_loader_ns"], (truth["step_count"] - 1) * 19_000_000)


class ClockTest(PlantedCase):
    def test_offsets_are_found_within_ten_microseconds(self):
        offsets = {"same host": "0,0,0,0", "near": "0,37.5,-120,9", "far": "250,-9000,1200000,-37", "reference": "777,777,777,777"}
        for index, (name, text) in enumerate(offsets.items()):
            with self.subTest(offsets=name):
                truth = self.generate(f"clock{index}", "--offset-us=" + text, "--jitter-us", "4", "--ranks-per-host", "1",
                                      "--straggler", "2:3000:loader")
                self.check_clocks(lockstep.analyze_whole(self.path(f"clock{index}")), truth)

    def test_drift_over_a_long_window(self):
        truth = self.generate("long", "--steps", "60", "--layers", "10", "--loader-us", "60000", "--ranks-per-host", "1",
                              "--offset-us=0,400,-9000,120000", "--drift-ppm=0,18,-31,4", "--jitter-us", "2")
        self.assertGreater(truth["span_ns"], 4_000_000_000)
        answer = lockstep.analyze_whole(self.path("long"))
        self.check_clocks(answer, truth)
        for rank in truth["ranks"]:
            clock = answer.row("ranks", rank=rank["rank"])["clock"]
            self.assertAlmostEqual(clock["drift_ppm"], rank["drift_ppm"], delta=2.0)

    def test_offsets_reach_across_groups(self):
        truth = self.generate("groups", "--ranks", "8", "--tensor-parallel", "2", "--ranks-per-host", "2",
                              "--offset-us=0,0,800,800,-350,-350,12000,12000")
        self.check_clocks(lockstep.analyze_whole(self.path("groups")), truth)

    def test_the_stated_uncertainty_covers_the_error(self):
        truth = self.generate("honest", "--jitter-us", "6", "--ranks-per-host", "1", "--offset-us=0,90,-55,4000")
        answer = lockstep.analyze_whole(self.path("honest"))
        for rank in truth["ranks"][1:]:
            clock = answer.row("ranks", rank=rank["rank"])["clock"]
            self.assertIsNotNone(clock["uncertainty_ns"])
            self.assertLessEqual(abs(clock["offset_ns"] - rank["offset_start_ns"]), max(clock["uncertainty_ns"], 1))

    def test_waits_are_those_planted_whatever_the_clocks(self):
        for name, options in {"ddp": [], "tensor": ["--tensor-parallel", "2"], "sharded": ["--sharded"],
                              "sequence": ["--style", "current", "--sharded"]}.items():
            with self.subTest(kind=name):
                truth = self.generate(name, "--ranks-per-host", "1", "--offset-us=0,3000,-450,77", "--straggler",
                                      "3:2500:kernel", *options)
                answer = lockstep.analyze_whole(self.path(name))
                self.check_collectives(answer, truth, 2 * CLOCK_NS)


    def test_where_groups_are_not_recorded_contradictions_are_said(self):
        """Old files carry no process groups, so two kinds of groups cannot be told apart: what collectives do not agree on
        keeps the wall clock, and the ledger says so."""
        truth = self.generate("old", "--style", "us", "--ranks", "8", "--tensor-parallel", "2", "--sharded",
                              "--ranks-per-host", "2", "--offset-us=253,-15,-655,1,-757,-306,7,-1416",
                              "--straggler", "7:5900:kernel")
        answer = lockstep.analyze_whole(self.path("old"))
        self.assertIn("collective_causality", answer.ledger_codes())
        for rank in truth["ranks"][1:]:
            clock = answer.row("ranks", rank=rank["rank"])["clock"]
            if clock["basis"] == "collectives":
                self.assertLessEqual(abs(clock["offset_ns"] - rank["offset_start_ns"]), clock["uncertainty_ns"] + 1000)

    def test_jobs_of_every_kind_drawn_at_random(self):
        generator = random.Random(11)
        for seed in range(16):
            ranks = generator.choice((2, 3, 4, 8))
            late = generator.randrange(ranks)
            offsets = [round(generator.uniform(-1, 1) * 10 ** generator.uniform(0, 6), 3) for _ in range(ranks)]
            drifts = [round(generator.uniform(-30, 30), 2) for _ in range(ranks)]
            options = ["--ranks", ranks, "--steps", generator.choice((2, 4, 8)), "--layers", generator.choice((4, 6, 10)),
                       "--seed", seed, "--jitter-us", generator.choice((0.1, 1, 4, 8)),
                       "--ranks-per-host", generator.choice((1, 2, 8)), "--style", generator.choice(("torch22", "current", "min")),
                       "--straggler", f"{late}:{generator.randrange(2000, 9000)}:{generator.choice(('kernel', 'loader'))}",
                       "--offset-us=" + ",".join(map(str, offsets)), "--drift-ppm=" + ",".join(map(str, drifts))]
            options += ["--tensor-parallel", 2] if ranks % 2 == 0 and generator.random() < 0.5 else []
            options += ["--sharded"] if generator.random() < 0.5 else []
            with self.subTest(options=options):
                truth = self.generate(f"random{seed}", *options)
                answer = lockstep.analyze_whole(self.path(f"random{seed}"))
                self.check_breakdown(answer, truth)
                self.check_clocks(answer, truth)
                self.assertEqual(answer.data["wait_states"]["causes"][0]["rank"], late)
                named = (answer.finding("straggler") or {"ranks": []})["ranks"]
                # Two steps are soon alike by chance.
                self.assertIn(named, [[late]] if truth["step_count"] > 2 else [[late], []])


class StragglerTest(PlantedCase):
    def check(self, name, rank, chronic, *options, late=1):
        truth = self.generate(name, "--steps", "8", *options)
        answer = lockstep.analyze_whole(self.path(name))
        first = answer.data["stragglers"][0]
        finding = answer.finding("straggler")
        self.assertIsNotNone(finding, first)
        self.assertEqual(finding["ranks"][0], rank)
        self.assertEqual(len(finding["ranks"]), late)
        self.assertGreater(len(finding["evidence"]), 0)
        self.assertGreater(len(finding["advice"]), 0)
        self.assertEqual(first["rank"], rank)
        self.assertEqual(first["chronic"], chronic)
        return truth, answer, first

    def test_slow_kernels(self):
        self.check("kernel", 2, True, "--straggler", "2:4000:kernel")

    def test_slow_data_loader(self):
        _, answer, first = self.check("loader", 1, True, "--straggler", "1:6000:loader")
        self.assertTrue(any("DataLoader" in activity["name"] for activity in first["activities"]), first["activities"])
        self.assertIsNotNone(answer.finding("straggler")["gain_ns_per_step"])

    def test_a_stalled_host(self):
        self.check("host", 3, True, "--straggler", "3:12000:host")

    def test_one_late_step_is_not_chronic(self):
        self.check("once", 1, False, "--straggler", "1:9000:loader:5")

    def test_the_worse_of_two_comes_first(self):
        _, answer, _ = self.check("two", 3, True, "--straggler", "3:7000:loader",
                                  "--straggler", "0:40000:loader:2", late=2)
        self.assertEqual(answer.finding("straggler")["ranks"], [3, 0])

    def test_clocks_that_differ_do_not_hide_it(self):
        self.check("clocks", 2, True, "--straggler", "2:4000:kernel", "--ranks-per-host", "1",
                   "--offset-us=0,-9000,15000,2000")

    def test_time_lost_is_what_was_planted(self):
        """With one collective a step exactly; with more, lateness carried from one to the next can only add."""
        truth, _, first = self.check("one", 1, True, "--straggler", "1:6000:loader", "--kernel-spread", "0.001",
                                     "--bucket-layers", "6")
        steps = truth["step_count"]
        self.assertAlmostEqual(first["delay_ns"], steps * 6_000_000, delta=steps * 100_000)
        self.assertAlmostEqual(first["wait_given_ns"], 3 * steps * 6_000_000, delta=3 * steps * 100_000)
        _, _, first = self.check("two", 1, True, "--straggler", "1:6000:loader", "--kernel-spread", "0.001")
        self.assertGreaterEqual(first["delay_ns"], steps * 5_900_000)
        self.assertLessEqual(first["delay_ns"], steps * 9_000_000)

    def test_an_even_job_has_no_straggler(self):
        self.generate("even", "--kernel-spread", "0.0")
        self.assertIsNone(lockstep.analyze_whole(self.path("even")).finding("straggler"))

    def test_a_cpu_job_names_its_straggler_too(self):
        truth = self.generate("gloo", "--cpu-only", "--steps", "8", "--bucket-layers", "6", "--straggler", "2:5000:loader")
        answer = lockstep.analyze_whole(self.path("gloo"))
        self.assertEqual(answer.finding("straggler")["ranks"][0], 2)
        self.assertEqual({row["basis"] for row in answer.data["breakdown"]}, {"cpu"})
        self.check_collectives(answer, truth, 2 * CLOCK_NS)


class IncompleteTest(PlantedCase):
    def test_a_clipped_window_makes_up_no_waits(self):
        truth = self.generate("clipped", "--steps", "6", "--clip", "2:15000:45000")
        answer = lockstep.analyze(self.path("clipped"))
        self.assertIn(answer.status, (lockstep.DONE, lockstep.PARTIAL))
        self.check_breakdown(answer, truth)
        self.check_clocks(answer, truth)
        incomplete = [row for row in answer.data["collectives"] if 2 not in row["ranks"]]
        self.assertGreater(len(incomplete), 0)
        for row in incomplete:
            self.assertEqual(row["missing_ranks"], [2])
            self.assertEqual(set(row["wait_ns"]), {None})
            self.assertIsNone(row["transfer_ns"])
        present = truth["ranks"][2]["device"]["collective_count"]
        self.assertEqual(len(answer.data["collectives"]) - len(incomplete), present)
        complete = [row for row in answer.data["collectives"] if len(row["ranks"]) == 4]
        planted = {tuple(sorted(row["wait_ns"])): row for row in truth["collectives"]}
        for row in complete:
            nearest = min(planted, key=lambda waits: max(abs(a - b) for a, b in zip(waits, sorted(row["wait_ns"]))))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(nearest, sorted(row["wait_ns"]))), 2 * CLOCK_NS)

    def test_a_missing_rank_is_said_and_the_rest_is_analysed(self):
        truth = self.generate("missing", "--missing", "2")
        answer = lockstep.analyze(self.path("missing"))
        self.assertEqual(answer.status, lockstep.PARTIAL)
        self.assertTrue(answer.document["partial"])
        self.assertEqual(answer.data["job"]["rank_count"], 3)
        self.assertEqual(answer.data["job"]["world_size"], 4)
        self.assertEqual(answer.data["job"]["missing_ranks"], [2])
        self.check_breakdown(answer, truth)

    def test_a_cut_file_is_read_to_its_last_whole_event(self):
        for ratio in ("0.2", "0.55", "0.9", "0.999"):
            for options in ([], ["--gz", "1"], ["--style", "indent4"], ["--style", "min"]):
                with self.subTest(ratio=ratio, options=options):
                    name = "cut" + ratio + "".join(options)
                    truth = self.generate(name, "--cut", "1:" + ratio, *options)
                    answer = lockstep.analyze(self.path(name))
                    self.assertEqual(answer.status, lockstep.PARTIAL)
                    self.assertTrue(any("truncated" in code for code in answer.ledger_codes()), answer.ledger_codes())
                    for rank in truth["ranks"]:
                        self.assertEqual(answer.row("ranks", rank=rank["rank"])["event_count"], rank["event_count"])
                        if rank["device"]["kernel_count"] == 0:
                            continue
                        row = answer.row("breakdown", rank=rank["rank"])
                        self.assertEqual({key: row[key] for key in BREAKDOWN}, {key: rank["device"][key] for key in BREAKDOWN})


class InvarianceTest(PlantedCase):
    @staticmethod
    def comparable(answer):
        document = copy.deepcopy(answer.document)
        for row in document["data"]["ranks"]:
            row.pop("source")
        for entry in document["ledger"]:
            entry.pop("source")
        return document

    def test_the_order_of_files_changes_nothing(self):
        truth = self.generate("a", "--straggler", "1:3000:loader", "--offset-us=0,50,-70,900")
        files = [os.path.join(self.path("a"), rank["file"]) for rank in truth["ranks"]]
        forward = self.comparable(lockstep.analyze_whole(*files))
        self.assertEqual(forward, self.comparable(lockstep.analyze_whole(*reversed(files))))
        self.assertEqual(forward, self.comparable(lockstep.analyze_whole(files[2], files[0], files[3], files[1])))
        self.assertEqual(forward, self.comparable(lockstep.analyze_whole(self.path("a"))))

    def test_the_number_of_threads_changes_no_byte(self):
        self.generate("a", "--ranks", "6", "--straggler", "4:3000:kernel", "--tensor-parallel", "2")
        texts = {lockstep.analyze_whole(self.path("a"), "--threads", threads).text for threads in (1, 2, 3, 8)}
        self.assertEqual(len(texts), 1)

    def test_a_shift_of_all_clocks_shifts_only_the_times(self):
        self.generate("a", "--straggler", "1:3000:loader")
        self.generate("b", "--straggler", "1:3000:loader", "--offset-us=" + ",".join(["86400000000"] * 4))
        shift = 86_400_000_000_000
        first = lockstep.analyze_whole(self.path("a")).data
        second = lockstep.analyze_whole(self.path("b")).data
        for table in ("idle", "idle_host", "kernels", "operators", "stragglers", "imbalance", "memory", "launch", "findings"):
            self.assertEqual(first[table], second[table], table)
        for before, after in zip(first["collectives"], second["collectives"]):
            self.assertEqual([time + shift for time in before["arrival_ns"]], after["arrival_ns"])
            self.assertEqual(before["wait_ns"], after["wait_ns"])
        for table in ("breakdown", "steps"):
            for before, after in zip(first[table], second[table]):
                self.assertEqual(before["start_ns"] + shift, after["start_ns"])
                self.assertEqual({**before, "start_ns": 0}, {**after, "start_ns": 0})

    def test_every_naming_habit_gives_the_same_ranks(self):
        tables = []
        for naming in ("rank", "worker", "torch", "of", "dash"):
            for option in ((), ("--no-distributed-info",)):
                if naming == "torch" and option:
                    continue   # Host and process in the name say nothing of the rank.
                name = naming + "".join(option)
                self.generate(name, "--naming", naming, "--ranks", "12", "--layers", "2", "--straggler", "10:2000:kernel", *option)
                answer = lockstep.analyze(self.path(name))
                with self.subTest(naming=name):
                    self.assertEqual([row["rank"] for row in answer.data["ranks"]], list(range(12)))
                    source = {row["rank_source"] for row in answer.data["ranks"]}
                    self.assertEqual(source, {"file_name"} if option else {"distributed_info"})
                tables.append(answer.data["breakdown"])
        for table in tables[1:]:
            self.assertEqual(table, tables[0])


if __name__ == "__main__":
    unittest.main()
