"""`lockstep doctor` over the nodes of a job: three namespaces with a lockstepd each, and made-up ranks that register there."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import jsonschema

from lockstep_program import BINARY, DONE, FINDING, SOURCE
from node_namespaces import Nodes
from waiting import PATIENCE_S, wait_until

SCHEMA = json.loads((SOURCE / "docs/schema/doctor-1.schema.json").read_text(encoding="utf-8"))
NAMES = ("n1", "n2", "n3")
JOB = "trial"


class DoctorJobCase(unittest.TestCase):
    names = NAMES

    def setUp(self):
        self.nodes = Nodes(*self.names)
        self.addCleanup(self.nodes.close)

    def lockstep(self, command, *arguments):
        return subprocess.run([BINARY, command, "--json", "--host", ",".join(self.names), "--via", self.nodes.via(),
                               "--socket", self.nodes.sockets(), "--job", JOB, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False)

    def doctor(self, status):
        done = self.lockstep("doctor")
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        return report["data"]["checks"]

    def bad(self, checks):
        return {(check["id"], check["subject"]): check for check in checks if check["status"] == "problem"}


class DoctorJobTest(DoctorJobCase):
    def start_ranks(self, **odd):
        """Ranks 0 to 2, one a node; `odd` is how rank 2 differs."""
        for rank, name in enumerate(NAMES):
            keywords = {"NCCL_IB_DISABLE": "1", **(odd if rank == 2 else {})}
            self.nodes.stand_in(name, rank, 3, JOB, **keywords)

        def is_whole():
            jobs = json.loads(self.lockstep("status").stdout or "{}").get("data", {}).get("jobs", [])
            return jobs and not jobs[0]["missing_ranks"]

        wait_until(is_whole, "three ranks to register")

    def test_a_healthy_job(self):
        self.start_ranks()
        checks = self.doctor(DONE)
        states = {check["id"]: check["status"] for check in checks}
        for identity in ("node", "ranks", "network", "versions", "environment", "clocks"):
            self.assertEqual("ok", states[identity], checks)
        network = next(check for check in checks if (check["id"], check["subject"]) == ("network", ""))
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


class DoctorGpuTest(DoctorJobCase):
    """GPUs as a fake nvidia-smi tells them: a node's are the lines of a file in its folder."""

    names = ("n1", "n2")

    def setUp(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory(prefix="lkgpu-", dir="/tmp"))
        self.fake = pathlib.Path(scratch) / "nvidia-smi"
        self.enterContext(unittest.mock.patch.dict(os.environ, PATH=f"{scratch}:{os.environ['PATH']}"))
        super().setUp()
        for rank, name in enumerate(self.names):
            self.nodes.stand_in(name, rank, 2, JOB)
        wait_until(lambda: not self.bad(json.loads(self.lockstep("doctor", "--no-network").stdout)["data"]["checks"]),
                   "two ranks to register")

    def put_gpus(self, name, *gpus):
        """The node's GPUs, each given by how it differs from one that is all right."""
        lines = []
        for index, odd in enumerate(gpus):
            fields = {"index": index, "name": "NVIDIA H100 80GB HBM3", "pstate": "P0", "utilization": "98 %",
                      "used": "70000 MiB", "total": "81559 MiB", "celsius": 55, "uncorrected": 0, "bus": f"0000{index}:1B:00.0",
                      "reasons": "0x0000000000000004", "lanes": 16, "most_lanes": 16, "retired": "[N/A]", "pending": "No",
                      "failure": "No", **odd}
            lines.append(", ".join(map(str, fields.values())) + "\n")
        (self.nodes.folder / name / "fake-gpus").write_text("".join(lines), encoding="ascii")
        self.fake.write_text(f"#!/bin/sh\ncat {self.nodes.folder}/daemon/fake-gpus\n", encoding="ascii")
        self.fake.chmod(0o755)

    def gpus(self, status):
        return [check for check in self.doctor(status) if check["id"] == "gpu"]

    def test_health(self):
        (check,) = self.gpus(DONE)
        self.assertEqual("skipped", check["status"])
        for name in self.names:
            self.put_gpus(name, {}, {})
        (check,) = self.gpus(DONE)
        self.assertEqual("ok", check["status"], check)
        figures = {figure["name"]: figure["value"] for figure in check["figures"]}
        self.assertEqual((4, 70000 << 20, 11559 << 20, 55), (figures["gpus"], figures["least_used"], figures["least_free"],
                                                             figures["hottest"]))
        self.put_gpus("n2", {"uncorrected": 3}, {"reasons": "0x0000000000000048", "lanes": 8, "pending": "Yes"})
        checks = self.gpus(FINDING)
        self.assertEqual([("problem", "n2 0 NVIDIA H100 80GB HBM3"), *3 * [("warning", "n2 1 NVIDIA H100 80GB HBM3")]],
                         [(check["status"], check["subject"]) for check in checks])
        self.assertTrue(all(check["hosts"] == ["n2"] for check in checks))
        text = " ".join(check["finding"] for check in checks)
        for word in ("3 uncorrected", "hardware slowdown, heat", "8 of 16 PCIe lanes", "next reset"):
            self.assertIn(word, text)
        self.fake.write_text("#!/bin/sh\necho Unable to determine the device handle: GPU is lost\nexit 15\n", encoding="ascii")
        self.assertIn("GPU is lost", self.gpus(FINDING)[0]["finding"])


if __name__ == "__main__":
    unittest.main()
