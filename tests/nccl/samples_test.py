#!/usr/bin/env python3
"""What is known of every shared file of NCCL's (their README), through the program."""
import json
import os
import subprocess
import unittest

import analyze_program as lockstep
from waiting import PATIENCE_S


def nccl_log(*words, status=0):
    """The JSON of `lockstep nccl-log` of these paths below the shared data."""
    paths = [lockstep.data_path("nccl", *word.split("/")) if not word.startswith("-") else word for word in words]
    done = subprocess.run([lockstep.PROGRAM, "nccl-log", "--json", *paths], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == status, (done.returncode, done.stderr)
    return json.loads(done.stdout)["data"]


def kinds(data):
    return sorted(finding["kind"] for finding in data["findings"])


class LogSamplesTest(unittest.TestCase):
    def test_sixteen_devices_in_two_pods_of_equal_pids(self):
        data = nccl_log("logs/aws_2x_p4d_16gpu_mpirun_nccl_2.9.9.log")
        self.assertEqual([], data["findings"])
        self.assertEqual(0, data["lines"]["unknown"])
        self.assertEqual(596, data["lines"]["nccl"] + data["lines"]["other"])
        processes = data["processes"]
        self.assertEqual(16, len(processes))
        self.assertEqual(list(range(16)), sorted(process["rank"] for process in processes))
        by_host = {}
        for process in processes:
            by_host.setdefault(process["host"], set()).add(process["pid"])
        self.assertEqual({"nccl-tests-efa-16-worker-0": {25, 26, 27, 28, 29, 32, 34, 38},
                          "nccl-tests-efa-16-worker-1": {25, 26, 27, 28, 29, 38, 39, 40}}, by_host)
        self.assertEqual({"AWS Libfabric"}, {process["network"] for process in processes})
        self.assertEqual({"eth0"}, {process["bootstrap_interface"] for process in processes})
        self.assertEqual({"10.0.92.140", "10.0.70.144"}, {process["bootstrap_address"] for process in processes})
        self.assertEqual(["2.9.9+cuda11.2"], [p["version"] for p in processes if p["version"]])

    def test_its_communicator_is_whole(self):
        (communicator,) = nccl_log("logs/aws_2x_p4d_16gpu_mpirun_nccl_2.9.9.log")["communicators"]
        self.assertEqual(16, communicator["rank_count"])
        self.assertEqual(list(range(16)), [member["rank"] for member in communicator["members"]])
        self.assertTrue(all(member["completed"] for member in communicator["members"]))
        # Each pod's devices 0 to 7 at the bus ids that nccl-tests prints.
        for member in communicator["members"]:
            self.assertEqual(member["rank"] % 8, member["device"])
        self.assertEqual("a01d0", communicator["members"][7]["bus_id"])
        self.assertEqual({"P2P IPC/read": 256, "network AWS Libfabric, GPUDirect": 64},
                         {row["name"]: row["connection_count"] for row in communicator["transports"]})
        rings = {tuple(ring["channels"]): ring["order"] for ring in communicator["rings"]}
        self.assertEqual({(0, 4), (1, 5), (2, 6), (3, 7)}, set(rings))
        self.assertEqual([0, 7, 6, 5, 4, 3, 2, 1, 8, 15, 14, 13, 12, 11, 10, 9], rings[(0, 4)])
        for order in rings.values():
            self.assertEqual(list(range(16)), sorted(order))
        for tree in communicator["trees"]:
            self.assertEqual(1, len(tree["roots"]), tree["channels"])
            self.assertEqual(15, len(tree["edges"]), tree["channels"])

    def test_every_line_of_every_log_is_of_a_known_kind(self):
        for name in sorted(os.listdir(lockstep.data_path("nccl", "logs"))):
            with self.subTest(name):
                self.assertEqual(0, nccl_log(f"logs/{name}")["lines"]["unknown"])

    def test_no_driver_is_told_as_such(self):
        for name in ("nccl.node-a.20978.log", "nccl_2.29.7_no_driver_stdout_warn.txt"):
            with self.subTest(name):
                data = nccl_log(f"logs/{name}")
                self.assertEqual(["cuda"], kinds(data))
                (finding,) = data["findings"]
                self.assertTrue(finding["first"])
                self.assertEqual(4, finding["line"])
                self.assertIn("CUDA driver version is insufficient", finding["text"])
                self.assertIsNotNone(finding["time_unix_ns"])

    def test_the_documented_lines_of_every_subsystem(self):
        data = nccl_log("logs/nccl_2.30_docs_subsystem_samples.log")
        self.assertEqual(82, data["lines"]["nccl"])
        for kind in ("api_call", "init_start", "ring", "tree", "operation", "tuning", "ras", "comm_destroy", "nvls", "init_timing"):
            self.assertIn(kind, data["lines"]["kinds"])
        self.assertIn("no_network", kinds(data))
        self.assertEqual([{"choice": "AllReduce 33554432 bytes: RING/SIMPLE", "line_count": 3}], data["tunings"])


class OtherSamplesTest(unittest.TestCase):
    def test_ras_answers(self):
        data = nccl_log("ras/mismatch_counts_32gpu.txt")
        (report,) = data["ras"]
        (communicator,) = report["communicators"]
        self.assertEqual("27a079b828ff1a75", communicator["hash"])
        self.assertEqual(32, communicator["size"])
        self.assertEqual([0, 2, 3, 4, 5, 7], [rank["rank"] for rank in communicator["ranks"]])
        self.assertEqual({6649}, {rank["operation_counts"][0]["count"] for rank in communicator["ranks"]})
        self.assertEqual(["ras_warning"], kinds(data))
        self.assertEqual([], nccl_log("ras/ok_32gpu.txt")["findings"])
        self.assertEqual(["ras_error"], kinds(nccl_log("ras/monitor.txt")))
        self.assertEqual(["ras_error"], kinds(nccl_log("ras/monitor_peer_dead.json")))

    def test_ras_json_names_who_is_missing(self):
        (report,) = nccl_log("ras/status_2.29.json")["ras"]
        self.assertEqual("2.29.1", report["version"])
        (communicator,) = report["communicators"]
        self.assertEqual(2, communicator["size"])
        self.assertEqual([1], communicator["missing_ranks"])
        self.assertEqual(["RUNNING", "MISSING"], [rank["status"] for rank in communicator["ranks"]])

    def test_topologies_have_their_devices(self):
        # File: GPUs, adapters on PCI.
        expected = {"aws-p4d-24xl-topo.xml": (8, 4), "azure-ncv4-topo.xml": (4, 0), "azure-ndv4-topo.xml": (8, 8),
                    "azure-ndv5-topo.xml": (8, 8), "oci-H100-topology.xml": (8, None), "oci-topo-flattened.xml": (8, None)}
        for name, (gpus, adapters) in expected.items():
            with self.subTest(name):
                (topology,) = nccl_log(f"topology/{name}")["topologies"]
                names = [node["name"] for node in topology["nodes"]]
                self.assertEqual(gpus, sum(node["kind"] == "pci" and node["name"].startswith("GPU") for node in topology["nodes"]))
                if adapters is not None:
                    self.assertEqual(adapters, sum(name.startswith("NIC ") for name in names))

    def test_gpus_beside_their_adapters_are_no_finding(self):
        for name in ("aws-p4d-24xl-topo.xml", "azure-ndv4-topo.xml", "azure-ndv5-topo.xml"):
            self.assertEqual([], nccl_log(f"topology/{name}")["findings"], name)
        self.assertEqual(["gpu_direct_off", "nic_far"], kinds(nccl_log("topology/azure-ncv4-topo.xml")))

    def test_graphs(self):
        (graphs,) = nccl_log("topology/azure-ncv4-graph.xml")["graph_files"]
        self.assertEqual([0, 1, 2], [graph["id"] for graph in graphs["graphs"]])
        self.assertEqual(["gpu 0", "gpu 3", "gpu 2", "gpu 1"], graphs["graphs"][0]["channels"][1])

    def test_machines_of_other_kinds_differ(self):
        data = nccl_log("topology/azure-ndv4-topo.xml", "topology/azure-ndv5-topo.xml")
        self.assertEqual(["topology_mismatch"], kinds(data))

    def test_tables_of_nccl_tests_are_not_taken_for_logs(self):
        done = subprocess.run([lockstep.PROGRAM, "nccl-log", lockstep.data_path("nccl", "nccl_tests", "aws_k8s_mpi.txt")],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(1, done.returncode)
        self.assertIn("no output of NCCL found", done.stderr)


if __name__ == "__main__":
    unittest.main()
