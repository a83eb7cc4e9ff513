"""Types: the package and the example pass mypy --strict, and the stubs say what the module has."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import lockstep
from samples import SOURCE

PACKAGE = pathlib.Path(lockstep.__file__).parent
# What pybind11 adds to every class of its own.
PYBIND = r"""
lockstep\._native\.(Buffer|Column|Comparison|Run|Table)
lockstep\._native\.(Buffer|Column|Comparison|Run|Table)\.(__init__|__pybind11_.*|_pybind11_conduit_v1_)
lockstep\._native\.Buffer\.(__release_buffer__|__buffer__)
"""


def run(*arguments, **environment):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment}, cwd=tempfile.gettempdir())
    return done.returncode, done.stdout + done.stderr


class TypesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def mypy(self, *paths):
        return run("mypy", "--strict", "--python-version", "3.11", "--cache-dir", str(self.folder / "cache"), *paths,
                   MYPYPATH=str(PACKAGE.parent))

    def test_package_and_example_pass_strictly(self):
        status, text = self.mypy(str(PACKAGE), str(SOURCE / "examples" / "explore.py"))
        self.assertEqual(status, 0, text)

    def test_a_wrong_use_is_found(self):
        wrong = self.folder / "wrong.py"
        wrong.write_text("import lockstep\nlockstep.load('x').brakedown()\nlockstep.load('x', threads='two')\n", encoding="utf-8")
        status, text = self.mypy(str(wrong))
        self.assertEqual(status, 1, text)
        self.assertEqual(sorted(re.findall(r"\[([\w-]+)\]$", text, re.MULTILINE)), ["arg-type", "attr-defined"], text)

    def stubtest(self, root):
        allowed = self.folder / "allowed.txt"
        allowed.write_text(PYBIND, encoding="utf-8")
        return run("mypy.stubtest", "lockstep._native", "--allowlist", str(allowed), "--ignore-unused-allowlist",
                   MYPYPATH=str(root), PYTHONPATH=str(root))

    def test_stubs_are_the_module(self):
        status, text = self.stubtest(PACKAGE.parent)
        self.assertEqual(status, 0, text)

    def test_stubs_that_lack_or_invent_something_are_found(self):
        copy = self.folder / "lockstep"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        stub = copy / "_native.pyi"
        text = stub.read_text(encoding="utf-8").replace("def passes()", "def passages()").replace("def tracks(", "def lanes(")
        stub.write_text(text, encoding="utf-8")
        status, text = self.stubtest(self.folder)
        self.assertEqual(status, 1, text)
        for name in ("_native.passes", "_native.passages", "Run.tracks", "Run.lanes"):
            self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
