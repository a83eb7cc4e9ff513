#!/usr/bin/env python3
"""Nsight Systems' exports in other forms than SQLite, against the SQLite form of the same recording: every event is the
same. The JSON of a real report (nsys 2023.4); JSON lines as the exporter's manual describes them, one row of a table a
line, written here from real SQLite exports of nsys 2022.2 to 2026.1. Source: expected.json of the sets."""

import gzip
import json
import os
import shutil
import unittest

import analyze_program as lockstep
from nsight_test import SETS, NsightCase, query

EVENTS = ("SELECT rank, lane, category, name, trace_start_ns, duration_ns, correlation, device, stream, process_id, thread_id "
          "FROM events ORDER BY rank, lane, trace_start_ns, duration_ns, name, process_id, thread_id")


class MessagesTest(NsightCase):
    def exports(self):
        folder = lockstep.data_path("nsight", "own_torchrun_gloo_4rank")
        return (os.path.join(folder, "train.gpu-node-02.rank3-of-4.sqlite.xz"),
                os.path.join(folder, "exports", "train.gpu-node-02.rank3-of-4.json.gz"))

    def test_every_event_of_a_rank(self):
        tables, messages = self.exports()
        start = lockstep.read_json(lockstep.data_path("nsight", "own_torchrun_gloo_4rank",
                                                      "expected.json"))["ranks"][3]["utc_start_ns"]
        theirs = query(EVENTS, tables)
        for row in theirs:
            row["trace_start_ns"] -= start
        self.assertGreater(len(theirs), 400)
        self.assertEqual(query(EVENTS, messages), theirs)
        counted = self.open(tables).execute("SELECT count(*), sum(end - start) FROM OSRT_API").fetchone()
        ours = query("SELECT count(*) AS n, sum(duration_ns) AS ns FROM events WHERE category = 'other'", messages)[0]
        self.assertEqual((ours["n"], ours["ns"]), counted)

    def test_its_facts(self):
        tables, messages = self.exports()
        columns = "SELECT rank, world_size, event_count FROM ranks"
        self.assertEqual(query(columns, messages), query(columns, tables))
        answer = lockstep.analyze(messages)
        self.assertIn("nsys_no_start", answer.ledger_codes())
        # The program's schema was of another version than nsys knew, so that the bytes are all there is.
        self.assertIn("nsys_payload_unknown", answer.ledger_codes())

    def test_the_form_beside_the_others_counts_once(self):
        tables, messages = self.exports()
        files = [*self.set_files("nsight", "own_torchrun_gloo_4rank"), messages]
        answer = lockstep.analyze_whole(*files)
        self.assertEqual(answer.status, lockstep.DONE)
        self.assertEqual(len(answer.data["ranks"]), 4)
        self.assertIn("same_recording", answer.ledger_codes())
        self.assertEqual(query("SELECT count(*) AS n FROM events", *files),
                         query("SELECT count(*) AS n FROM events", *files[:4]))


class SingleReportTest(NsightCase):
    """One report of four processes: pids 29 to 32 are ranks 0 to 3, which only the JSON form says."""

    def setUp(self):
        super().setUp()
        folder = lockstep.data_path("nsight", "own_torchrun_single_report")
        self.tables = os.path.join(folder, "node0.sqlite.xz")
        self.messages = os.path.join(folder, "node0.no_osrt.json.gz")

    def check(self, *paths):
        answer = lockstep.analyze_whole(*paths)
        self.assertEqual(answer.status, lockstep.DONE)
        self.assertEqual([(row["rank"], row["world_size"], row["rank_source"]) for row in answer.data["ranks"]],
                         [(rank, 4, "distributed_info") for rank in range(4)])
        self.assertNotIn("nsys_rank_guess", answer.ledger_codes())
        worst = answer.data["stragglers"][0]
        self.assertEqual((worst["rank"], worst["activities"][0]["cause"]), (3, "data_loading"))
        pids = query("SELECT DISTINCT rank, process_id FROM events WHERE lane = 'operators' ORDER BY 1", *paths)
        self.assertEqual([(row["rank"], row["process_id"]) for row in pids], [(rank, 29 + rank) for rank in range(4)])
        return answer

    def test_the_environments_say_the_ranks(self):
        answer = self.check(self.messages)
        # Step 5 and all later ones: it is late in no earlier one by a tenth of that.
        late = [row for row in answer.data["collectives"] if row["name"] == "all_reduce" and row["last_rank"] == 3 and
                max(row["arrival_ns"]) - min(row["arrival_ns"]) > 50_000_000]
        self.assertEqual(len(late), 5)

    def test_ranges_are_those_of_the_tables(self):
        ranges = EVENTS.replace("FROM events", "FROM events WHERE lane = 'operators'").replace("trace_start_ns,", "", 1)
        self.assertEqual(query(ranges, self.messages), query(ranges, self.tables))

    def test_both_together(self):
        """The tables' events and clock, the JSON's ranks."""
        answer = self.check(self.tables, self.messages)
        self.assertIn("same_recording", answer.ledger_codes())
        rows = query("SELECT count(*) AS n FROM events WHERE name = 'gloo:all_reduce'", self.tables, self.messages)
        self.assertEqual(rows[0]["n"], 160)
        self.assertEqual({row["host"] for row in answer.data["ranks"]}, {"gpu-node-01"})

    def test_a_folder_of_both(self):
        shutil.copy(self.tables, self.folder)
        shutil.copy(self.messages, self.folder)
        self.check(self.folder)


class RowsTest(NsightCase):
    def write_rows(self, path, target):
        """Every table, a row a line, its keys sorted as the exporter sorts them and nulls left out."""
        connection = self.open(path)
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        with gzip.open(target, "wt", encoding="utf-8", compresslevel=1) as out:
            for table in tables:
                cursor = connection.execute(f'SELECT * FROM "{table}"')
                names = [column[0] for column in cursor.description]
                for row in cursor:
                    line = {name: value for name, value in zip(names, row) if value is not None}
                    out.write(json.dumps({**line, "table": table}, sort_keys=True, separators=(",", ":")) + "\n")

    def test_every_event_of_every_version(self):
        kept = 0
        for name in (*SETS, "jacc"):
            with self.subTest(name=name):
                path = self.path_of(name) if name in SETS else lockstep.data_path("nsight", "jacc", "report1.sqlite.xz")
                target = os.path.join(self.folder, f"{name}.jsonl.gz")
                self.write_rows(path, target)
                theirs = query(EVENTS, path)
                kept += len(theirs)
                self.assertEqual(query(EVENTS, target), theirs)
                codes = sorted(set(lockstep.analyze(path).ledger_codes()))
                self.assertEqual(sorted(set(lockstep.analyze(target).ledger_codes())), codes)
        self.assertGreater(kept, 10000)


    def test_a_folder_of_them(self):
        path = self.path_of("healthy")
        folder = os.path.join(self.folder, "job")
        os.mkdir(folder)
        self.write_rows(path, os.path.join(folder, "rank0.jsonl.gz"))
        with open(os.path.join(folder, "losses.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"step":1,"loss":2.5}\n')
        self.assertEqual(query(EVENTS, folder), query(EVENTS, path))
        answer = lockstep.analyze(folder)
        self.assertEqual((answer.status, len(answer.data["ranks"])), (lockstep.DONE, 1))


class OtherFormsTest(NsightCase):
    def test_they_are_refused_with_what_to_do(self):
        folder = lockstep.data_path("nsight", "own_torchrun_gloo_4rank", "exports")
        stem = os.path.join(folder, "train.gpu-node-02.rank3-of-4")
        for path in (f"{stem}_arwdir/NVTX_EVENTS.arrow", f"{stem}_pqtdir/NVTX_EVENTS.parquet"):
            process = lockstep.run(["analyze", path])
            self.assertEqual(process.returncode, 1)
            self.assertIn("nsys export -t sqlite", process.stderr.decode())


if __name__ == "__main__":
    unittest.main()
