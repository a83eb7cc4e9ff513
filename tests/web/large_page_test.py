"""The page of 256 ranks and 500 steps (tests/page/generated_run_test.py makes it) in Chromium: no trouble, within its memory."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402

PAGE = os.path.join(web_packages.BUILD, "page-run", "report.html")
MOST_MB = 250


class LargePage(unittest.TestCase):
    def test_every_view_stays_within_the_memory(self):
        web_packages.browser()
        if not os.path.exists(PAGE):
            self.skipTest("lacks the page of the test page.generated_run")
        print(web_packages.run_node("large_page.mjs", os.path.abspath(PAGE), str(MOST_MB)))


if __name__ == "__main__":
    unittest.main()
