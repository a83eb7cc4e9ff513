"""The shell scripts: runnable, clean by shellcheck, and in agreement with scripts/packages.txt."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PROGRAMS = ["quickstart", "test", ".ci/run", "scripts/lint", "scripts/python_env", "scripts/python_test_env", "tests/python/run", "scripts/record_example", "scripts/record_hangs"]

PLANTED_CASES = '''
import unittest
class Planted(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.assertEqual(1, 2)
    @unittest.skip("no such library")
    def test_skips(self): pass
'''
PLANTED_OUTPUT = """[==========] Running 4 tests from 1 test suite.
[ RUN      ] Layer.Passes
[       OK ] Layer.Passes (0 ms)
[ RUN      ] Layer.Skips
x.cc:3: Skipped
no GPU

[  SKIPPED ] Layer.Skips (0 ms)
[ RUN      ] Layer.Fails
x.cc:7: Failure
[  FAILED  ] Layer.Fails (0 ms)
[ RUN      ] Layer.Crashes
about to
"""


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

    def test_the_last_screen_names_what_failed_and_says_why(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "planted_test.py").write_text(PLANTED_CASES, encoding="utf-8")
            (folder / "planted.gtest").write_text(PLANTED_OUTPUT, encoding="utf-8")
            runner = f'"{sys.executable}" "-B" "{SOURCE}/tests/run_python_test.py"'
            (folder / "CTestTestfile.cmake").write_text(
                'add_test(passes "sh" "-c" "echo fine")\n'
                'add_test(fails "sh" "-c" "seq 100; echo the reason; exit 3")\n'
                'add_test(skips "sh" "-c" "echo no device here; exit 77")\nset_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)\n'
                'add_test(crashes "sh" "-c" "echo before; kill -SEGV $$")\n'
                'add_test(stays "sleep" "60")\nset_tests_properties(stays PROPERTIES TIMEOUT 1)\n'
                'add_test(absent "no such program")\n'
                f'add_test(python {runner} "{folder}/planted_test.py")\n'
                'add_test(google "sh" "-c" "cat planted.gtest; exit 1")\n', encoding="utf-8")
            subprocess.run(["ctest", "--test-output-size-passed", "100000", "--output-junit", "release-unit.xml"], cwd=folder,
                           capture_output=True)
            (folder / "phases.tsv").write_text("Build: release\t0\t65\t128\t3000\nTests: unit\t8\t10\t4\t0\n", encoding="utf-8")
            done = subprocess.run([SOURCE / "scripts/test_report", folder], capture_output=True, text=True)
            (folder / "release-unit.xml").unlink()
            (folder / "phases.tsv").write_text("Build: release\t0\t65\t128\t3000\n", encoding="utf-8")
            green = subprocess.run([SOURCE / "scripts/test_report", folder], capture_output=True, text=True)
        self.assertEqual(1, done.returncode, done.stderr)
        for expected in ("-- release-unit: fails; the last of its 101 lines:\n42\n", "\n100\nthe reason\n",
                         "-- release-unit: crashes; the last of its 1 lines:\nbefore\n", "-- release-unit: stays; ",
                         "-- release-unit: absent; ", "-- release-unit: google Layer.Fails; the last of its 1 lines:\nx.cc:7: Failure\n",
                         "-- release-unit: google Layer.Crashes; the last of its 2 lines:\nabout to\n(the program ended",
                         "-- release-unit: python test_fails (planted_test.Planted.test_fails); ", "AssertionError: 1 != 2\n",
                         "release-unit: skips: no device here\n", "release-unit: python: no such library\n",
                         "release-unit: google: no GPU\n", "   65 s    128 s   46%  Build: release\n",
                         "   10 s      4 s    0%  Tests: unit  FAILED\n"):
            self.assertIn(expected, done.stdout)
        self.assertEqual("3 passed, 7 failed, 3 skipped", done.stdout.rstrip().splitlines()[-1])
        self.assertEqual(0, green.returncode, green.stdout + green.stderr)


if __name__ == "__main__":
    unittest.main()
