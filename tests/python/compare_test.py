"""Comparisons from Python are the command's, byte for byte."""

import json
import pathlib
import tempfile
import unittest

import analyze_program as program
import lockstep
from samples import RECORDED, recorded


def command(*arguments):
    process = program.run(["compare", "--quiet", *map(str, arguments)])
    if process.returncode not in (program.DONE, program.PARTIAL):
        raise AssertionError(process.stderr.decode("utf-8"))
    return process.stdout.decode("utf-8")


class CompareTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        cls.slow, cls.fast = str(folder / "slow"), str(folder / "fast")
        common = ("--ranks", 2, "--steps", 12, "--layers", 2)
        program.generate(cls.slow, *common)
        program.generate(cls.fast, *common, "--seed", 9)

    def check(self, a, b, flags=(), **options):
        comparison = lockstep.compare(a, b, **options)
        expected = command("--json", *flags, a, b)
        self.assertEqual(comparison.to_json(), expected)
        self.assertEqual(comparison.document, json.loads(expected))
        self.assertEqual(comparison.to_text(ascii=True, top=4), command("--ascii", "--top", "4", *flags, a, b))
        return comparison

    def test_two_folders(self):
        comparison = self.check(self.slow, self.fast)
        self.assertEqual(comparison.change, comparison.data["verdict"]["change"])
        self.assertIn(comparison.change, ("none", "faster", "slower", "unknown"))
        self.assertIn(comparison.verdict, repr(comparison))

    def test_options_mean_the_same(self):
        self.check(self.slow, self.fast, ["--skip-steps", "3", "--confidence", "95", "--minimum-effect", "2"], skip_steps=3,
                   confidence=0.95, minimum_effect=0.02)
        first = lockstep.load(self.slow).steps()["step"].min()
        self.check(self.slow, self.fast, ["--steps", f"{first + 2}-{first + 8}"], steps=(int(first) + 2, int(first) + 8))

    def test_runs_that_were_loaded(self):
        a, b = lockstep.load(self.slow), lockstep.load(self.fast)
        self.assertEqual(lockstep.compare(a, b).to_json(), command("--json", self.slow, self.fast))
        named = lockstep.compare(a, b, labels=("before", "<after>"))
        self.assertIn('"before"', named.to_json())
        self.assertIn("&lt;after&gt;", named._repr_html_())

    def test_a_run_against_itself_does_not_differ(self):
        comparison = lockstep.compare(recorded(), recorded())
        self.assertIn(comparison.change, ("none", "unknown"))

    def test_a_table_becomes_a_frame(self):
        comparison = lockstep.compare(self.slow, self.fast)
        names = [name for name, value in comparison.data.items() if isinstance(value, list) and value]
        self.assertTrue(names)
        for name in names:
            self.assertEqual(len(comparison.frame(name)), len(comparison.data[name]))
        with self.assertRaises(lockstep.InvalidArgumentError):
            comparison.frame("nothing")

    def test_what_can_not_be_compared_is_told(self):
        with self.assertRaisesRegex(lockstep.FailedPreconditionError, "passes="):
            lockstep.compare(lockstep.load(RECORDED, passes=["kernels"]), recorded())
        with self.assertRaisesRegex(lockstep.InvalidArgumentError, "9000"):
            lockstep.compare(recorded(), recorded(), steps=9000)
        with self.assertRaises(lockstep.NotFoundError):
            lockstep.compare(recorded(), "nowhere")
        with self.assertRaises(lockstep.InvalidArgumentError):
            lockstep.compare(recorded(), recorded(), confidence=2)


if __name__ == "__main__":
    unittest.main()
