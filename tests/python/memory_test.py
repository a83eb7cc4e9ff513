"""What is looked at and not copied, and what keeps what alive."""

import gc
import unittest
import weakref

import lockstep
import numpy as np
from samples import RECORDED, recorded


class NoCopyTest(unittest.TestCase):
    def test_events_are_the_columns_of_the_run(self):
        run = recorded()
        for name in ("start_ns", "duration_ns"):
            one, other = (run.tracks(0)[0].events[name] for _ in range(2))
            self.assertIsNot(one, other)
            self.assertEqual(one.__array_interface__["data"], other.__array_interface__["data"])
            self.assertFalse(one.flags.owndata)
        one, other = (run.tracks(0)[0].events["name"].codes for _ in range(2))
        self.assertTrue(np.shares_memory(one, other))

    def test_the_joined_events_of_one_track_are_not_copied(self):
        joined = recorded().events(0, lane="other")
        track = next(track for track in recorded().tracks(0) if track.lane == "other")
        self.assertTrue(np.shares_memory(joined["start_ns"], track.events["start_ns"]))

    def test_asking_twice_for_a_table_makes_it_once(self):
        run = recorded()
        self.assertTrue(np.shares_memory(run.kernels()["rank"], run.kernels()["rank"]) or len(run.kernels()) == 0)
        self.assertTrue(np.shares_memory(run.operators()["count"], run.operators()["count"]))
        one = run.steps()["span_ns"]
        self.assertTrue(np.shares_memory(one.data, run.steps()["span_ns"].data))
        self.assertTrue(np.shares_memory(one.mask, run.steps()["span_ns"].mask))

    def test_lists_are_views_into_one_block(self):
        waits = recorded().collectives()["duration_ns"]
        base = waits[0].base
        self.assertTrue(all(array.base is not None for array in waits))
        self.assertTrue(np.shares_memory(waits[0], base))

    def test_frames_look_at_the_same_memory(self):
        table = recorded().operators()
        frame = table.to_pandas()
        for name in table.columns:
            if table.column(name).kind in ("int64", "float64"):
                self.assertTrue(np.shares_memory(frame[name].to_numpy(copy=False), table[name]), name)
        steps = recorded().steps()
        self.assertTrue(np.shares_memory(steps.to_pandas()["span_ns"].array._data, steps["span_ns"].data))
        events = recorded().tracks(0)[0].events
        self.assertTrue(np.shares_memory(events.to_pandas()["start_ns"].to_numpy(), events["start_ns"]))

    def test_a_copied_frame_can_be_written(self):
        frame = recorded().operators().to_pandas().copy()
        frame.loc[0, "count"] = 7
        self.assertEqual(frame.loc[0, "count"], 7)
        derived = recorded().operators().to_pandas()
        derived["share"] = derived["cpu_self_ns"] / derived["cpu_self_ns"].sum()
        self.assertAlmostEqual(derived["share"].sum(), 1)


class LifetimeTest(unittest.TestCase):
    def test_a_column_outlives_its_run(self):
        run = lockstep.load(RECORDED)
        events = run.tracks(2)[0].events
        starts, names = events["start_ns"], events["name"]
        expected = starts.copy()
        texts = list(names)
        spans = run.steps()["span_ns"]
        expected_spans = spans.tolist()
        gone = weakref.ref(run)
        del run, events
        gc.collect()
        self.assertIsNone(gone())
        filler = [bytearray(1 << 20) for _ in range(64)]  # What was freed by mistake would be overwritten.
        self.assertEqual(starts.tolist(), expected.tolist())
        self.assertEqual(list(names), texts)
        self.assertEqual(spans.tolist(), expected_spans)
        del filler

    def test_nothing_is_left_when_everything_is_gone(self):
        def resident_kib():
            with open("/proc/self/status", encoding="ascii") as status:
                return int(next(line for line in status if line.startswith("VmRSS")).split()[1])

        def once():
            run = lockstep.load(RECORDED)
            run.analyze()
            run.events(0).to_pandas()
            run.tracks(0)[0].events["name"].matches("aten::mm")

        for _ in range(5):
            once()
        gc.collect()
        before = resident_kib()
        for _ in range(30):
            once()
        gc.collect()
        # A run of this job is above 3 MB: thirty of them kept would be 90 MB.
        self.assertLess(resident_kib() - before, 45_000)


if __name__ == "__main__":
    unittest.main()
