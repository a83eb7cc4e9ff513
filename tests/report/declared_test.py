#!/usr/bin/env python3
"""docs/json.md and docs/schema/analyze-1.schema.json against the tables that passes declare (src/analysis/table.h).

With LOCKSTEP_UPDATE=1 both are written anew from the declarations instead.
"""
import json
import os
import re
import unittest

import support

DOCUMENT = support.ROOT / "docs/json.md"
SCHEMA = support.ROOT / "docs/schema/analyze-1.schema.json"
UPDATE = os.environ.get("LOCKSTEP_UPDATE") == "1"


def tables():
    return [json.loads(line) for line in support.run("tables", program=support.SAMPLE).stdout.splitlines()]


def section_of(table):
    """The table's part of docs/json.md, behind its heading."""
    lines = ["", f"{table['sentence']}. Pass: `{table['pass']}`.", "", "| field | type | unit | meaning | null |", "|---|---|---|---|---|"]
    for column in table["columns"]:
        kind = " ".join(f"`{value}`" for value in column["values"]) or column["type"]
        lines.append(f"| `{column['name']}` | {kind} | {column['unit']} | {column['meaning']} | {column['null']} |")
    return "\n".join(lines) + "\n\n"


def schema_of(column):
    if column["values"]:
        return {"enum": column["values"]}
    if column["type"] == "array of integer":
        return {"type": "array", "items": {"type": "integer"}}
    found = {"type": [column["type"], "null"] if column["null"] else column["type"]}
    if column["type"] == "integer" and column["unit"] == "count":
        found["minimum"] = 0
    return found


def row_schema_of(table):
    properties = {column["name"]: schema_of(column) for column in table["columns"]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class DeclaredTest(unittest.TestCase):
    maxDiff = 4000

    def test_sections_of_the_document_are_the_declarations(self):
        text = DOCUMENT.read_text(encoding="utf-8")
        before = None
        for table in tables():
            pattern = re.compile(rf"(?<=^### `data\.{table['name']}\[\]`\n).*?(?=^##)", re.MULTILINE | re.DOTALL)
            found = pattern.search(text)
            if found is None and UPDATE:
                text = text.replace(section_of(before), f"{section_of(before)}### `data.{table['name']}[]`\n{section_of(table)}", 1)
                before = table
                continue
            self.assertIsNotNone(found, f"docs/json.md has no heading ### `data.{table['name']}[]`")
            if UPDATE:
                text = pattern.sub(lambda _: section_of(table), text)
            else:
                self.assertEqual(found.group(0), section_of(table), table["name"])
            before = table
        if UPDATE:
            DOCUMENT.write_text(text, encoding="utf-8")

    def test_the_schema_is_the_declarations(self):
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        data = schema["$defs"]["data"]
        for table in tables():
            row = f"row_of_{table['name']}"
            listed = {"type": ["array", "null"], "items": {"$ref": f"#/$defs/{row}"}}
            if UPDATE:
                schema["$defs"][row] = row_schema_of(table)
                data["properties"][table["name"]] = listed
                if table["name"] not in data["required"]:
                    data["required"].append(table["name"])
            else:
                self.assertEqual(schema["$defs"][row], row_schema_of(table), table["name"])
                self.assertEqual(data["properties"][table["name"]], listed)
                self.assertIn(table["name"], data["required"])
        if UPDATE:
            used = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))
            schema["$defs"] = {name: node for name, node in schema["$defs"].items() if name in used}
            SCHEMA.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    unittest.main()
