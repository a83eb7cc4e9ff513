"""Every figure of a report page is the one that `lockstep analyze --json` gives for the same run."""

import functools
import json
import os
import re
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "..", "support")]
from analyze_program import DONE, FAILED, FINDING, MISUSED, PARTIAL, SOURCE_ROOT, analyze, data_path, generate, run
from depth_comparison import DepthComparison
from page_file import Page

RECORDED = os.path.join(SOURCE_ROOT, "examples", "recorded")
STEP_COLUMNS = {"step_ns": "span_ns"}


def write_page(case, *arguments):
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    path = os.path.join(folder.name, "report.html")
    process = run(["analyze", "-q", "-o", path, *[str(argument) for argument in arguments]])
    case.assertIn(process.returncode, (DONE, PARTIAL), process.stderr.decode())
    return Page(path)


def exact(value):
    """As the page has it: numbers beyond those of JavaScript are texts."""
    if isinstance(value, list):
        return [exact(item) for item in value]
    if isinstance(value, dict):
        return {name: exact(item) for name, item in value.items()}
    return str(value) if isinstance(value, int) and abs(value) > 2**53 else value


class Comparison:
    """One run, as the page has it and as --json has it."""

    def __init__(self, case, *arguments):
        self.case = case
        self.answer = analyze(*arguments)
        self.page = write_page(case, *arguments)
        self.index = {(row["rank"], row["window"]): i for i, row in enumerate(self.answer.data["ranks"])}

    def rank_index(self, row):
        return self.index[row["rank"], row["window"]]

    def same_rows(self, page_rows, json_rows, keys):
        case = self.case
        case.assertEqual(len(page_rows), len(json_rows))
        for mine, theirs in zip(page_rows, json_rows):
            if "rank_index" in mine:
                case.assertEqual(mine["rank_index"], self.rank_index(theirs))
            for key in keys:
                expected = theirs[key]
                if expected is None and theirs.get("basis") == "none":
                    continue
                case.assertEqual(mine[key], expected, key)

    def all(self):
        self.job()
        self.tables()
        self.names("kernels", "total_ns")
        self.names("operators", "device_self_ns")
        self.steps()
        self.collectives()
        self.waits()
        self.bandwidth()
        self.declared()
        depth = DepthComparison(case=self.case, page=self.page, answer=self.answer, rank_index=self.rank_index)
        depth.all()
        self.events()
        self.timeline()

    def declared(self):
        """The view of all tables has each row that --json has of the tables that passes declare."""
        facts, theirs = self.page.data["tables"], {"ledger": self.answer.ledger} | self.answer.data  # The ledger stands beside `data`.
        tables = json.loads(self.page.raw("tables"))["tables"] if facts else []
        self.case.assertEqual([table["name"] for table in facts], [table["name"] for table in tables])
        for fact, table in zip(facts, tables, strict=True):
            rows = functools.reduce(lambda data, key: data[key], fact["json_path"].removesuffix("[]").split("."), theirs)
            if isinstance(rows, dict):  # By the first column.
                rows = [{table["columns"][0]["name"]: key} | row for key, row in rows.items()]
            self.case.assertEqual(fact["row_count"], len(rows), table["name"])
            rows_shown = [{column["name"]: cell for column, cell in zip(table["columns"], row, strict=True) if column["in_json"]} for row in table["rows"]]
            self.case.assertEqual(rows_shown, exact(rows[:len(table["rows"])]), table["name"])
            self.case.assertEqual(len(table["rows"]), min(len(rows), 5000), table["name"])
        shown = {fact["name"] for fact in facts}
        self.case.assertEqual([], [name for name in ("breakdown", "kernels", "operators") if theirs[name] and name not in shown])

    def job(self):
        page, theirs = self.page.data["job"], self.answer.data["job"]
        for key in ("rank_count", "world_size", "missing_ranks", "backend", "step_count", "event_count", "span_ns"):
            self.case.assertEqual(page[key], theirs[key], key)
        self.case.assertEqual(self.page.document["partial"], self.answer.document["partial"])
        self.case.assertEqual(self.page.document["ledger"], self.answer.ledger)
        ranks = self.page.data["ranks"]
        for mine, theirs in zip(ranks, self.answer.data["ranks"], strict=True):
            for key in ("rank", "window", "host", "device", "source", "event_count"):
                self.case.assertEqual(mine[key], theirs[key], key)
            for key in ("basis", "offset_ns", "drift_ppm", "uncertainty_ns", "sample_count"):
                self.case.assertEqual(mine["clock"][key], theirs["clock"][key], key)

    def tables(self):
        page, theirs = self.page.data, self.answer.data
        self.case.assertEqual(page["findings"], theirs["findings"])
        by_title = {finding["title"]: finding for finding in theirs["findings"]}
        self.case.assertGreater(len(page["verdict"]), 0)
        for headline in page["verdict"]:
            if headline["title"].startswith("Nothing stands out"):
                self.case.assertEqual([{"title": headline["title"], "gain": None}], page["verdict"])
                self.case.assertFalse([finding for finding in theirs["findings"] if finding["severity"] != "info"])
                continue
            finding = by_title[headline["title"]]
            if not finding["gain_ns_per_step"]:
                self.case.assertIsNone(headline["gain"])
            elif finding["gain_ratio"] is not None:
                share = float(re.fullmatch(r"costs up to <?([0-9.]+) % of (?:a step|this window)", headline["gain"])[1])
                self.case.assertAlmostEqual(share, 100 * finding["gain_ratio"], delta=0.51)
        times = ("span_ns", "busy_ns", "compute_ns", "communication_ns", "exposed_communication_ns",
                 "overlapped_communication_ns", "memory_ns", "exposed_memory_ns", "idle_ns")
        self.same_rows(page["breakdown"], theirs["breakdown"], ("basis", *times))
        self.same_rows(page["idle_host"], theirs["idle_host"], ("runtime_ns", "data_loader_ns", "operator_ns", "unknown_ns"))
        for row in page["idle"]:
            streams = [idle for idle in theirs["idle"] if self.rank_index(idle) == row["rank_index"]]
            for key in ("host_wait_ns", "kernel_wait_ns", "other_ns"):
                self.case.assertEqual(row[key], sum(stream[key] for stream in streams))
        self.same_rows(page["launch"], theirs["launch"],
                       ("launch_count", "median_delay_ns", "max_delay_ns", "long_delay_count", "short_kernel_count", "long_call_count"))
        self.same_rows(page["memory"], theirs["memory"],
                       ("device", "peak_allocated_bytes", "peak_reserved_bytes", "device_memory_bytes", "allocation_count", "net_bytes"))
        self.same_rows(page["stragglers"], theirs["stragglers"],
                       ("collective_count", "last_count", "wait_ns", "wait_given_ns", "delay_ns", "last_ratio", "chronic",
                        "late_step_count", "step_count", "activities"))
        self.case.assertEqual([row["quantity"] for row in page["imbalance"]], list(theirs["imbalance"]))
        for row in page["imbalance"]:
            for key in ("mean", "min", "max", "ratio"):
                self.case.assertEqual(row[key], theirs["imbalance"][row["quantity"]][key])
        for row in page["memory_series"]:
            peaks = [memory["peak_allocated_bytes"] for memory in page["memory"]
                     if (memory["rank_index"], memory["device"]) == (row["rank_index"], row["device"])]
            self.case.assertEqual([max(row["max_bytes"])], peaks)
            self.case.assertEqual(row["time_ns"], sorted(row["time_ns"]))

    def names(self, table, spread):
        totals = {}
        for row in self.answer.data[table]:
            totals.setdefault((row["name"], row.get("kind", "operator")), []).append(row)
        page = self.page.data[table]
        self.case.assertEqual({(row["name"], row["kind"]) for row in page}, set(totals))
        for mine in page:
            rows = totals[mine["name"], mine["kind"]]
            self.case.assertEqual(mine["count"], sum(row["count"] for row in rows))
            self.case.assertEqual(mine["total_ns"], sum(row[spread] for row in rows))
            key = spread if mine["total_ns"] > 0 or table == "kernels" else "cpu_self_ns"
            by_rank = {}
            for row in rows:
                by_rank[self.rank_index(row)] = by_rank.get(self.rank_index(row), 0) + row[key]
            if mine["by_rank"] is not None:
                self.case.assertEqual({i: value for i, value in enumerate(mine["by_rank"]) if value is not None}, by_rank)
            self.case.assertEqual(mine["rank_count"], len(by_rank))
            quantiles = mine["rank_quantiles_ns"]
            self.case.assertEqual((quantiles[0], quantiles[4]), (min(by_rank.values()), max(by_rank.values())))
            self.case.assertEqual(quantiles, sorted(quantiles))
            self.case.assertEqual(by_rank[mine["max_rank_index"]], quantiles[4])
            self.case.assertEqual(by_rank[mine["min_rank_index"]], quantiles[0])
            if table == "kernels":
                self.case.assertEqual(mine["min_ns"], min(row["min_ns"] for row in rows))
                self.case.assertEqual(mine["max_ns"], max(row["max_ns"] for row in rows))
            else:
                for other in ("cpu_self_ns", "cpu_total_ns", "device_total_ns"):
                    self.case.assertEqual(mine[other], sum(row[other] for row in rows))

    def steps(self):
        cells = self.page.step_cells()
        expected = {}
        for row in self.answer.data["steps"]:
            if row["basis"] == "none":
                continue
            for quantity in self.page.data["step_matrix"]["quantities"]:
                if quantity != "wait_ns":
                    key = (self.rank_index(row), row["step"], quantity)
                    expected.setdefault(key, row[STEP_COLUMNS.get(quantity, quantity)])
        self.case.assertEqual({key: value for key, value in cells.items() if key[2] != "wait_ns"}, expected)
        # Waiting by step is never less than in all, and no more than a collective of two steps can add.
        waits = {}
        for (rank_index, _, quantity), value in cells.items():
            if quantity == "wait_ns":
                waits[rank_index] = waits.get(rank_index, 0) + value
        for row in self.answer.data["stragglers"]:
            if row["step_count"] == 0:
                continue
            self.case.assertLessEqual(waits.get(self.rank_index(row), 0), row["wait_ns"] * 1.5 + 1)

    def collectives(self):
        page, theirs = self.page.collectives(), self.answer.data["collectives"]
        self.case.assertEqual(self.page.data["collective_count"], len(theirs))
        for mine, row in zip(page, theirs, strict=True):
            for key in ("name", "group", "sequence", "bytes", "transfer_ns", "busbw_bytes_per_s", "wait_ns"):
                self.case.assertEqual(mine[key], row[key], key)
            ranks = [self.index[rank, row["window"]] for rank in row["ranks"]]
            self.case.assertEqual(mine["rank_indices"], ranks)
            origins = [int(self.page.data["ranks"][rank_index]["origin_ns"]) for rank_index in ranks]
            for key in ("arrival_ns", "end_ns"):
                self.case.assertEqual([int(time) + origin for time, origin in zip(mine[key], origins)], row[key])
            last = None if row["last_rank"] is None else self.index[row["last_rank"], row["window"]]
            self.case.assertEqual(mine["last_rank_index"], last)
            self.case.assertEqual(mine["total_wait_ns"], sum(wait or 0 for wait in row["wait_ns"]))

    def waits(self):
        given = {}
        for pair in self.page.data["waits"]:
            self.case.assertGreater(pair["wait_ns"], 0)
            given[pair["culprit_rank_index"]] = given.get(pair["culprit_rank_index"], 0) + pair["wait_ns"]
        expected = {self.rank_index(row): row["wait_given_ns"] for row in self.answer.data["stragglers"] if row["wait_given_ns"] > 0}
        self.case.assertEqual(given, expected)

    def bandwidth(self):
        points = {}
        for row in self.answer.data["collectives"]:
            if row["busbw_bytes_per_s"] is not None:
                points.setdefault((row["name"], row["group_size"], row["bytes"]), []).append(row["busbw_bytes_per_s"])
        page = {(row["name"], row["group_size"], row["bytes"]): row for row in self.page.data["bandwidth"]}
        self.case.assertEqual(set(page), set(points))
        for key, row in page.items():
            quantiles = row["busbw_bytes_per_s"]
            self.case.assertEqual(row["count"], len(points[key]))
            self.case.assertEqual((quantiles[0], quantiles[4]), (min(points[key]), max(points[key])))
            self.case.assertEqual(quantiles, sorted(quantiles))

    def events(self):
        """Device events of a name add up to its row of `kernels`; nothing is lost and nothing is drawn over."""
        if not (self.page.data["timeline"] or {}).get("has_events") or self.page.document["reductions"]:
            return
        names = self.page.names()
        self.case.assertEqual(names, sorted(names, key=lambda name: name.encode()))
        kernels = {}
        for rank_index in range(len(self.page.data["ranks"])):
            for track, events in self.page.events(rank_index):
                ends = {}
                for start, duration, name, _, level in events:
                    self.case.assertLess(level, track["level_count"])
                    self.case.assertLessEqual(ends.get(level, 0), start + 1)
                    ends[level] = start + duration
                    if track["lane"] == "device":
                        count, total = kernels.get((rank_index, names[name]), (0, 0))
                        kernels[rank_index, names[name]] = (count + 1, total + duration)
        expected = {}
        for row in self.answer.data["kernels"]:
            key = (self.rank_index(row), row["name"])
            count, total = expected.get(key, (0, 0))
            expected[key] = (count + row["count"], total + row["total_ns"])
        # What launched a device event is in the page, and its delay is that of the table of launches.
        for row in self.answer.data["launch"]:
            delays = [max(0, event[0] - call[0] - call[1]) for call, event in self.page.launches(self.rank_index(row))]
            self.case.assertEqual(len(delays), row["launch_count"])
            self.case.assertAlmostEqual(sum(delays), row["total_delay_ns"], delta=2 * len(delays))
        self.case.assertEqual(set(kernels), set(expected))
        for key, (count, total) in expected.items():
            self.case.assertEqual(kernels[key][0], count)
            # Both ends of an event are put on the common clock: with drift a length may change by a nanosecond or so.
            self.case.assertAlmostEqual(kernels[key][1], total, delta=count * 2 + total * 1e-3)

    def timeline(self):
        """Shares of a rank's buckets add up to its breakdown."""
        if self.page.data["timeline"] is None:
            return
        levels = self.page.timeline()
        self.case.assertEqual([level[0] for level in levels], self.page.data["timeline"]["level_bucket_counts"])
        for row in self.page.data["breakdown"]:
            if row["basis"] != "device" or len({d["device"] for d in self.answer.data["idle"]
                                                if self.rank_index(d) == row["rank_index"]}) != 1:
                continue
            for bucket_count, bucket_ns, shares in levels[:1] + levels[-1:]:
                begin = row["rank_index"] * bucket_count * 4
                mine = shares[begin : begin + bucket_count * 4]
                for place, key in enumerate(("compute_ns", "communication_ns", "memory_ns")):
                    part = mine[place::4]
                    total = sum(part) / 255 * bucket_ns
                    # Rounding to 1/255; what is there at all counts at least 1/255.
                    rounding = bucket_ns / 255 * sum(1 for share in part if share)
                    self.case.assertAlmostEqual(total, row[key], delta=rounding + 1, msg=f"{key} in {bucket_count}")


class PageDataTest(unittest.TestCase):
    def test_the_recorded_job(self):
        Comparison(self, RECORDED).all()

    def test_a_generated_job_with_a_straggler_and_clocks_that_differ(self):
        with tempfile.TemporaryDirectory() as folder:
            generate(os.path.join(folder, "job"), "--ranks", 6, "--steps", 5, "--layers", 3, "--memory", "--shapes", "--style", "current",
                     "--tensor-parallel", 2, "--straggler", "3:2000:kernel", "--offset-us", "0,1500,-900,20,7,0", "--drift-ppm", "0,20,-30")
            Comparison(self, os.path.join(folder, "job")).all()

    def test_a_job_with_a_cut_file_is_partial(self):
        with tempfile.TemporaryDirectory() as folder:
            generate(os.path.join(folder, "job"), "--ranks", 3, "--steps", 3, "--layers", 2, "--cut", "1:0.5", "--missing", 2)
            comparison = Comparison(self, os.path.join(folder, "job"))
            comparison.all()
            self.assertTrue(comparison.page.document["partial"])
            self.assertIn("Partial", comparison.page.summary())
            # The cut file lost its base time: it is not shown half a century away from the others.
            self.assertLess(comparison.page.data["timeline"]["span_ns"], 1e9)

    def test_traces_of_several_jobs_are_said_to_be_so_and_shown_without_the_time_between(self):
        day_us = 86_400 * 10**6
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(3):
                events = [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": rank * 150 * day_us + 10_000 * i, "dur": 5_000,
                           "args": {"stream": 7, "device": 0, "correlation": i + 1}} for i in range(3)]
                with open(os.path.join(folder, f"rank{rank}.json"), "w", encoding="utf-8") as file:
                    json.dump({"schemaVersion": 1, "baseTimeNanoseconds": 1_700_000_000 * 10**9, "traceEvents": events,
                               "distributedInfo": {"rank": rank, "world_size": 3}, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}, file)
            comparison = Comparison(self, folder)
            text = run(["analyze", folder, "--width", "160"]).stdout.decode()
        comparison.job()
        comparison.tables()
        data = comparison.page.data
        self.assertEqual(data["findings"][0]["id"], "not_one_job")
        self.assertEqual(data["verdict"][0]["title"], "3 traces lie in 3 parts that do not overlap in time: they are probably not of one job")
        self.assertLess(data["job"]["span_ns"], 10**9)
        self.assertLess(data["timeline"]["span_ns"], 10**9)
        self.assertIn("gaps_closed", [entry["code"] for entry in comparison.page.document["ledger"]])
        self.assertEqual(data["job"]["devices"], "3 x NVIDIA H100")
        self.assertLess(text.index("not of one job"), text.index("WHERE THE TIME GOES"))
        self.assertIn("lockstep analyze", text)

    def test_a_job_of_pipelines_with_what_if(self):
        with tempfile.TemporaryDirectory() as folder:
            generate(os.path.join(folder, "job"), "--ranks", 8, "--steps", 4, "--layers", 2, "--shapes", "--style", "current",
                     "--tensor-parallel", 2, "--pipeline-parallel", 2, "--micro-batches", 4, "--straggler", "3:2000:kernel")
            comparison = Comparison(self, os.path.join(folder, "job"), "--what-if")
            comparison.all()
        data = comparison.page.data
        self.assertLessEqual({"tensor", "pipeline", "data"}, {row["kind"] for row in data["groups"]})
        self.assertGreater(len(data["pipeline"]), 0)
        self.assertGreater(len(data["flops_by_operator"]), 0)
        self.assertGreater(len(data["what_if"]["levers"]), 0)
        self.assertEqual([f"8 x {peak['device']}" for peak in data["device_peaks"]], [data["job"]["devices"]])

    def test_a_job_of_sharded_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            generate(os.path.join(folder, "job"), "--ranks", 4, "--steps", 3, "--layers", 2, "--sharded", "--style", "current")
            comparison = Comparison(self, os.path.join(folder, "job"))
            comparison.all()
        self.assertEqual(len(comparison.page.data["fsdp"]), 4)
        self.assertIsNone(comparison.page.data["what_if"])

    def test_a_small_page_says_less_of_single_steps_and_as_much_in_all(self):
        with tempfile.TemporaryDirectory() as folder:
            generate(os.path.join(folder, "job"), "--ranks", 8, "--steps", 40, "--layers", 4, "--style", "current", "--straggler", "3:2000:kernel")
            comparison = Comparison(self, os.path.join(folder, "job"), "--page-size", "1k")
        left_out = [reduction["what"] for reduction in comparison.page.document["reductions"]]
        self.assertIn("critical_path_steps", left_out)
        self.assertLess(len(comparison.page.data["critical_path"]["steps"]), 40)
        depth = DepthComparison(self, comparison.page, comparison.answer, comparison.rank_index)
        depth.critical_path()
        depth.wait_states()

    def test_some_passes_only(self):
        comparison = Comparison(self, RECORDED, "--pass", "kernels")
        self.assertEqual(comparison.page.data["stragglers"], [])
        self.assertIsNone(comparison.page.data["step_matrix"])
        comparison.job()


class SharedDataTest(unittest.TestCase):
    def test_operation_traces(self):
        for path in (("bytedance_stragglers", "trace-ST.csv.gz"), ("primus_pp8",)):
            comparison = Comparison(self, data_path("traces", *path))
            depth = DepthComparison(self, comparison.page, comparison.answer, comparison.rank_index)
            depth.what_if()
            depth.bubbles()
            self.assertEqual(comparison.page.data["findings"], comparison.answer.data["findings"])
            self.assertIsNone(comparison.page.data["timeline"])

    def check(self, *parts):
        Comparison(self, data_path("traces", *parts)).all()

    def test_tables_of_kernels_beside_traces(self):
        comparison = Comparison(self, RECORDED, data_path("nsight", "ncu", "esmm2.raw.csv"),
                                data_path("nsight", "stats", "mfu_2gpu_before_cuda_gpu_kern_sum.csv.gz"))
        comparison.all()
        self.assertGreater(len(comparison.page.data["kernel_rooflines"]), 0)

    def test_eight_ranks_of_dlrm(self):
        self.check("param_dlrm_8rank_v100")

    def test_the_pair_of_holistic_trace_analysis(self):
        self.check("hta_trace_diff")

    def test_nccl_metadata(self):
        self.check("hta_ddp_nccl_meta")

    def test_python_stacks(self):
        self.check("tracelens_b200_rank0of8")


class PageSizeTest(unittest.TestCase):
    def test_a_page_is_within_its_size_and_says_what_it_lacks(self):
        whole = write_page(self, RECORDED)
        self.assertEqual(whole.document["reductions"], [])
        template = len(whole.text) - sum(len(text) for _, text in whole.packed.values())
        for spare in (250_000, 150_000, 80_000):
            page = write_page(self, RECORDED, "--page-size", template + spare)
            self.assertLessEqual(len(page.text.encode()), template + spare)
            self.assertTrue(page.document["reductions"])
            for reduction in page.document["reductions"]:
                self.assertIn(reduction["message"].split(":")[0], page.summary())
            self.assertEqual(page.data["breakdown"], whole.data["breakdown"])

    def test_the_page_of_a_thousand_bytes_is_the_smallest_there_is(self):
        page = write_page(self, RECORDED, "--page-size", 1000)
        self.assertFalse(page.data["timeline"]["has_events"])
        self.assertIn("events", [reduction["what"] for reduction in page.document["reductions"]])


class OutputFlagTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_text_is_still_printed_unless_quiet(self):
        path = os.path.join(self.folder, "report.html")
        process = run(["analyze", RECORDED, "-o", path])
        self.assertEqual(process.returncode, DONE)
        self.assertIn(b"Rank 2", process.stdout)
        self.assertEqual(os.listdir(self.folder), ["report.html"])
        self.assertEqual(run(["analyze", RECORDED, "-q", "-o", path]).stdout, b"")
        self.assertEqual(json.loads(run(["analyze", RECORDED, "-q", "--json", "-o", path]).stdout)["schema"], "lockstep.analyze/1")

    def test_a_finding_still_decides_the_exit_status(self):
        path = os.path.join(self.folder, "report.html")
        self.assertEqual(run(["analyze", RECORDED, "-q", "-o", path, "--fail-on", "critical"]).returncode, FINDING)
        self.assertTrue(os.path.exists(path))

    def test_another_ending_is_misuse(self):
        for name in ("report.pdf", "report", "report.json"):
            process = run(["analyze", RECORDED, "-o", os.path.join(self.folder, name)])
            self.assertEqual(process.returncode, MISUSED)
            self.assertIn(b".html", process.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_is_no_file_is_not_overwritten(self):
        path = os.path.join(self.folder, "pipe.html")
        os.mkfifo(path)
        self.assertEqual(run(["analyze", RECORDED, "-o", path]).returncode, FAILED)
        self.assertEqual(os.listdir(self.folder), ["pipe.html"])

    def test_a_missing_folder_is_told_before_anything_is_read(self):
        process = run(["analyze", "/does/not/exist", "-o", os.path.join(self.folder, "none", "report.html")])
        self.assertEqual(process.returncode, FAILED)
        self.assertIn(b"make it first", process.stderr)


class HostileNamesTest(unittest.TestCase):
    NAMES = ["</script><script>alert(1)</script>", "<!--lockstep:blocks-->", "a\u202eb", "nul\u0000l", "\u2028line", "&lt;", "x" * 5000]

    def test_names_of_kernels_are_data(self):
        with tempfile.TemporaryDirectory() as folder:
            events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 100 * i, "dur": 50, "args": {"stream": 7}}
                      for i, name in enumerate(self.NAMES)]
            path = os.path.join(folder, "rank0 <img src=x onerror=alert(1)>.json")
            with open(path, "w") as file:
                json.dump({"traceEvents": events, "hostname": "</title>"}, file)
            page = write_page(self, path)
            names = {row["name"] for row in analyze(path).data["kernels"]}
            self.assertEqual(len(names), len(self.NAMES))
            self.assertIn(self.NAMES[0], names)
            self.assertEqual({row["name"] for row in page.data["kernels"]}, names)
            self.assertNotIn("<img", page.text)
            self.assertNotIn("alert(1)</script>", page.text)
            self.assertNotIn("\u202e", page.text)
            self.assertEqual(set(page.names()), names)


if __name__ == "__main__":
    unittest.main()
