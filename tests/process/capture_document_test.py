"""docs/capture.md: every command in it is one of lockstep's, with flags that this command has, and its TOML is TOML."""

import re
import shlex
import subprocess
import tomllib
import unittest

from lockstep_program import BINARY, SOURCE

DOCUMENT = SOURCE / "docs/capture.md"


def indented_lines():
    text = DOCUMENT.read_text().replace("\\\n", "")  # A command may go on in the next line.
    return [line[4:] for line in text.splitlines() if line.startswith("    ")]


def commands():
    """(subcommand, its flags) of every lockstep command; of `run`, what stands in front of "--"."""
    for line in indented_lines():
        for found in re.finditer(r"(?<![\w/-])lockstep ((?:run|capture|status|tunnel)\b[^&]*)", line):
            words = shlex.split(found[1])
            words = words[:words.index("--")] if "--" in words else words
            yield words[0], [word for word in words[1:] if word.startswith("-")]


class CaptureDocumentTest(unittest.TestCase):
    def test_every_flag_is_one_of_its_commands(self):
        helps = {}
        seen = 0
        for command, flags in commands():
            if command not in helps:
                done = subprocess.run([BINARY, command, "--help"], capture_output=True, text=True)
                self.assertEqual(0, done.returncode, f"{command}: {done.stderr}")
                helps[command] = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", done.stdout))
            for flag in flags:
                with self.subTest(command=command, flag=flag):
                    self.assertIn(flag, helps[command])
            seen += 1
        self.assertGreaterEqual(seen, 12)

    def test_configuration_is_toml(self):
        snippets = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        self.assertTrue(snippets)
        for snippet in snippets:
            tomllib.loads(snippet)

    def test_files_that_it_names_are_there(self):
        for name in set(re.findall(r"`?(packaging/[\w./-]+[\w])`?", DOCUMENT.read_text())):
            with self.subTest(name):
                self.assertTrue((SOURCE / name).exists())


if __name__ == "__main__":
    unittest.main()
