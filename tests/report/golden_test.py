#!/usr/bin/env python3
"""Text output against golden files in golden/. `golden_test.py --update` writes them anew; review the diff like code."""
import pathlib
import sys
import unittest

import support

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
CASES = {
    # name: (program, words)
    "first_screen": (support.SAMPLE, ["text"]),
    "first_screen_ascii": (support.SAMPLE, ["text", "ascii"]),
    "first_screen_colour": (support.SAMPLE, ["text", "colour"]),
    "all_sections": (support.SAMPLE, ["text", "all"]),
    "all_sections_narrow": (support.SAMPLE, ["text", "all", "width=50", "top=2"]),
    "one_rank_one_step": (support.SAMPLE, ["text", "breakdown", "steps", "kernels", "rank=2", "step=6"]),
    "help": (support.LOCKSTEP, ["--help"]),
    "analyze_help": (support.LOCKSTEP, ["analyze", "--help"]),
}


class GoldenTest(unittest.TestCase):
    maxDiff = None

    def test_text_is_as_recorded(self):
        for name, (program, words) in CASES.items():
            with self.subTest(name):
                done = support.run(*words, program=program, cwd=support.ROOT)
                self.assertEqual(done.returncode, 0, done.stderr)
                path = GOLDEN / f"{name}.txt"
                if UPDATE:
                    GOLDEN.mkdir(exist_ok=True)
                    path.write_text(done.stdout)
                self.assertEqual(path.read_text(), done.stdout, f"rewrite with {pathlib.Path(__file__).name} --update")

    def test_no_line_is_wider_than_eighty_columns(self):
        for name, (program, words) in CASES.items():
            if "colour" in words:
                continue
            for line in support.run(*words, program=program, cwd=support.ROOT).stdout.splitlines():
                self.assertLessEqual(len(line), 80, f"{name}: {line}")


UPDATE = "--update" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--update"])
