"""`lockstep run --stages` on real jobs whose kernels run on the stand-in for CUDA's driver: the stages' times are the device's, and its
waits for collectives are seen. This machine has no GPU."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import faulty_job
from pytorch import JobCase, job_environment
from waiting import PATIENCE_S

BINARY = os.environ["LOCKSTEP_BINARY"]
BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
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
        said, data = self.run_job("marked", 2, "none", MARKS_OPTIMIZER="1", PYTHONPATH=str(BUILD / "python"))
        times = {stage["stage"]: stage["rank_ns"] for stage in data["stages"]}
        self.assertGreater(min(times["h2d"]), 0.9 * (STEPS - 2) * 4e6, said)
        self.assertLess(max(times["optimizer"]), min(times["h2d"]), said)

    def test_where_the_device_has_no_times_the_host_keeps_its_own(self):
        """Every stream is being captured into a graph: no event can be put there."""
        said, data = self.run_job("captured", 2, "forward:1:30:every", FAKE_CUDA_CAPTURES="1")
        self.assertEqual([False, False], [rank["device_times"] for rank in data["ranks"]])
        self.assertEqual(STEPS, data["step_count"])
        self.assertEqual(("undecided", "no_meeting"), (data["verdict"]["answer"], data["verdict"]["doubt"]), said)

    def test_what_the_stream_waits_for_is_told_from_what_other_streams_do(self):
        folder = self.folder / "hooked"
        subprocess.run([sys.executable, faulty_job.HERE / "hooked_device.py"], check=True, timeout=PATIENCE_S,
                       env=job_environment(LOCKSTEP_TRACE=str(folder), LOCKSTEP_STEPS_HOOKS=str(BUILD / "lib/_hooks.abi3.so")))
        told = subprocess.run([BINARY, "query", folder, "--json", "SELECT step, stage, duration_ns FROM stages"],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(0, told.returncode, told.stderr)
        steps = {}
        for row in json.loads(told.stdout)["rows"]:
            steps.setdefault(row["step"], []).append((row["stage"], row["duration_ns"]))
        # That of the graph has no times; the first one is the host's.
        self.assertEqual([0, 1, 2, 3, 4, 6, 7, 8, 9, 10], list(steps))
        self.assertNotIn("comm_exposed", dict(steps.pop(0)))
        for step, parts in steps.items():
            waits = [ns for stage, ns in parts if stage == "comm_exposed"]
            self.assertEqual(4, len(waits), (step, parts))
            for least_ms, ns in zip((4, 2, 3, 5), waits):
                self.assertGreater(ns, least_ms * 1e6, (step, parts))
            self.assertGreater(dict(parts)["forward"], 10e6, (step, parts))
            self.assertGreater(sum(ns for stage, ns in parts if stage == "other"), 10e6, (step, parts))


if __name__ == "__main__":
    unittest.main()
