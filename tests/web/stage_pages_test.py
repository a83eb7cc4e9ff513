"""Pages of `lockstep stages` and of the comparison of two of its summaries, of real jobs under torchrun, in Chromium."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "stages")]
import faulty_job  # noqa: E402
import web_packages  # noqa: E402
from page_file import Page  # noqa: E402
from pytorch import JobCase  # noqa: E402

BINARY = os.environ["LOCKSTEP_BINARY"]


class StagePages(JobCase):
    @classmethod
    def setUpClass(cls):
        web_packages.browser()
        web_packages.packages()
        super().setUpClass()
        for name, fault in (("even", "none"), ("slow", "forward:1:60:every")):
            faulty_job.run(BINARY, cls.python, cls.folder / name, 2, 40, fault, "--quiet", "--workload", "model=net")

    def exercise(self, name, *command):
        page = self.folder / f"{name}.html"
        done = subprocess.run([BINARY, *map(str, command), "--json", "-o", str(page)], check=True, stdout=subprocess.PIPE)
        pictures = os.environ.get("LOCKSTEP_PICTURES")
        print(web_packages.run_node("answer_page.mjs", str(page), *([pictures, name] if pictures else [])))
        return Page(page), json.loads(done.stdout)["data"]

    def test_the_page_of_a_job(self):
        page, data = self.exercise("stages", "stages", self.folder / "slow")
        self.assertEqual(page.data["answer"], data)
        self.assertEqual(1, data["verdict"]["rank"])

    def test_the_page_of_two_runs(self):
        page, data = self.exercise("stage-comparison", "compare", self.folder / "even", self.folder / "slow")
        self.assertEqual(page.data, data)


if __name__ == "__main__":
    unittest.main()
