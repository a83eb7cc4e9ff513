"""py-spy itself, from PyPI, reads the stacks of an interpreter that the inspection does not know."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from waiting import PATIENCE_S

PRINT_INSPECTION = os.environ["LOCKSTEP_PRINT_INSPECTION"]
TARGET = """
import threading

def wait_in_thread(event):
    event.wait()

def wait_in_main(event):
    print("ready", flush=True)
    event.wait()

event = threading.Event()
threading.Thread(target=wait_in_thread, args=(event,), daemon=True).start()
wait_in_main(event)
"""


def unknown_python(folder):
    """A copy of this interpreter that does not export its version: the inspection cannot tell what it is."""
    name = b"\0Py_Version\0"
    original = os.path.realpath(sys.executable)
    program = pathlib.Path(original).read_bytes()
    if program.count(name) != 1:
        raise unittest.SkipTest(f"{original} does not export Py_Version itself")
    path = folder / os.path.basename(original)
    path.write_bytes(program.replace(name, b"\0Py_Verzion\0"))
    path.chmod(0o755)
    return path


class PySpyTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkspy-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        python = unknown_python(self.folder)
        self.process = subprocess.Popen([python, "-c", TARGET], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "PYTHONHOME": sys.base_prefix})
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.assertEqual("ready\n", self.process.stdout.readline())

    def inspect(self, path):
        done = subprocess.run([PRINT_INSPECTION, str(self.process.pid)], capture_output=True, text=True, encoding="utf-8",
                              timeout=PATIENCE_S, check=True, env={**os.environ, "PATH": path})
        found = json.loads(done.stdout)
        functions = {thread["tid"]: [frame["function"] for frame in thread.get("python", [])] for thread in found["stacks"]}
        return found, functions

    def test_it_is_asked_for_threads_that_nobody_else_knows(self):
        folder = pathlib.Path(sys.executable).parent
        self.assertTrue((folder / "py-spy").exists())
        found, functions = self.inspect(str(folder))
        self.assertIn("wait_in_main", functions[self.process.pid])
        self.assertEqual({"py-spy"}, {thread["source"] for thread in found["stacks"] if thread.get("python")})
        self.assertEqual(1, sum("wait_in_thread" in names for names in functions.values()))
        self.assertNotIn("python_stacks", [one["what"] for one in found.get("missing", [])])
        self.assertIsNone(self.process.poll(), "the process goes on")

    def test_without_it_the_stacks_are_named_missing(self):
        found, functions = self.inspect(str(self.folder))
        self.assertEqual([[], []], list(functions.values()))
        remedies = [one["remedy"] for one in found["missing"] if one["what"] == "python_stacks"]
        self.assertEqual(1, len(remedies))
        self.assertIn("py-spy", remedies[0])


if __name__ == "__main__":
    unittest.main()
