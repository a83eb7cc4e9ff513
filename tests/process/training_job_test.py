"""A real job from training to answer: torchrun, four ranks over Gloo, rank 2 slow; `lockstep analyze` must name it."""

import json
import unittest

from example_job import ExampleJobTest
from lockstep_program import analyze_json, finding


class TrainingJobTest(ExampleJobTest):
    def train(self, *options):
        self.folder = self.record("traces", *options)

    def check_first_cause(self, report, cause, name):
        causes = report["data"]["wait_states"]["causes"]
        self.assertTrue(causes)
        self.assertEqual((2, cause, "chronic"), (causes[0]["rank"], causes[0]["cause"], causes[0]["pattern"]), causes)
        self.assertIn(name, causes[0]["name"])
        self.assertTrue(all(chain["hops"][-1]["late_rank"] == 2 for chain in causes[0]["chains"]))

    # The ranks may have to share two cores with whatever else the machine does: the slow rank is slow by more than that.
    def test_a_slow_data_loader_is_found(self):
        self.train("--slow-ms", "500")
        report = analyze_json(self.folder)
        straggler = finding(report, "straggler")
        self.assertIsNotNone(straggler)
        self.assertEqual(2, straggler["ranks"][0])
        self.assertIn("read_sample_from_slow_storage", json.dumps(straggler))
        self.check_first_cause(report, "data_loading", "DataLoader")

    def test_slow_computation_is_found(self):
        self.train("--slow-kind", "compute", "--slow-ms", "600")
        report = analyze_json(self.folder)
        straggler = finding(report, "straggler")
        self.assertIsNotNone(straggler)
        self.assertEqual(2, straggler["ranks"][0])
        self.check_first_cause(report, "host", "aten::")

    def test_garbage_collection_is_found(self):
        self.train("--slow-kind", "gc", "--slow-ms", "500", "--active-steps", "3")
        report = analyze_json(self.folder)
        self.assertEqual(2, finding(report, "straggler")["ranks"][0])
        self.check_first_cause(report, "garbage_collection", "gc: generation 2")

    def test_traces_without_shapes_are_analysed(self):
        self.train("--slow-ms", "500", "--no-record-shapes", "--active-steps", "3")
        report = analyze_json(self.folder)
        self.assertEqual(3, report["data"]["job"]["step_count"])
        self.assertEqual(2, finding(report, "straggler")["ranks"][0])


if __name__ == "__main__":
    unittest.main()
