"""The shell scripts: runnable, clean by shellcheck, and in agreement with scripts/packages.txt."""

import os
import pathlib
import shutil
import subprocess
import tempfile
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

    def test_failed_tests_are_told_with_what_they_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder, "asan")
            run.mkdir()
            (run / "CTestTestfile.cmake").write_text(
                'add_test(passes "sh" "-c" "echo fine")\n'
                'add_test(fails "sh" "-c" "seq 100; echo the reason; exit 3")\n'
                'add_test(skips "sh" "-c" "exit 77")\nset_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)\n'
                'add_test(crashes "sh" "-c" "echo before; kill -SEGV $$")\n'
                'add_test(stays "sleep" "60")\nset_tests_properties(stays PROPERTIES TIMEOUT 1)\n'
                'add_test(absent "no such program")\n', encoding="utf-8")
            subprocess.run(["ctest", "--output-junit", "tests.xml"], cwd=run, capture_output=True)
            done = subprocess.run([SOURCE / "scripts/failed_tests", run / "tests.xml", run / "none.xml"],
                                  capture_output=True, text=True, check=True)
        self.assertIn("asan: fails failed; the last of its 101 lines:\n42\n", done.stdout)
        self.assertIn("\n100\nthe reason\n", done.stdout)
        self.assertIn("asan: crashes failed; the last of its 1 lines:\nbefore\n", done.stdout)
        self.assertEqual("asan: 4 failed: fails crashes stays absent", done.stdout.rstrip().splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
