"""The live page of two nodes (network, process and host names of their own), each with a lockstepd that watches a real torchrun job over both:
in Chromium, on the first of them."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / "support"), str(TESTS / "monitoring"), str(TESTS / "daemon")]
import web_packages  # noqa: E402
from live_site import LiveSite  # noqa: E402
from two_nodes import PORT, TwoNodes  # noqa: E402

GROUP_JOB = "4713"
SLOW = 2  # On the second node.


class LiveNodes(TwoNodes):
    is_captured = True

    def setUp(self):
        web_packages.browser()
        web_packages.packages()
        super().setUp()
        # A second job's NCCL is a stand-in that drives the profiler plugin: there is no GPU here. Its rank 1 has called less.
        (self.folder / "nccl").mkdir()
        for rank, (node, count) in enumerate(zip(self.nodes, (5, 3), strict=True)):
            self.start_collectives(node, rank, count)

    def start_collectives(self, node, rank, count):
        launcher = {"TORCHELASTIC_RUN_ID": GROUP_JOB, "LOCAL_RANK": "0", "MASTER_ADDR": self.nodes[0].address, "MASTER_PORT": "29500"}
        process = node.start(self, [os.environ["LOCKSTEP_NCCL_RANK"], str(rank), "2", str(count), "0", "stay"],
                             {**launcher, "LOCKSTEP_NCCL_DIR": str(self.folder / "nccl")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.assertEqual("ready\n", process.stdout.readline())

    def test_a_job_on_two_nodes_is_watched_and_captured(self):
        self.plan({"slow": SLOW})
        self.wait_for_steps()
        hosts = ",".join(f"{node.address}:{PORT}" for node in self.nodes)
        site = LiveSite(self, "--host", hosts, "--output", self.folder / "traces", inside=self.nodes[0].inside)
        what = {"ranks": 4, "slow": str(SLOW), "node_count": 2, "captures": True, "themes": ["dark"],
                "devices": {"node1": 8, "node2": 8}, "group_job": GROUP_JOB}
        if pictures := os.environ.get("LOCKSTEP_PICTURES"):
            what["pictures"] = os.path.join(pictures, "two_nodes")
            os.makedirs(what["pictures"], exist_ok=True)
        print(web_packages.run_node("live_page.mjs", site.address, json.dumps(what), inside=self.nodes[0].inside))
        [capture] = (self.folder / "traces").iterdir()
        self.assertEqual([f"4711-node2-rank{SLOW}"], ["-".join(path.name.split("-")[:3]) for path in capture.glob("4711-*.json.gz")])


if __name__ == "__main__":
    unittest.main()
