"""JSON of compare against its schema, and the schema against docs/json.md."""

import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from analyze_program import SOURCE_ROOT, generate, run  # noqa: E402

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = pathlib.Path(SOURCE_ROOT)
COMMANDS = [path.name.split("-")[0] for path in sorted((ROOT / "docs/schema").glob("*-1.schema.json"))
            if path.name.split("-")[0] in ("compare", "scaling")]


def schema_of(command):
    return json.loads((ROOT / f"docs/schema/{command}-1.schema.json").read_text())


def leaves(node, path):
    if "properties" in node:
        for name, child in node["properties"].items():
            yield from leaves(child, f"{path}.{name}" if path else name)
    elif node.get("type") == "array" and "properties" in node["items"]:
        yield from leaves(node["items"], path + "[]")
    else:
        yield path


def documented(command):
    text = (ROOT / "docs/json.md").read_text()
    section = re.search(rf"^## `lockstep\.{command}/1`$(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
    return re.findall(r"^\| `([^`]+)` \|", section, re.M)


class DocumentationTest(unittest.TestCase):
    def test_every_field_of_the_schemas_is_documented_and_no_other(self):
        self.assertEqual(["compare", "scaling"], COMMANDS)
        for command in COMMANDS:
            fields = leaves(schema_of(command)["properties"]["data"], "data")
            self.assertEqual(sorted(fields), sorted(documented(command)), command)


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class OutputTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.runs = []
        for ranks in (1, 2, 4):
            folder = os.path.join(cls.scratch.name, str(ranks))
            generate(folder, "--ranks", ranks, "--steps", 8, "--layers", 2, "--memory")
            cls.runs.append(folder)

    def check(self, command, *arguments):
        process = run([command, "--json", "--quiet", *arguments])
        self.assertIn(process.returncode, (0, 4), process.stderr)
        document = json.loads(process.stdout)
        schema = schema_of(command)
        validator = jsonschema.validators.validator_for(schema)
        validator.check_schema(schema)
        errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator(schema).iter_errors(document)]
        self.assertEqual([], errors[:5])

    def test_compare(self):
        self.check("compare", self.runs[1], self.runs[2])
        self.check("compare", self.runs[0], self.runs[0], "--steps", "12")

    def test_scaling(self):
        self.check("scaling", *self.runs, "--no-sync", self.runs[2])
        self.check("scaling", *self.runs, "--strong", "--items-per-step", "8")

    def test_compare_of_the_recorded_job(self):
        recorded = str(ROOT / "examples/recorded")
        self.check("compare", recorded, recorded)


if __name__ == "__main__":
    unittest.main()
