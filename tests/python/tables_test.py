"""Tables: columns, units and nulls as docs/json.md states them, in NumPy, pandas and plain Python."""

import re
import tempfile
import unittest

import lockstep
import numpy as np
import pandas as pd
from lockstep import _native
from samples import SOURCE, recorded, write_job

KINDS = {"integer": "int64", "number": "float64", "boolean": "bool", "string": "text", "object": "struct"}


def documented():
    """Table -> column -> (kind, unit, whether nullable), as docs/json.md has them."""
    text = (SOURCE / "docs" / "json.md").read_text(encoding="utf-8")
    tables = {}
    for title, body in re.findall(r"^### (.+?)\n(.*?)(?=^##)", text, re.MULTILINE | re.DOTALL):
        columns = {}
        for line in body.splitlines():
            if line.startswith("| `"):
                name, kind, unit, _, null = (cell.strip() for cell in line.strip("|").split("|"))
                is_list = kind.startswith("array of")
                columns[name.strip("`")] = ("list" if is_list else KINDS.get(kind, "text"), unit, bool(null) and not is_list)
        tables[title.strip("`")] = columns
    found = {name: tables[f"data.{name}[]"] for name in (
        "breakdown", "steps", "idle", "idle_host", "kernels", "operators", "memory", "launch", "queues", "collectives",
        "stragglers", "findings", "groups", "group_operations", "ddp", "ddp_buckets", "fsdp", "pipeline", "moe", "moe_ranks",
        "inference", "inference_requests", "regions", "region_balance", "counters", "counter_balance", "flops", "flops_by_operator",
        "kernel_launches", "kernel_rooflines", "kernel_sums", "stage_scopes", "stage_shares", "stage_agreement")}
    ranks = dict(tables["data.ranks[]"])
    del ranks["clock"]
    found["ranks"] = ranks
    found["clocks"] = {**{key: ranks[key] for key in ("rank", "window")}, **tables["data.ranks[].clock"]}
    found["ledger"] = tables["ledger[]"]
    found["imbalance"] = {"quantity": ("text", "", False), **tables["data.imbalance"]}
    return found


def every_table(run):
    return {**run.analyze()}


class SchemaTest(unittest.TestCase):
    def test_columns_kinds_units_and_nulls_are_the_documented_ones(self):
        tables = every_table(recorded())
        self.assertEqual(sorted(tables), sorted(_native.table_names()))
        expected = documented()
        self.assertEqual(sorted([*expected, "collective_members"]), sorted(tables))
        for name, columns in expected.items():
            table = tables[name]
            found = {column: (table.column(column).kind, table.column(column).unit, table.column(column).nullable)
                     for column in table.columns}
            for column in found:  # A list's unit is that of its items: only its kind is looked at.
                if found[column][0] == "list":
                    found[column] = ("list", columns[column][1] if column in columns else "", False)
            self.assertEqual(found, columns, name)
            self.assertEqual(list(found), list(columns), name)

    def test_members_are_the_columns_of_the_csv(self):
        run = recorded()
        self.assertEqual(run.collective_members().column("arrival_ns").unit, run.collectives().column("end_ns").unit or
                         "ns, aligned clock")
        self.assertEqual(len(run.collective_members()), sum(len(ranks) for ranks in run.collectives()["ranks"]))


class NumpyTest(unittest.TestCase):
    def test_types_do_not_depend_on_the_data(self):
        steps = recorded().steps()
        self.assertEqual(steps["rank"].dtype, np.int64)
        self.assertNotIsInstance(steps["rank"], np.ma.MaskedArray)
        self.assertIsInstance(steps["span_ns"], np.ma.MaskedArray)
        self.assertEqual(steps["communication_overlap_ratio"].dtype, np.float64)
        self.assertEqual(steps["basis"].dtype, object)
        self.assertEqual(recorded().stragglers()["chronic"].dtype, np.bool_)

    def test_values_are_the_rows(self):
        for name, table in every_table(recorded()).items():
            rows = table.to_dicts()
            self.assertEqual(len(rows), len(table), name)
            for column, array in table.to_numpy().items():
                for row, value in zip(rows, array):
                    expected = row[column]
                    if isinstance(value, np.ndarray):
                        value = value.tolist()
                    if expected is None:
                        self.assertTrue(value is np.ma.masked or value is None or np.isnan(value), (name, column))
                    else:
                        self.assertEqual(value, expected, (name, column))

    def test_a_null_is_masked_and_never_zero(self):
        gain = recorded().findings()["gain_ns_per_step"]
        self.assertTrue(gain.mask.any())
        self.assertFalse(gain.mask.all())
        offset = recorded().clocks()["uncertainty_ns"]
        self.assertEqual(offset.mask.tolist(), [row is None for row in recorded().clocks().column("uncertainty_ns").to_pylist()])

    def test_arrays_can_not_be_written(self):
        with self.assertRaises(ValueError):
            recorded().steps()["rank"][0] = 5
        with self.assertRaises(ValueError):
            recorded().tracks(0)[0].events["start_ns"][0] = 5

    def test_an_unknown_column_is_told_with_those_there_are(self):
        with self.assertRaisesRegex(KeyError, "span_nanoseconds.*span_ns"):
            recorded().steps()["span_nanoseconds"]

    def test_rows_can_be_had_in_part(self):
        kernels = recorded().operators()
        self.assertEqual(kernels.to_dicts(3, 7), kernels.to_dicts()[3:7])
        self.assertEqual(kernels.to_dicts(len(kernels)), [])

    def test_an_empty_table_has_its_columns(self):
        memory = recorded().memory()
        self.assertEqual(len(memory), 0)
        self.assertEqual(memory["net_bytes"].shape, (0,))
        self.assertEqual(memory.to_pandas().shape, (0, len(memory.columns)))
        self.assertEqual(memory.to_dicts(), [])


class PandasTest(unittest.TestCase):
    def test_frames_hold_the_rows(self):
        for name, table in every_table(recorded()).items():
            frame = table.to_pandas()
            self.assertEqual(tuple(frame.columns), table.columns, name)
            self.assertEqual(len(frame), len(table), name)
            self.assertEqual(frame.attrs["units"], table.units)
            for column in table.columns:
                if table.column(column).kind in ("list", "struct"):
                    continue
                values = [None if pd.isna(value) else value for value in frame[column]]
                self.assertEqual(values, table.column(column).to_pylist(), (name, column))

    def test_integers_stay_integers_where_some_are_missing(self):
        frame = recorded().findings().to_pandas()
        self.assertEqual(str(frame["gain_ns_per_step"].dtype), "Int64")
        self.assertEqual(str(recorded().steps().to_pandas()["step"].dtype), "int64")

    def test_questions_that_people_ask(self):
        frame = recorded().steps().to_pandas()
        worst = frame.groupby("rank")["exposed_communication_ns"].mean().idxmin()
        self.assertEqual(worst, 2)  # The late rank waits least.
        wide = frame.pivot(index="step", columns="rank", values="span_ns")
        self.assertEqual(wide.shape, (5, 4))
        joined = frame.merge(recorded().ranks.to_pandas()[["rank", "host"]], on="rank")
        self.assertEqual(set(joined["host"]), {"node0"})


class EventsTest(unittest.TestCase):
    def test_events_are_those_of_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            run = lockstep.load(write_job(folder))
            tracks = run.tracks(1)
            self.assertEqual([track.lane for track in tracks], ["operators", "runtime", "device"])
            operators, runtime, device = (track.events for track in tracks)
            self.assertEqual(list(operators["name"]), ["ProfilerStep#0", "aten::mm", "aten::add"])
            self.assertEqual(operators["duration_ns"].tolist(), [100_000, 6_000, 6_000])
            self.assertEqual(list(operators["category"]), ["user_annotation", "cpu_op", "cpu_op"])
            self.assertNotIn("correlation", operators)
            self.assertEqual(runtime["correlation"].tolist(), [1, 2])
            self.assertEqual(device["correlation"].tolist(), [1, 2])
            self.assertEqual((tracks[2].device, tracks[2].stream, tracks[0].device), (0, 7, None))

            joined = run.events(1)
            self.assertEqual(joined["track"].tolist(), [0, 0, 0, 1, 1, 2, 2])
            self.assertEqual(joined["correlation"].tolist(), [0, 0, 0, 1, 2, 1, 2])
            self.assertEqual(len(run.events(1, lane="device")), 2)
            self.assertEqual(len(run.events(1, lane="python")), 0)
            self.assertEqual(run.events(1, lane="python").columns, joined.columns)
            self.assertEqual(joined.to_dicts(2, 4), joined.to_dicts()[2:4])

            memory = run.memory_events(1)
            self.assertEqual(memory["allocated_bytes"].tolist(), [512, 1024])
            self.assertEqual(memory["reserved_bytes"].tolist(), [4096, 4096])
            self.assertEqual(memory["device"].tolist(), [0, 0])

    def test_names_are_found_by_text_and_by_rule(self):
        names = recorded().tracks(0)[0].events["name"]
        by_text = names.matches("aten::mm")
        texts = np.asarray(names)
        self.assertGreater(by_text.sum(), 0)
        self.assertEqual(by_text.tolist(), (texts == "aten::mm").tolist())
        self.assertEqual(names.matches(lambda name: name.startswith("aten::")).sum(),
                         sum(name.startswith("aten::") for name in names))
        self.assertEqual(names.matches("no such name").sum(), 0)

    def test_a_frame_of_events_groups_by_name(self):
        events = recorded().events(0)
        frame = events.to_pandas()
        self.assertEqual(str(frame["name"].dtype), "category")
        totals = frame[frame["category"] == "cpu_op"].groupby("name", observed=True)["duration_ns"].agg(["count", "sum"])
        rows = {row["name"]: row for row in recorded().operators() if row["rank"] == 0}
        self.assertEqual(totals.loc["aten::mm", "count"], rows["aten::mm"]["count"])
        self.assertEqual(totals.loc["aten::mm", "sum"], rows["aten::mm"]["cpu_total_ns"])


if __name__ == "__main__":
    unittest.main()
