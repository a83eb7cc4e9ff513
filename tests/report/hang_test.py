#!/usr/bin/env python3
"""`lockstep hang` on small dumps made here: its JSON against the schema and docs/json.md, its text, its exit statuses."""
import json
import pathlib
import re
import tempfile
import unittest

import support

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = json.loads((support.ROOT / "docs/schema/hang-1.schema.json").read_text())
START_NS = 1_700_000_000_000_000_000


def leaves(node, path):
    if "properties" in node:
        for name, child in node["properties"].items():
            yield from leaves(child, f"{path}.{name}" if path else name)
    elif node.get("type") == "array" and "properties" in node["items"]:
        yield from leaves(node["items"], path + "[]")
    else:
        yield path


def dump(world, operations, done):
    """A flight record in which the first `done` of `operations` are complete."""
    entries = [{"record_id": i, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": i + 1, "p2p_seq_id": 0,
                "op_id": i + 1, "profiling_name": f"nccl:{name}", "time_created_ns": START_NS + i * 10**9, "input_sizes": [[64]],
                "output_sizes": [[64]], "input_dtypes": ["Float"], "output_dtypes": ["Float"],
                "state": "completed" if i < done else "scheduled", "retired": i < done, "timeout_ms": 600000, "is_p2p": False,
                "frames": [{"name": name, "filename": "/job/train.py", "line": 10 + i}]}
               for i, name in enumerate(operations)]
    status = {"last_enqueued_collective": len(entries), "last_started_collective": -1, "last_completed_collective": done}
    return json.dumps({"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))}},
                       "pg_status": {"0": status}, "entries": entries})


def stacks(function, line):
    return (f"Thread 0x00007f0000000001 (most recent call first):\n  File \"/job/train.py\", line {line} in {function}\n"
            "  File \"/job/train.py\", line 99 in <module>\n")


class HangTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write_stuck_job(self):
        """Rank 2 of 4 never comes to the third all_reduce: it is in its data loader."""
        for rank in range(4):
            names = ["all_reduce"] * (2 if rank == 2 else 3)
            (self.folder / f"trace_{rank}.json").write_text(dump(4, names, 2))
            (self.folder / f"stacks_{rank}.txt").write_text(stacks("next_batch", 5) if rank == 2 else stacks("step", 12))

    def hang(self, *words):
        return support.run("hang", "--quiet", *words, self.folder)

    def data(self, *words):
        done = self.hang("--json", *words)
        self.assertIn(done.returncode, (0, 3, 4), done.stderr)
        document = json.loads(done.stdout)
        if jsonschema:
            validator = jsonschema.validators.validator_for(SCHEMA)
            validator.check_schema(SCHEMA)
            errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator(SCHEMA).iter_errors(document)]
            self.assertEqual([], errors[:5])
        return document

    def test_every_field_of_the_schema_is_documented_and_no_other(self):
        text = (support.ROOT / "docs/json.md").read_text()
        section = re.search(r"^## `lockstep\.hang/1`$(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
        fields = leaves(SCHEMA["properties"]["data"], "data")
        self.assertEqual(sorted(fields), sorted(re.findall(r"^\| `([^`]+)` \|", section, re.M)))

    def test_the_verdict_names_the_rank_the_collective_and_the_line(self):
        self.write_stuck_job()
        document = self.data()
        verdict = document["data"]["verdict"]
        self.assertEqual("stuck_outside_collective", verdict["kind"])
        self.assertEqual([2], verdict["culprit_ranks"])
        self.assertEqual("all_reduce", verdict["operation"])
        self.assertEqual(3, verdict["sequence"])
        self.assertFalse(document["partial"])
        self.assertEqual([], document["ledger"])
        text = self.hang("--width", "80").stdout
        self.assertIn("rank 2", text.splitlines()[0])
        self.assertIn("train.py:5", text)
        self.assertNotIn("\x1b", text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)
        self.assertIn("\x1b[1", self.hang("--color", "always").stdout)

    def test_exit_statuses(self):
        self.write_stuck_job()
        self.assertEqual(0, self.hang().returncode)
        self.assertEqual(3, self.hang("--fail-on", "hang").returncode)
        self.assertEqual(3, self.hang("--fail-on", "stuck_outside_collective").returncode)
        self.assertEqual(0, self.hang("--fail-on", "crash").returncode)
        wrong = self.hang("--fail-on", "crush")
        self.assertEqual(2, wrong.returncode)
        self.assertIn("did you mean 'crash'?", wrong.stderr)
        self.assertEqual(2, support.run("hang", "--pid", "none").returncode)
        self.assertEqual(1, support.run("hang", self.folder / "absent").returncode)

    def test_a_damaged_file_makes_the_answer_partial(self):
        self.write_stuck_job()
        (self.folder / "trace_3.json").write_text(dump(4, ["all_reduce"] * 3, 2)[:-200])
        self.assertEqual(4, self.hang().returncode)
        document = self.data()
        self.assertTrue(document["partial"])
        self.assertTrue(any(row["source"].endswith("trace_3.json") for row in document["ledger"]), document["ledger"])

    def test_hostile_names_are_made_printable(self):
        self.write_stuck_job()
        (self.folder / "stacks_2.txt").write_text(stacks("next\x1b[31m\u202ebatch", 5))
        self.data()
        self.assertNotIn("\x1b", self.hang().stdout)
        self.assertNotIn("\u202e", self.hang().stdout)

    def test_an_archive_gives_the_same_as_its_folder(self):
        import tarfile
        self.write_stuck_job()
        expected = self.data()["data"]["verdict"]
        with tempfile.TemporaryDirectory(prefix="lockstep-") as other:
            archive = pathlib.Path(other) / "job.tar.gz"
            with tarfile.open(archive, "w:gz") as tar:
                tar.add(self.folder, "job")
            done = support.run("hang", "--quiet", "--json", archive)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(expected["culprit_ranks"], json.loads(done.stdout)["data"]["verdict"]["culprit_ranks"])


if __name__ == "__main__":
    unittest.main()
