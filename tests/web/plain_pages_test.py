"""Pages without a script in Chromium: rings and rooflines can be read in both themes, and nothing is wider than a phone."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from analyze_program import PROGRAM, SOURCE_ROOT, data_path  # noqa: E402


class PlainPages(unittest.TestCase):
    def exercise(self, *command):
        web_packages.browser()
        with tempfile.TemporaryDirectory(prefix="lockstep-pages-") as folder:
            page = os.path.join(folder, "page.html")
            subprocess.run([PROGRAM, *command, "-o", page], check=True, stdout=subprocess.DEVNULL)
            print(web_packages.run_node("plain_page.mjs", page))

    def test_rings_of_two_hosts(self):
        golden = os.path.join(SOURCE_ROOT, "tests", "nccl", "golden")
        self.exercise("nccl-log", os.path.join(golden, "job.log"), os.path.join(golden, "topo.xml"))

    def test_rings_of_two_hosts_of_eight(self):
        self.exercise("nccl-log", data_path("nccl", "logs", "aws_2x_p4d_16gpu_mpirun_nccl_2.9.9.log"))

    def test_roofline(self):
        self.exercise("kernels", data_path("nsight", "ncu", "esmm2.raw.csv"))


if __name__ == "__main__":
    unittest.main()
