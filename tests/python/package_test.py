"""The package as people install it: a wheel in an environment of its own, and an editable install."""

import json
import os
import pathlib
import shutil
import site
import subprocess
import sys
import tempfile
import unittest
import zipfile

import analyze_program as program
from samples import RECORDED, SOURCE

SCRIPT = """
import json, pathlib, lockstep
run = lockstep.load({path!r})
print(json.dumps([lockstep.__file__, lockstep.__version__, run.to_json(), int(run.steps()["rank"].sum())]))
"""


def execute(*arguments, cwd=None, **environment):
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if shutil.which("ccache"):
        inherited["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, check=False, cwd=cwd,
                          env={**inherited, **environment}, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"{arguments} ended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def pip(python, *arguments):
    return execute(python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments)


class PackageTest(unittest.TestCase):
    """Tools and NumPy are those of the test environment: nothing is fetched."""

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)

    def environment(self, name):
        """A virtual environment that sees the packages of the test's own, and neither the source nor the build tree."""
        base = self.folder / name
        execute(sys.executable, "-m", "venv", "--without-pip", base)
        python = base / "bin" / "python"
        packages = pathlib.Path(execute(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        (packages / "tools.pth").write_text(site.getsitepackages()[0] + "\n", encoding="utf-8")
        return python

    def build_options(self):
        return ["--no-build-isolation", "--no-deps", "--no-index", "--config-settings", f"build-dir={SOURCE / 'build' / 'wheel-test'}"]

    def check(self, python):
        """Imports it from a folder that has nothing to do with the source."""
        text = execute(python, "-c", SCRIPT.format(path=str(RECORDED)), cwd=self.folder)
        path, version, answer, ranks = json.loads(text)
        expected = program.run(["analyze", "--json", "--quiet", str(RECORDED)]).stdout.decode("utf-8")
        self.assertEqual(answer, expected)
        self.assertEqual(ranks, 30)
        self.assertIn(version, execute(program.PROGRAM, "version"))
        spans = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        execute(python, "-c", "import lockstep\nwith lockstep.trace('work'): pass", cwd=self.folder, LOCKSTEP_TRACE=str(spans))
        self.assertEqual(1, len(list(spans.glob("*.spans"))))
        # What LOCKSTEP_STAGES switches on waits for torch, which is not there; nothing is loaded without it.
        for wanted in ("1", "0", ""):
            loaded = execute(python, "-c", "import sys; print('lockstep._steps' in sys.modules)", cwd=self.folder, LOCKSTEP_STAGES=wanted)
            self.assertEqual(str(wanted == "1"), loaded.strip())
        return pathlib.Path(path)

    def test_1_a_wheel_is_built_and_works_alone(self):
        pip(sys.executable, "wheel", *self.build_options(), "--wheel-dir", self.folder, SOURCE)
        (wheel,) = self.folder.glob("lockstep-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        for name in ("lockstep/__init__.py", "lockstep/py.typed", "lockstep/_native.pyi", "lockstep/integrations/trackers.py"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if not name.startswith("lockstep")])
        metadata = next(name for name in names if name.endswith("METADATA"))
        self.assertIn("Requires-Dist: numpy", zipfile.ZipFile(wheel).read(metadata).decode("utf-8"))
        python = self.environment("installed")
        pip(python, "install", "--no-deps", "--no-index", wheel)
        self.assertIn(self.folder, self.check(python).parents)
        listed = pip(python, "show", "--files", "lockstep")
        self.assertIn("py.typed", listed)
        pip(python, "uninstall", "--yes", "lockstep")
        with self.assertRaises(AssertionError):
            execute(python, "-c", "import lockstep", cwd=self.folder)

    def test_2_an_editable_install_looks_at_the_source(self):
        python = self.environment("editable")
        pip(python, "install", *self.build_options(), "--editable", SOURCE)
        self.assertEqual(self.check(python), SOURCE / "python" / "lockstep" / "__init__.py")


if __name__ == "__main__":
    unittest.main()
