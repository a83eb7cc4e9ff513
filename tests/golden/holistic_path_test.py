#!/usr/bin/env python3
"""Holistic Trace Analysis' critical path of a range, on its own data: what that tool prints (expected/hta_critical_path.json)
and what its own tests assert. Exact; of the overlay of a whole file 1 %, as those tests have it. Source: expected-numbers.md,
section 1.1."""

import unittest

import analyze_program as lockstep

FOLDER = ("traces", "hta_critical_path")
FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
TYPES = {"operator": "critical_path_operator", "launch_delay": "critical_path_kernel_launch_delay",
         "dependency": "critical_path_dependency", "kernel_kernel_delay": "critical_path_kernel_kernel_delay",
         "sync": "critical_path_sync_dependency"}
BOUNDS = {"cpu_ns": "cpu_bound", "compute_ns": "gpu_compute_bound", "kernel_kernel_ns": "gpu_kernel_kernel_overhead",
          "launch_ns": "gpu_kernel_launch_overhead", "communication_ns": "gpu_communication_bound",
          "data_loading_ns": "data_loading_bound"}
# What that tool draws between events when it hides operators and gaps between kernels.
DRAWN = ("dependency", "launch_delay", "sync")


class HolisticPathTest(lockstep.DataCase):
    cache = {}

    def path(self, file, name, instance):
        key = (file, name, instance)
        if key not in self.cache:
            answer = lockstep.analyze(lockstep.data_path(*FOLDER, file), "--pass", "critical_path",
                                      "--critical-path-range", name, "--critical-path-instance", str(instance))
            (self.cache[key],) = answer.data["critical_path"]["ranges"]
        return self.cache[key]

    def forward(self):
        """The measured forward pass of simple_add, and the file's own events."""
        events = lockstep.read_json(lockstep.data_path(*FOLDER, "simple_add.json.gz"))["traceEvents"]
        return self.path("simple_add.json.gz", FORWARD, 1), events

    def edge(self, path, first, at_first, second, at_second):
        """The edge between two instants of events of the file."""
        def is_instant(instant, event, at):
            return (instant["name"], instant["start_ns"], instant["duration_ns"], instant["instant"]) == (
                event["name"], lockstep.to_ns(event["ts"]), lockstep.to_ns(event["dur"]), at)
        (edge,) = [edge for edge in path["edges"]
                   if is_instant(edge["from"], first, at_first) and is_instant(edge["to"], second, at_second)]
        return edge

    def test_counts_lengths_and_shares(self):
        cases = lockstep.read_json(lockstep.data_path(*FOLDER, "expected", "hta_critical_path.json"))["cases"]
        self.assertEqual(len(cases), 4)
        for case in cases:
            with self.subTest(file=case["file"]):
                path = self.path(case["file"], case["annotation"], case["instance_id"] or 0)
                self.assertEqual(path["length_ns"], lockstep.to_ns(case["critical_path_length_us"]))
                self.assertEqual(path["node_count"], case["graph_nodes"])
                self.assertEqual(len(path["edges"]), case["graph_edges"])
                self.assertEqual({TYPES[name]: count for name, count in path["edge_counts"].items() if count},
                                 case["edge_counts_by_type"])
                self.assertEqual(path["critical_node_count"], case["critical_nodes"])
                self.assertEqual(sum(edge["critical"] for edge in path["edges"]), case["critical_edges"])
                self.assertEqual(path["critical_event_count"], case["critical_events"])
                for ours, theirs in BOUNDS.items():
                    self.assertEqual(path[ours], lockstep.to_ns(case["summary_us"].get(theirs, 0)), ours)
                self.assertEqual(path["length_ns"], sum(path[bound] for bound in BOUNDS))

    def test_weights_of_a_chain_of_operators(self):
        path, events = self.forward()
        relu, clamp, launch = events[286], events[287], events[1005]
        for first, at_first, second, at_second, micros, of in (
                (relu, "start", clamp, "start", 15, relu), (clamp, "start", launch, "start", 14, clamp),
                (launch, "start", launch, "end", 17, launch), (launch, "end", clamp, "end", 15, clamp),
                (clamp, "end", relu, "end", 32, relu)):
            edge = self.edge(path, first, at_first, second, at_second)
            self.assertEqual((edge["type"], edge["weight_ns"], edge["name"]), ("operator", lockstep.to_ns(micros), of["name"]))

    def test_launches_and_gaps_between_kernels(self):
        path, events = self.forward()
        first, second = events[1051], events[1067]
        calls = {event["args"].get("correlation"): event for event in events if event.get("cat") == "cuda_runtime"}
        launch = self.edge(path, calls[first["args"]["correlation"]], "start", first, "start")
        self.assertEqual((launch["type"], launch["weight_ns"]), ("launch_delay", lockstep.to_ns(27)))
        gap = self.edge(path, first, "end", second, "start")
        self.assertEqual((gap["type"], gap["weight_ns"]), ("kernel_kernel_delay", lockstep.to_ns(7)))
        causal = self.edge(path, calls[second["args"]["correlation"]], "start", second, "start")
        self.assertEqual((causal["type"], causal["weight_ns"]), ("launch_delay", 0))

    def test_synchronisations_weigh_nothing(self):
        path, events = self.forward()
        self.assertEqual(self.edge(path, events[1275], "end", events[1281], "end")["type"], "sync")
        for file, name, instance in (("simple_add.json.gz", FORWARD, 1), ("alexnet.json.gz", FORWARD, 1)):
            weights = [edge["weight_ns"] for edge in self.path(file, name, instance)["edges"] if edge["type"] == "sync"]
            self.assertGreater(len(weights), 0)
            self.assertEqual(set(weights), {0})

    def test_what_is_drawn(self):
        path, _ = self.forward()
        self.assertEqual(sum(edge["critical"] and edge["type"] in DRAWN for edge in path["edges"]), 21)
        overlaid = lockstep.read_json(lockstep.data_path(*FOLDER, "expected", "simple_add_overlaid_critical_path.json.gz"))
        theirs = sum("critical" in event.get("args", {}) for event in overlaid["traceEvents"])
        whole = self.path("simple_add.json.gz", "", 0)
        ours = whole["critical_event_count"] + 2 * sum(edge["critical"] and edge["type"] in DRAWN for edge in whole["edges"])
        self.assertEqual(theirs, 1008)
        self.assertLessEqual(abs(ours - theirs), theirs // 100, ours)

    def test_a_range_that_is_not_there_is_refused(self):
        done = lockstep.run(["analyze", lockstep.data_path(*FOLDER, "simple_add.json.gz"), "--critical-path-range", "nowhere"])
        self.assertEqual(done.returncode, lockstep.MISUSED)
        self.assertIn("nowhere", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
