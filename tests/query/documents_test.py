#!/usr/bin/env python3
"""docs/query.md: its ten questions print what it shows, and its reference is what the program declares.
With LOCKSTEP_UPDATE=1 both are written anew; review the difference like code."""

import os
import shlex
import subprocess
import tempfile
import unittest

import analyze_program as lockstep
import questions

PAGE = os.path.join(lockstep.SOURCE_ROOT, "docs", "query.md")
MARKER = "LOCKSTEP_UPDATE=1 ./test -R query.documents writes it anew. -->\n\n"


def read_page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def write_page(text):
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


def query(*arguments, cwd=None):
    done = subprocess.run([lockstep.PROGRAM, "query", *arguments], cwd=cwd, capture_output=True, text=True,
                          encoding="utf-8", env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False)
    if done.returncode != lockstep.DONE:
        raise AssertionError(f"exit status {done.returncode} of {arguments}\n{done.stderr}")
    return done.stdout


class DocumentsTest(unittest.TestCase):
    maxDiff = None

    def test_reference_is_what_the_program_declares(self):
        printed = query("--reference")
        page = read_page()
        start = page.index(MARKER) + len(MARKER)
        if os.environ.get("LOCKSTEP_UPDATE"):
            write_page(page[:start] + printed)
            page = read_page()
        self.assertEqual(page[start:], printed, "LOCKSTEP_UPDATE=1 writes it anew")

    def test_questions_print_what_is_shown(self):
        page = read_page()
        options = shlex.split(questions.RECIPE.search(page)["options"])
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([lockstep.GENERATOR, *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            asked = list(questions.questions(page))
            printed = {number: query("job", "--width", "110", "-q", sql, cwd=folder) for number, _, sql, _, _ in asked}
        if os.environ.get("LOCKSTEP_UPDATE"):
            for number, _, _, _, (start, end) in reversed(asked):
                page = page[:start] + printed[number] + page[end:]
            write_page(page)
            asked = list(questions.questions(page))
        self.assertEqual([number for number, *_ in asked], list(range(1, 11)))
        for number, title, _, shown, _ in asked:
            with self.subTest(question=title):
                self.assertGreater(printed[number].count("\n"), 2, "no rows")
                self.assertEqual(shown, printed[number])


if __name__ == "__main__":
    unittest.main()
