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


def sections_of(table):
    """The table's parts of docs/json.md: heading and what stands behind it; those of its objects behind its own."""
    key = table["columns"][0]
    of_pass = f" Pass: `{table['pass']}`." if table["pass"] else ""
    keys = "" if table["path"].endswith("[]") else f" A key for each `{key['name']}`. {key['meaning']}"
    return list(_sections(f"data.{table['path']}", f"\n{table['sentence']}.{keys}{of_pass}\n", rows_fields(table)))


def rows_fields(table):
    """The fields of a row: its first column is the key, where rows are no array."""
    return table["columns"] if table["path"].endswith("[]") else table["columns"][1:]


def _sections(path, sentence, columns):
    lines = [sentence, "| field | type | unit | meaning | null |", "|---|---|---|---|---|"]
    for column in columns:
        kind = " ".join(f"`{value}`" for value in column["values"]) or ("array of " * column["is_list"] + column["type"])
        lines.append(f"| `{column['name']}` | {kind} | {column['unit']} | {column['meaning']} | {column['null']} |")
    yield f"### `{path}`\n", "\n".join(lines) + "\n\n"
    for column in columns:
        if column["fields"]:
            yield from _sections(f"{path}.{column['name']}" + "[]" * column["is_list"], "", column["fields"])


def schema_of(column):
    if column["values"]:
        found = {"enum": column["values"]}
    elif column["fields"]:
        found = object_schema_of(column["fields"])
        if column["null"]:
            found = {"anyOf": [found, {"type": "null"}]}
    else:
        found = {"type": [column["type"], "null"] if column["null"] else column["type"]}
        if column["type"] == "integer" and column["unit"] == "count":
            found["minimum"] = 0
    return {"type": "array", "items": found} if column["is_list"] else found


def object_schema_of(columns):
    properties = {column["name"]: schema_of(column) for column in columns}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parent_of(table, schema):
    """The schema of the object that the table lies in, and its key there."""
    *parents, last = table["path"].split(".")
    node = schema["$defs"]["data"]
    for name in parents:
        node = node["properties"][name]
        node = node.get("anyOf", [node])[0]
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
    return node, last.removesuffix("[]")


def rows_schema_of(table):
    """Rows in `data` itself are null where the pass did not run; an object around them is so for them."""
    rows = {"$ref": f"#/$defs/row_of_{table['name']}"}
    if not table["path"].endswith("[]"):
        return {"type": ["object", "null"], "additionalProperties": rows}
    is_there = "." in table["path"] or not table["pass"]
    return {"type": "array" if is_there else ["array", "null"], "items": rows}


class DeclaredTest(unittest.TestCase):
    maxDiff = 4000

    def test_sections_of_the_document_are_the_declarations(self):
        text = DOCUMENT.read_text(encoding="utf-8")
        before = ""
        for heading, section in (each for table in tables() for each in sections_of(table)):
            pattern = re.compile(rf"(?<=^{re.escape(heading)}).*?(?=^##)", re.MULTILINE | re.DOTALL)
            found = pattern.search(text)
            if UPDATE:
                text = pattern.sub(lambda _: section, text) if found else text.replace(before, before + heading + section, 1)
                before = section
                continue
            self.assertIsNotNone(found, f"docs/json.md has no heading {heading}")
            self.assertEqual(found.group(0), section, heading)
        if UPDATE:
            DOCUMENT.write_text(text, encoding="utf-8")

    def test_the_schema_is_the_declarations(self):
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        for table in tables():
            row = f"row_of_{table['name']}"
            parent, key = parent_of(table, schema)
            if UPDATE:
                schema["$defs"][row] = object_schema_of(rows_fields(table))
                parent["properties"][key] = rows_schema_of(table)
                if key not in parent["required"]:
                    parent["required"].append(key)
            else:
                self.assertEqual(schema["$defs"][row], object_schema_of(rows_fields(table)), table["name"])
                self.assertEqual(parent["properties"][key], rows_schema_of(table))
                self.assertIn(key, parent["required"])
        if UPDATE:
            used = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))
            schema["$defs"] = {name: node for name, node in schema["$defs"].items() if name in used}
            SCHEMA.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    unittest.main()
