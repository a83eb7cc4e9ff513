"""`lockstep doctor` over real training: ranks under torchrun on two nodes (namespaces) with a lockstepd each."""

import json
import pathlib
import re
import subprocess
import unittest

import jsonschema

from lockstep_program import BINARY, DONE, FINDING, SOURCE
from node_namespaces import Nodes
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

SCHEMA = json.loads((SOURCE / "docs/schema/doctor-1.schema.json").read_text(encoding="utf-8"))
NAMES = ("n1", "n2")
STEP_S = 0.4  # So long that what other programs of a busy machine take from a rank does not make it a straggler.
STEPS = 20  # Before anyone looks: a job that is just starting is not in step yet, and one delay of a short one is a large share.


class DoctorTrainingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes(*NAMES)
        cls.addClassCleanup(cls.nodes.close)
        cls.python = python_with_torch()

    def start(self, job, ranks, **odd):
        """A healthy job, so many ranks on each node; `odd` is what the second node's alone have in their environment."""
        state = self.nodes.folder / job
        state.mkdir()
        variables = {"KINETO_USE_DAEMON": "1", "KINETO_LOG_LEVEL": "5", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
                     "PYTHONPATH": str(SOURCE / "python")}
        launchers = self.nodes.torchrun(self.python, job, ranks,
                                        [SOURCE / "examples/hangs/healthy.py", "--state", state, "--step-s", STEP_S,
                                         "--lifetime-s", "400"],
                                        n1=variables, n2={**variables, **odd})

        def goes_on():
            ended = {name: launcher.returncode for name, launcher in launchers.items() if launcher.poll() is not None}
            self.assertFalse(ended, self.nodes.logs())
            told = [path.read_text(encoding="ascii").split() for path in state.glob("rank*")]
            return len(told) == sum(ranks.values()) and all(int(words[2]) >= STEPS for words in told)

        def is_whole():
            jobs = json.loads(self.lockstep("status", job).stdout or "{}").get("data", {}).get("jobs", [])
            return jobs and not jobs[0]["missing_ranks"]

        wait_until(goes_on, f"{job}'s ranks to train")
        wait_until(is_whole, f"{job}'s ranks to register")
        return launchers

    def end(self, launchers):
        for launcher in launchers.values():
            self.nodes.end(launcher)  # Its ranks end with it.

    def lockstep(self, command, job):
        return subprocess.run([BINARY, command, "--json", "--host", ",".join(NAMES), "--via", self.nodes.via(), "--socket",
                               self.nodes.sockets(), "--job", job], capture_output=True, text=True, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, check=False)

    def doctor(self, job, status):
        done = self.lockstep("doctor", job)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        return report["data"]["checks"]

    def test_a_healthy_job_has_no_line_that_is_not_right(self):
        launchers = self.start("whole", {"n1": 2, "n2": 2})
        checks = self.doctor("whole", DONE)
        self.end(launchers)
        lines = {check["id"]: check for check in checks}
        for identity, check in lines.items():
            with self.subTest(line=identity):
                if identity == "clocks":
                    self.assertIn(check["status"], ("ok", "skipped"), check)
                elif identity in ("collectives", "gpu"):
                    self.assertEqual("skipped", check["status"], check)
                    self.assertTrue(check["finding"])
                else:
                    self.assertEqual("ok", check["status"], check)
        self.assertEqual({"node", "ranks", "network", "collectives", "versions", "environment", "gpu", "clocks", "ptrace", "in_step",
                          "stragglers", "balanced"}, set(lines))
        figures = {figure["name"]: figure["value"] for figure in lines["balanced"]["figures"]}
        self.assertGreater(figures["least_memory"], 10 << 20)
        self.assertGreaterEqual(figures["most_memory"], figures["median_memory"])

    def test_another_version_and_setting_on_one_node(self):
        # As if another PyTorch was installed on the second node: the same files but for the one that says which.
        version = subprocess.run([self.python, "-W", "ignore", "-c", "import torch.version as v; print(v.__file__)"],
                                 capture_output=True, text=True, check=True).stdout.strip()
        text, count = re.subn(r"(?m)^__version__ = .*$", "__version__ = '2.9.1+cpu'",
                              pathlib.Path(version).read_text(encoding="utf-8"))
        self.assertEqual(1, count)
        other = self.nodes.folder / "version.py"
        other.write_text(text, encoding="utf-8")
        self.nodes.run_on("n2", "mount", "--bind", other, version)
        self.addCleanup(self.nodes.run_on, "n2", "umount", version)
        launchers = self.start("odd", {"n1": 2, "n2": 1}, NCCL_ALGO="Ring")
        checks = self.doctor("odd", FINDING)
        self.end(launchers)
        bad = {(check["id"], check["subject"]): check for check in checks if check["status"] == "problem"}
        self.assertEqual({("versions", ""), ("environment", "NCCL_ALGO")}, set(bad), json.dumps(checks, indent=1))
        for check in bad.values():
            self.assertEqual([2], check["ranks"], check)
        self.assertIn("2.9.1+cpu on rank 2", bad["versions", ""]["finding"])


if __name__ == "__main__":
    unittest.main()
