"""`lockstep run --stages` on real jobs whose kernels run on the stand-in for CUDA's driver: the stages' times are the device's, and its
waits for collectives are seen. This machine has no GPU."""

import os
import pathlib
import unittest

import faulty_job
from pytorch import JobCase

BINARY = os.environ["LOCKSTEP_BINARY"]
PACKAGE = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "python"
STEPS = 40


class DeviceTest(JobCase):
    def run_job(self, name, ranks, fault, **variables):
        said, summary = faulty_job.run(BINARY, self.python, self.folder / name, ranks, STEPS, fault, program="device_training.py",
                                       **variables)
        faulty_job.check_sums(self, summary, ranks)
        return said, summary["data"]

    def test_a_rank_whose_kernels_are_slow_is_named_though_its_host_runs_ahead(self):
        said, data = self.run_job("forward", 3, "forward:1:30:every")
        verdict = data["verdict"]
        self.assertEqual(("straggler", 1, "forward"), (verdict["answer"], verdict["rank"], verdict["stage"]), said)
        self.assertGreater(verdict["cost_ns"] / STEPS, 15e6, said)
        self.assertTrue(all(rank["device_times"] for rank in data["ranks"]))
        self.assertIn(", on the devices", said)
        times = {stage["stage"]: stage["rank_ns"] for stage in data["stages"]}
        # On the host it takes a few milliseconds. The others' devices wait for what this one takes longer.
        self.assertGreater(times["forward"][1], STEPS * 30e6)
        self.assertGreater(min(times["comm_exposed"][0], times["comm_exposed"][2]), 0.5 * (times["forward"][1] - times["forward"][0]))
        # All steps but the one in which the job ends, and that in which the device was first used, are the device's.
        self.assertGreaterEqual(data["step_count"], STEPS - 1)

    def test_input_that_the_device_waits_for(self):
        said, data = self.run_job("input", 2, "data:0:40:every")
        verdict = data["verdict"]
        self.assertEqual(("straggler", 0, "input"), (verdict["answer"], verdict["rank"], verdict["stage"]), said)
        times = {stage["stage"]: stage["rank_ns"] for stage in data["stages"]}
        self.assertGreater(times["comm_exposed"][1], 0.5 * times["input"][0], said)

    def test_what_the_program_marks_is_a_stage_of_the_device_too(self):
        said, data = self.run_job("marked", 2, "none", MARKS_OPTIMIZER="1", PYTHONPATH=str(PACKAGE))
        times = {stage["stage"]: stage["rank_ns"] for stage in data["stages"]}
        self.assertGreater(min(times["h2d"]), 0.9 * (STEPS - 2) * 4e6, said)
        self.assertLess(max(times["optimizer"]), min(times["h2d"]), said)

    def test_where_the_device_has_no_times_the_host_keeps_its_own(self):
        """Every stream is being captured into a graph: no event can be put there."""
        said, data = self.run_job("captured", 2, "forward:1:30:every", FAKE_CUDA_CAPTURES="1")
        self.assertEqual([False, False], [rank["device_times"] for rank in data["ranks"]])
        self.assertEqual(STEPS, data["step_count"])
        self.assertEqual(("undecided", "no_meeting"), (data["verdict"]["answer"], data["verdict"]["doubt"]), said)


if __name__ == "__main__":
    unittest.main()
