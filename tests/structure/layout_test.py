"""The C++ source is laid out as .clang-format says; `scripts/lint --fix` does it."""

import os
import pathlib
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
FOLDERS = ("src", "tests", "fuzz", "bench")


class LayoutTest(unittest.TestCase):
    def test_clang_format_would_change_nothing(self):
        if not shutil.which("clang-format-14"):
            self.skipTest("clang-format-14 is not installed")
        files = sorted(path for folder in FOLDERS for path in (SOURCE / folder).rglob("*") if path.suffix in (".h", ".cc"))
        done = subprocess.run(["clang-format-14", "--dry-run", "--Werror", *files], cwd=SOURCE, capture_output=True, text=True)
        self.assertEqual("", done.stderr[-4000:])


if __name__ == "__main__":
    unittest.main()
