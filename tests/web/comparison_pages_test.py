"""Pages of compare and scaling in Chromium: every view by keyboard, tables, both themes without a violation, no request."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from analyze_program import PROGRAM, generate  # noqa: E402


class ComparisonPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        web_packages.browser()
        web_packages.packages()
        cls.scratch = tempfile.TemporaryDirectory(prefix="lockstep-pages-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.runs = []
        for ranks in (1, 2, 4):
            folder = os.path.join(cls.scratch.name, f"run{ranks}")
            generate(folder, "--ranks", ranks, "--steps", 10, "--layers", 2, "--overlap", 0, "--memory")
            cls.runs.append(folder)
        cls.slow = os.path.join(cls.scratch.name, "slow")
        generate(cls.slow, "--ranks", 4, "--steps", 10, "--layers", 2, "--overlap", 0, "--memory", "--seed", 2,
                 "--straggler", "2:3000:kernel")

    def exercise(self, *command):
        page = os.path.join(self.scratch.name, f"{command[0]}.html")
        subprocess.run([PROGRAM, *command, "--quiet", "-o", page], check=True, stdout=subprocess.DEVNULL)
        pictures = os.environ.get("LOCKSTEP_PICTURES")
        print(web_packages.run_node("comparison_page.mjs", page, *([pictures] if pictures else [])))
        return page

    def test_compare(self):
        page = self.exercise("compare", self.runs[2], self.slow)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("rank 2&#39;s own time grew", text)  # without a script, too

    def test_scaling(self):
        self.exercise("scaling", *self.runs, "--no-sync", self.runs[2])


if __name__ == "__main__":
    unittest.main()
