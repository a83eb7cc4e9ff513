"""Pages of commands other than `analyze` in Chromium: every view by keyboard, tables, both themes without a violation, print, narrow windows, no
request; and the summary without a script."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from analyze_program import PROGRAM, SOURCE_ROOT, data_path, generate  # noqa: E402
from measured_fabric import measured_fabric  # noqa: E402
from page_file import Page  # noqa: E402


class AnswerPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        web_packages.browser()
        web_packages.packages()
        cls.scratch = tempfile.TemporaryDirectory(prefix="lockstep-pages-")
        cls.addClassCleanup(cls.scratch.cleanup)

    def run_of(self, name, *options):
        folder = os.path.join(self.scratch.name, name)
        if not os.path.exists(folder):
            generate(folder, "--steps", 10, "--layers", 2, "--overlap", 0, "--memory", *options)
        return folder

    def exercise(self, name, *command):
        """The page, and what `--json` says."""
        page = os.path.join(self.scratch.name, f"{name}.html")
        done = subprocess.run([PROGRAM, *command, "-o", page], check=True, stdout=subprocess.PIPE)
        pictures = os.environ.get("LOCKSTEP_PICTURES")
        print(web_packages.run_node("answer_page.mjs", page, *([pictures, name] if pictures else [])))
        return Page(page), json.loads(done.stdout)["data"] if "--json" in command else None

    def test_compare(self):
        page, data = self.exercise("compare", "compare", self.run_of("run4", "--ranks", 4), self.run_of("slow", "--ranks", 4, "--seed", 2, "--straggler", "2:3000:kernel"),
                                   "--quiet", "--json")
        self.assertIn("rank 2&#39;s own time grew", page.summary())
        self.assertEqual(page.document["title"], "slow against run4")
        self.assertEqual(page.data["verdict"], data["verdict"])

    def test_scaling(self):
        runs = [self.run_of(f"run{ranks}", "--ranks", ranks) for ranks in (1, 2, 4)]
        self.exercise("scaling", "scaling", *runs, "--no-sync", runs[2], "--quiet")

    def test_nccl_log(self):
        golden = os.path.join(SOURCE_ROOT, "tests", "nccl", "golden")
        page, data = self.exercise("nccl", "nccl-log", os.path.join(golden, "job.log"), os.path.join(golden, "topo.xml"), "--json")
        self.assertEqual(page.data, data)
        print(web_packages.run_node("rings.mjs", os.path.join(self.scratch.name, "nccl.html")))

    def test_nccl_log_of_two_hosts_of_eight(self):
        page, data = self.exercise("nccl16", "nccl-log", data_path("nccl", "logs", "aws_2x_p4d_16gpu_mpirun_nccl_2.9.9.log"),
                                   data_path("nccl", "topology", "oci-H100-topology.xml"), data_path("nccl", "ras", "ok_32gpu.txt"), "--json")
        self.assertEqual(page.data, data)
        print(web_packages.run_node("rings.mjs", os.path.join(self.scratch.name, "nccl16.html")))

    def test_kernels(self):
        tables = [data_path("nsight", "ncu", name) for name in ("esmm2.raw.csv", "esmm2.details.csv", "mistic1024.raw.csv")]
        page, data = self.exercise("kernels", "kernels", *tables, data_path("nsight", "stats", "mfu_2gpu_before_cuda_gpu_kern_sum.csv.gz"), "--json")
        self.assertEqual(page.data, data)

    def test_bench(self):
        results = measured_fabric(self.scratch.name, "--pairs")
        page, _ = self.exercise("bench", "bench", "show", results, "--beside", results)
        self.assertEqual(page.data["fabric"]["points"], page.data["earlier"]["points"])


if __name__ == "__main__":
    unittest.main()
