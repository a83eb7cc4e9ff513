"""The page's functions that need no browser: numbers, addresses, sorting, CSV, scales."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402


class Functions(unittest.TestCase):
    def test_functions(self):
        print(web_packages.run_node("functions.mjs"))


if __name__ == "__main__":
    unittest.main()
