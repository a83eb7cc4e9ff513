"""`lockstep doctor` over the nodes of a job: three namespaces with a lockstepd each, and made-up ranks that register there."""

import json
import subprocess
import unittest

import jsonschema

from lockstep_program import BINARY, DONE, FINDING, SOURCE
from node_namespaces import Nodes, wait_until

SCHEMA = json.loads((SOURCE / "docs/schema/doctor-1.schema.json").read_text(encoding="utf-8"))
NAMES = ("n1", "n2", "n3")
JOB = "trial"


class DoctorJobTest(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(*NAMES)
        self.addCleanup(self.nodes.close)

    def lockstep(self, command, *arguments):
        return subprocess.run([BINARY, command, "--json", "--host", ",".join(NAMES), "--via", self.nodes.via(), "--socket",
                               self.nodes.sockets(), "--job", JOB, *arguments], capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, check=False)

    def start_ranks(self, **odd):
        """Ranks 0 to 2, one a node; `odd` is how rank 2 differs."""
        for rank, name in enumerate(NAMES):
            keywords = {"NCCL_IB_DISABLE": "1", **(odd if rank == 2 else {})}
            self.nodes.stand_in(name, rank, 3, JOB, **keywords)

        def is_whole():
            jobs = json.loads(self.lockstep("status").stdout or "{}").get("data", {}).get("jobs", [])
            return jobs and not jobs[0]["missing_ranks"]

        wait_until(is_whole, "three ranks to register")

    def doctor(self, status):
        done = self.lockstep("doctor")
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        return report["data"]["checks"]

    def bad(self, checks):
        return {(check["id"], check["subject"]): check for check in checks if check["status"] == "problem"}

    def test_a_healthy_job(self):
        self.start_ranks()
        checks = self.doctor(DONE)
        states = {check["id"]: check["status"] for check in checks}
        for identity in ("node", "ranks", "network", "versions", "environment", "clocks"):
            self.assertEqual("ok", states[identity], checks)
        network = next(check for check in checks if check["id"] == "network")
        figures = {figure["name"]: figure["value"] for figure in network["figures"]}
        self.assertEqual(3, figures["pairs"])
        self.assertGreater(figures["rate"], 0)
        self.assertGreater(figures["latency"], 0)

    def test_a_node_that_is_cut_off_is_named(self):
        self.start_ranks()
        self.nodes.cut_off("n3")
        bad = self.bad(self.doctor(FINDING))
        self.assertEqual([("network", "n3")], list(bad))
        self.assertEqual(["n3"], bad["network", "n3"]["hosts"])

    def test_another_version_and_another_setting(self):
        self.start_ranks(version="2.9.1+cpu", NCCL_IB_DISABLE="0")
        bad = self.bad(self.doctor(FINDING))
        self.assertEqual([("versions", ""), ("environment", "NCCL_IB_DISABLE")], list(bad))
        for check in bad.values():
            self.assertEqual([2], check["ranks"])
        self.assertIn("2.9.1+cpu on rank 2", bad["versions", ""]["finding"])

    def test_a_rank_that_is_not_there(self):
        for rank in (0, 2):
            self.nodes.stand_in(NAMES[rank], rank, 3, JOB)
        wait_until(lambda: len(self.bad_ranks()) == 1, "two ranks to register")
        bad = self.bad(self.doctor(FINDING))
        self.assertEqual([1], bad["ranks", ""]["ranks"])

    def bad_ranks(self):
        jobs = json.loads(self.lockstep("status").stdout or "{}").get("data", {}).get("jobs", [])
        return jobs[0]["missing_ranks"] if jobs else []


if __name__ == "__main__":
    unittest.main()
