"""The example runs, and the documents' lines do."""

import contextlib
import io
import re
import runpy
import subprocess
import sys
import unittest

import lockstep
from samples import RECORDED, SOURCE

EXAMPLE = SOURCE / "examples" / "explore.py"


class ExampleTest(unittest.TestCase):
    def test_it_runs_and_finds_the_slow_rank(self):
        done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False, cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertIn("rank 2 was last in 10 of 10 collectives", done.stdout)
        self.assertIn("read_sample_from_slow_storage", done.stdout)

    def test_it_has_cells(self):
        self.assertGreaterEqual(EXAMPLE.read_text(encoding="utf-8").count("# %%"), 8)

    def test_it_takes_other_traces(self):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            argv, sys.argv = sys.argv, ["explore.py", str(RECORDED)]
            try:
                variables = runpy.run_path(str(EXAMPLE))
            finally:
                sys.argv = argv
        self.assertEqual(variables["run"].job.rank_count, 4)
        self.assertIn("all 4 ranks", shown.getvalue())


class DocumentTest(unittest.TestCase):
    text = (SOURCE / "docs" / "python.md").read_text(encoding="utf-8")

    def test_the_tour_runs(self):
        tour = "\n".join(line[4:] for line in self.text.split("## Install")[0].splitlines() if line.startswith("    "))
        self.assertEqual(tour.count("\n"), 10)
        # The tour's job has a device; the recorded one does not, so the lane is another.
        tour = tour.replace('"traces/"', repr(str(RECORDED))).replace('lane="device"', 'lane="operators"')
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            variables = {}
            exec(compile(tour, "docs/python.md", "exec"), variables)
        self.assertIn("Rank 2 holds the others up", shown.getvalue())
        self.assertGreater(variables["kernels"]["duration_ns"].sum(), 0)

    def test_every_error_is_listed_with_its_bases(self):
        rows = dict(re.findall(r"^\| `(\w+Error)` \| (?:`(\w+)`)? *\|", self.text, re.MULTILINE))
        errors = {name: kind for name, kind in vars(lockstep).items()
                  if isinstance(kind, type) and issubclass(kind, lockstep.Error) and kind is not lockstep.Error}
        errors.pop("CancelledError")  # Nobody sees it: what interrupts a load is raised itself.
        self.assertEqual(sorted(rows), sorted(errors))
        for name, base in rows.items():
            others = [kind.__name__ for kind in errors[name].__mro__[2:] if kind.__module__ == "builtins"]
            self.assertEqual(others[0], base or "Exception", name)

    def test_every_method_that_is_a_table_is_named(self):
        for name in re.findall(r"`(\w+)\(\)`", self.text.split("Units:")[0]):
            self.assertTrue(hasattr(lockstep.Run, name) or hasattr(lockstep.Table, name), name)
        for name in lockstep.load(RECORDED).analyze():
            self.assertIn(f"`{name}", self.text)


if __name__ == "__main__":
    unittest.main()
