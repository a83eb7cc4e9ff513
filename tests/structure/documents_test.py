"""What the documents tell a reader to run or to open exists."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOCKSTEP_BINARY", "")
DOCUMENTS = sorted([*SOURCE.glob("*.md"), *(SOURCE / "docs").rglob("*.md"), *(SOURCE / "examples").rglob("*.md")])
# Every subcommand of the program, as its file names it.
COMMANDS = sorted(name for path in (SOURCE / "src/programs/cli").rglob("*.cc")
                  for name in re.findall(r'const char\* name\(\) const override { return "([a-z-]+)"; }', path.read_text(encoding="utf-8")))


def commands(text):
    """Lines of indented or fenced code, and code in a sentence."""
    yield from (match[1] for match in re.finditer(r"^(?:    |\t)(?:\$ )?(.+)$", text, re.MULTILINE))
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from (line.removeprefix("$ ") for line in block.splitlines())
    yield from re.findall(r"`([^`\n]+)`", text)


class DocumentsTest(unittest.TestCase):
    def test_links_lead_to_files(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8")):
                if "://" not in target:
                    self.assertTrue((document.parent / target).exists(), f"{document.relative_to(SOURCE)}: {target}")

    def test_the_readme_is_short_and_leads_to_every_document(self):
        readme = (SOURCE / "README.md").read_text(encoding="utf-8")
        self.assertLessEqual(len(readme.splitlines()), 100, "what else there is to say belongs into a document of docs/")
        linked = set(re.findall(r"\]\(([^)#\s]+)\)", readme))
        documents = {f"docs/{path.name}" for path in (SOURCE / "docs").iterdir() if path.suffix == ".md"}
        self.assertEqual(set(), documents - linked)

    def test_every_command_has_an_example(self):
        text = (SOURCE / "docs/commands.md").read_text(encoding="utf-8")
        self.assertEqual([], [command for command in COMMANDS if not re.search(rf"(?m)^    .*\blockstep {command}\b", text)])

    def test_scripts_and_folders_that_are_named_exist(self):
        named = re.compile(r"^(?:\./(?P<top>[a-z]+)|(?P<path>(?:scripts|examples|tests|src|docs|fuzz|bench|cmake)/[\w./-]*))(?=$|\s)")
        for document in DOCUMENTS:
            for command in commands(document.read_text(encoding="utf-8")):
                match = named.match(command)
                if match:
                    path = (match["top"] or match["path"]).rstrip(".")
                    self.assertTrue((SOURCE / path).exists(), f"{document.relative_to(SOURCE)}: {command}")

    def test_commands_that_a_verdict_advises_exist(self):
        helps = {}
        for source in sorted((SOURCE / "src/analysis/hang").glob("*.cc")):
            for command, flag in re.findall(r"lockstep ([a-z-]+)(?: (--[a-z-]+))?", source.read_text(encoding="utf-8")):
                self.assertIn(command, COMMANDS, source.name)
                if flag and BINARY:
                    if command not in helps:
                        helps[command] = subprocess.run([BINARY, command, "--help"], capture_output=True, text=True, check=True).stdout
                    self.assertRegex(helps[command], rf"(?m)^\s+(?:-\w, )?{flag}\b", f"{source.name}: lockstep {command} {flag}")

    def test_every_group_of_tests_is_on_the_map(self):
        architecture = (SOURCE / "docs" / "architecture.md").read_text(encoding="utf-8")
        for group in sorted((SOURCE / "tests").iterdir()):
            if (group / "CMakeLists.txt").is_file():
                self.assertIn(f"`tests/{group.name}/`", architecture)

    def test_presets_that_are_named_exist(self):
        presets = (SOURCE / "CMakePresets.json").read_text(encoding="utf-8")
        for document in DOCUMENTS:
            for preset in re.findall(r"--preset (\w+)", document.read_text(encoding="utf-8")):
                self.assertIn(f'"name": "{preset}"', presets, document.name)

    @unittest.skipUnless(os.access(BINARY, os.X_OK), "lockstep is not built")
    def test_commands_and_flags_of_lockstep_exist(self):
        texts = {name: subprocess.run([BINARY, name, "--help"], capture_output=True, text=True).stdout for name in COMMANDS}
        for form in ("tensorboard", "csv", "speedscope", "collapsed", "otlp"):
            texts["export"] += subprocess.run([BINARY, "export", form, "--help"], capture_output=True, text=True).stdout
        for document in DOCUMENTS:
            for command in commands(document.read_text(encoding="utf-8")):
                words = command.split("#")[0].split()
                if not words or not re.fullmatch(r"(\S*/)?lockstep", words[0]) or len(words) < 2:
                    continue
                where = f"{document.relative_to(SOURCE)}: {command}"
                if words[1].startswith("-"):
                    continue
                self.assertIn(words[1], COMMANDS, where)
                of_lockstep = words[: words.index("--")] if "--" in words else words  # Behind it is the job's own command.
                for flag in of_lockstep[2:]:
                    if flag.startswith("--"):
                        self.assertIn(flag.split("=")[0], texts[words[1]], where)

    @unittest.skipUnless(os.access(BINARY, os.X_OK), "lockstep is not built")
    def test_samples_of_analyze_are_what_is_printed(self):
        """docs/analyze.md shows all of the output, README.md its beginning, with "..." for the rest."""
        done = subprocess.run([BINARY, "analyze", "examples/recorded"], cwd=SOURCE, capture_output=True, text=True,
                              encoding="utf-8", env={**os.environ, "LC_ALL": "C.UTF-8"})
        sample = re.compile(r"(?<=```text\n).*?(?=```)", re.DOTALL)
        beginning = done.stdout.split("\nRANKS ")[0] + "\n...\n"
        for document, printed in ((SOURCE / "docs/analyze.md", done.stdout), (SOURCE / "README.md", beginning)):
            text = document.read_text(encoding="utf-8")
            if os.environ.get("LOCKSTEP_UPDATE"):
                text = sample.sub(lambda _: printed, text, count=1)
                document.write_text(text, encoding="utf-8")
            self.assertEqual(sample.search(text)[0], printed, f"{document.name}: see the comment above the sample")


if __name__ == "__main__":
    unittest.main()
