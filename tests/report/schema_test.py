#!/usr/bin/env python3
"""JSON output against docs/schema/analyze-1.schema.json, and the schema against docs/json.md."""
import json
import re
import unittest

import support

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = json.loads((support.ROOT / "docs/schema/analyze-1.schema.json").read_text())


def fields_of(node, path, found):
    """Paths of objects ("data.kernels[]", "" = top level) with the names of their properties."""
    while "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[1]]
    for choice in node.get("anyOf", []):
        fields_of(choice, path, found)
    if "items" in node:
        fields_of(node["items"], path + "[]", found)
    if isinstance(node.get("additionalProperties"), dict):
        fields_of(node["additionalProperties"], path, found)
    if "properties" in node:
        found.setdefault(path, set()).update(node["properties"])
        for name, child in node["properties"].items():
            fields_of(child, f"{path}.{name}" if path else name, found)
    return found


def documented_fields():
    found = {}
    path = None
    for line in (support.ROOT / "docs/json.md").read_text().splitlines():
        heading = re.match(r"### (?:`([^`]+)`|top level)", line)
        row = re.match(r"\| `([^`]+)` \|", line)
        if heading:
            path = heading.group(1) or ""
            found[path] = set()
        elif line.startswith("## "):
            path = None
        elif row and path is not None:
            found[path].add(row.group(1))
    return found


def documented_codes():
    text = (support.ROOT / "docs/json.md").read_text()
    return set(re.findall(r"^\| `([a-z_0-9]+)` \| (?:info|warning|error)", text, re.M))


class DocumentationTest(unittest.TestCase):
    def test_every_field_of_the_schema_is_documented_and_no_other(self):
        schema = fields_of(SCHEMA, "", {})
        schema.pop("data")  # its fields are the headings themselves
        documented = documented_fields()
        self.assertEqual(sorted(schema), sorted(documented))
        for path in schema:
            self.assertEqual(sorted(schema[path]), sorted(documented[path]), path)

    def test_every_table_has_a_heading(self):
        headings = {re.sub(r"^data\.|\[\]$", "", path) for path in documented_fields()}
        self.assertLessEqual(set(SCHEMA["$defs"]["data"]["properties"]), headings)

    def test_every_code_of_the_ledger_is_documented(self):
        listed = documented_codes()
        used = set()
        for source in (support.ROOT / "src").rglob("*.cc"):
            if source.name.endswith("_test.cc"):
                continue
            text = source.read_text()
            for pattern in (r'\.code = "([a-z_0-9]+)"', r'"([a-z_0-9]+)",\s*(?:model::)?Severity::k', r'Refuse\("([a-z_0-9]+)"'):
                used |= set(re.findall(pattern, text))
        self.assertEqual(sorted(used - listed), [], "in the sources, not in docs/json.md")


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class OutputTest(unittest.TestCase):
    def setUp(self):
        validator = jsonschema.validators.validator_for(SCHEMA)
        validator.check_schema(SCHEMA)
        self.validator = validator(SCHEMA)

    def check(self, text, where):
        def refuse(constant):
            self.fail(f"{where}: {constant} in JSON")

        document = json.loads(text, parse_constant=refuse)
        errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in self.validator.iter_errors(document)]
        self.assertEqual(errors[:5], [], where)
        for row in document["data"]["collectives"] or []:
            for parallel in ("arrival_ns", "end_ns", "wait_ns", "duration_ns"):
                self.assertEqual(len(row["ranks"]), len(row[parallel]), where)
        codes = {row["code"] for row in document["ledger"]}
        self.assertEqual(sorted(codes - documented_codes()), [], f"{where}: not in docs/json.md")
        return document

    def test_run_made_by_hand(self):
        done = support.run("json", program=support.SAMPLE)
        self.check(done.stdout, "sample")

    def test_passes_left_out_are_null(self):
        if not support.RECORDED.is_dir():
            self.skipTest("examples/recorded is absent")
        done = support.run("analyze", support.RECORDED, "--json", "--pass", "breakdown")
        document = self.check(done.stdout, "--pass breakdown")
        self.assertIsNone(document["data"]["kernels"])
        self.assertIsNotNone(document["data"]["breakdown"])

    def test_recorded_job(self):
        if not support.RECORDED.is_dir():
            self.skipTest("examples/recorded is absent")
        done = support.run("analyze", support.RECORDED, "--json")
        document = self.check(done.stdout, "examples/recorded")
        self.assertEqual(document["data"]["job"]["rank_count"], 4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")

    def test_shared_sets(self):
        if not support.SHARED_TRACES.is_dir():
            self.skipTest(f"{support.SHARED_TRACES} is absent")
        read = 0
        for folder in sorted(p for p in support.SHARED_TRACES.iterdir() if p.is_dir()):
            with self.subTest(folder.name):
                done = support.run("analyze", folder, "--json")
                self.assertIn(done.returncode, (0, 1, 4), done.stderr)
                if done.returncode == 1:
                    self.assertEqual(done.stdout, "")
                    self.assertRegex(done.stderr, r"^lockstep: .*trace")
                    continue
                document = self.check(done.stdout, folder.name)
                self.assertEqual(document["partial"], done.returncode == 4)
                read += 1
        self.assertGreaterEqual(read, 5)


if __name__ == "__main__":
    unittest.main()
