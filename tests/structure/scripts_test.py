"""The shell scripts: runnable, clean by shellcheck, and in agreement with scripts/packages.txt."""

import os
import pathlib
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PROGRAMS = ["quickstart", "test", ".ci/run", "scripts/lint", "scripts/python_env", "scripts/python_test_env", "tests/python/run", "scripts/record_example", "scripts/record_hangs"]


class ScriptsTest(unittest.TestCase):
    def test_programs_may_be_run(self):
        self.assertEqual([], [name for name in PROGRAMS if not os.access(SOURCE / name, os.X_OK)])

    def test_shellcheck_finds_nothing(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed")
        done = subprocess.run(["shellcheck", "--external-sources", *PROGRAMS, "scripts/lib.sh"], cwd=SOURCE,
                              capture_output=True, text=True)
        self.assertEqual("", done.stdout + done.stderr)

    def test_packages_have_a_known_group_a_name_and_a_reason(self):
        for line in (SOURCE / "scripts/packages.txt").read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                group, _, reason = line.split(None, 2)
                self.assertIn(group, {"build", "test", "example", "lint"}, line)
                self.assertTrue(reason, line)

    def test_surplus_arguments_are_refused(self):
        done = subprocess.run([SOURCE / "quickstart", "--fast"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertNotEqual(0, done.returncode)
        self.assertIn("takes no arguments", done.stderr)


if __name__ == "__main__":
    unittest.main()
