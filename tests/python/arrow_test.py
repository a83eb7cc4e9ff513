"""Arrow's C interfaces, written by hand, as pyarrow reads them."""

import gc
import unittest

import numpy as np
import pyarrow as pa
from samples import recorded


def python_values(column):
    return column.to_pylist()


class ArrowTest(unittest.TestCase):
    def test_every_table_reads_back_to_its_rows(self):
        for name, table in recorded().analyze().items():
            arrow = pa.table(table)
            arrow.validate(full=True)
            self.assertEqual(tuple(arrow.column_names), table.columns, name)
            self.assertEqual(arrow.to_pylist(), table.to_dicts(), name)

    def test_a_batch_is_the_table(self):
        table = recorded().stragglers()
        batch = pa.record_batch(table)
        batch.validate(full=True)
        self.assertEqual(batch.to_pylist(), table.to_dicts())
        self.assertEqual(pa.schema(table), batch.schema)

    def test_units_and_nulls_are_in_the_schema(self):
        schema = pa.schema(recorded().steps())
        self.assertEqual(schema.field("idle_ns").metadata, {b"unit": b"ns"})
        self.assertEqual(schema.field("rank").metadata, None)
        self.assertTrue(schema.field("idle_ns").nullable)
        self.assertFalse(schema.field("rank").nullable)

    def test_columns_by_themselves(self):
        table = recorded().collectives()
        for name in table.columns:
            array = pa.array(table.column(name))
            array.validate(full=True)
            self.assertEqual(array.to_pylist(), table.column(name).to_pylist(), name)

    def test_events_come_a_batch_for_each_track_and_are_not_copied(self):
        run = recorded()
        events = run.events(0)
        arrow = pa.table(events)
        arrow.validate(full=True)
        tracks = run.tracks(0)
        self.assertEqual([len(chunk) for chunk in arrow["start_ns"].chunks], [len(track) for track in tracks])
        self.assertEqual(arrow.to_pylist()[:100], events.to_dicts(0, 100))
        for place, track in enumerate(tracks):
            address = track.events["start_ns"].__array_interface__["data"][0]
            self.assertEqual(arrow["start_ns"].chunks[place].buffers()[1].address, address)
            codes = track.events["name"].codes.__array_interface__["data"][0]
            self.assertEqual(arrow["name"].chunks[place].indices.buffers()[1].address, codes)

    def test_events_of_no_track_are_no_rows(self):
        arrow = pa.table(recorded().events(0, lane="device"))
        arrow.validate(full=True)
        self.assertEqual(arrow.num_rows, 0)
        self.assertIn("correlation", arrow.column_names)

    def test_numbers_are_where_numpy_sees_them(self):
        table = recorded().operators()
        arrow = pa.record_batch(table)
        self.assertTrue(np.shares_memory(arrow["cpu_self_ns"].to_numpy(), table["cpu_self_ns"]))

    def test_arrow_keeps_the_columns_alive(self):
        import lockstep
        from samples import RECORDED

        run = lockstep.load(RECORDED)
        expected = run.tracks(1)[0].events["duration_ns"].sum()
        rows = run.findings().to_dicts()
        events = pa.record_batch(run.tracks(1)[0].events)
        findings = pa.table(run.findings())
        del run
        gc.collect()
        self.assertEqual(pa.compute.sum(events["duration_ns"]).as_py(), expected)
        self.assertEqual(findings.to_pylist(), rows)

    def test_capsules_that_nobody_takes_are_freed(self):
        table = recorded().stragglers()
        for _ in range(1000):
            table.__arrow_c_schema__()
            table.__arrow_c_array__()
            table.__arrow_c_stream__()
        with self.assertRaises(ValueError):
            recorded().events(0).__arrow_c_array__()

    def test_pandas_from_arrow_has_the_same_values(self):
        events = recorded().events(0)
        frame = pa.table(events).to_pandas()
        self.assertEqual(frame["duration_ns"].tolist(), events["duration_ns"].tolist())
        self.assertEqual(frame["name"].astype(str).tolist(), list(events["name"]))


if __name__ == "__main__":
    unittest.main()
