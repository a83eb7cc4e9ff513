"""A real job from training to answer: torchrun, four ranks over Gloo, rank 2 slow; `lockstep analyze` must name it."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from lockstep_program import SOURCE, analyze_json, finding

NO_PYTORCH = 3


class TrainingJobTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([SOURCE / "scripts/python_env"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        cls.no_pytorch = done.returncode == NO_PYTORCH and done.stderr.strip()
        if done.returncode not in (0, NO_PYTORCH):
            raise AssertionError(done.stderr)

    def setUp(self):
        if self.no_pytorch:
            self.skipTest(f"PyTorch cannot be had: {self.no_pytorch}")
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "traces"

    def train(self, *options):
        done = subprocess.run([SOURCE / "scripts/record_example", self.folder, *options], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([f"rank{rank}.json.gz" for rank in range(4)], sorted(path.name for path in self.folder.iterdir()))

    def check_first_cause(self, report, cause, name):
        causes = report["data"]["wait_states"]["causes"]
        self.assertTrue(causes)
        self.assertEqual((2, cause, "chronic"), (causes[0]["rank"], causes[0]["cause"], causes[0]["pattern"]), causes)
        self.assertIn(name, causes[0]["name"])
        self.assertTrue(all(chain["hops"][-1]["late_rank"] == 2 for chain in causes[0]["chains"]))

    # The ranks may have to share two cores with whatever else the machine does: the slow rank is slow by more than that.
    def test_a_slow_data_loader_is_found(self):
        self.train("--slow-ms", "150")
        report = analyze_json(self.folder)
        straggler = finding(report, "straggler")
        self.assertIsNotNone(straggler)
        self.assertEqual(2, straggler["ranks"][0])
        self.assertIn("read_sample_from_slow_storage", json.dumps(straggler))
        self.check_first_cause(report, "data_loading", "DataLoader")

    def test_slow_computation_is_found(self):
        self.train("--slow-kind", "compute", "--slow-ms", "250")
        report = analyze_json(self.folder)
        straggler = finding(report, "straggler")
        self.assertIsNotNone(straggler)
        self.assertEqual(2, straggler["ranks"][0])
        self.check_first_cause(report, "host", "aten::")

    def test_garbage_collection_is_found(self):
        self.train("--slow-kind", "gc", "--slow-ms", "200", "--active-steps", "3")
        report = analyze_json(self.folder)
        self.assertEqual(2, finding(report, "straggler")["ranks"][0])
        self.check_first_cause(report, "garbage_collection", "gc: generation 2")

    def test_traces_without_shapes_are_analysed(self):
        self.train("--slow-ms", "150", "--no-record-shapes", "--active-steps", "3")
        report = analyze_json(self.folder)
        self.assertEqual(3, report["data"]["job"]["step_count"])
        self.assertEqual(2, finding(report, "straggler")["ranks"][0])


if __name__ == "__main__":
    unittest.main()
