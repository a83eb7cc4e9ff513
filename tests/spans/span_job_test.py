"""A real program under liblockstep, killed, forked, out of disk: its result is the same, and its file can be read."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from own_file_system import on_own_file_system
from span_files import LOCKSTEP, counts, ledger, query
from waiting import PATIENCE_S

BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
JOB = BUILD / "bin/lockstep_span_job"


def launch(*command, cwd=None, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_TRACE") and name != "RANK"}
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=cwd,
                          env={**environment, **{name: str(value) for name, value in variables.items()}}, timeout=PATIENCE_S)


class SpanJobTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.folder = self.scratch / "spans"

    def check_same(self, *arguments, status=0, **variables):
        """The job with and without spans; returns the files."""
        plain = launch(JOB, *arguments)
        traced = launch(JOB, *arguments, LOCKSTEP_TRACE=self.folder, **variables)
        self.assertEqual((status, status), (plain.returncode, traced.returncode), traced.stderr)
        self.assertEqual(plain.stdout, traced.stdout)
        self.traced = traced
        return sorted(self.folder.glob("*.spans")) if self.folder.is_dir() else []

    def test_without_the_variable_nothing_is_written(self):
        done = launch(JOB, "work", 100, cwd=self.scratch)
        self.assertEqual(0, done.returncode)
        self.assertEqual([], list(self.scratch.iterdir()))

    def test_every_span_is_in_the_file(self):
        [path] = self.check_same("work", 20_000, RANK=3, WORLD_SIZE=8, LOCAL_RANK=1)
        self.assertTrue(path.name.startswith("rank3-"), path)
        self.assertEqual({"work": 1, "mix": 20_000}, counts(path))
        [inside] = query(path, "select sum(m.start_ns < w.start_ns or m.start_ns + m.duration_ns > w.start_ns + w.duration_ns) "
                               "as outside, min(m.rank) as rank from events m, events w where m.name = 'mix' and w.name = 'work'")
        self.assertEqual({"outside": 0, "rank": 3}, inside)
        self.assertNotIn("recording_not_ended", ledger(path))
        self.assertLess(path.stat().st_size, 20_000 * 16 * 1.25 + 300_000)

    def test_killed_it_leaves_all_that_it_wrote(self):
        [path] = self.check_same("kill", 20_000, status=-signal.SIGKILL)
        self.assertEqual({"work": 1, "mix": 20_000, "killed inside": 1}, counts(path))
        rows = ledger(path)
        self.assertIn("recording_not_ended", rows)
        self.assertEqual(1, rows["unfinished_spans"]["count"])

    def test_killed_in_the_middle_of_all_its_threads_a_ring_holds_the_last_of_each(self):
        for _ in range(3):
            with self.subTest(), tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
                self.folder = pathlib.Path(folder)
                [path] = self.check_same("kill_threads", 50_000, status=-signal.SIGKILL, LOCKSTEP_TRACE_RING=1, LOCKSTEP_TRACE_LIMIT_MIB=4)
                self.assertLessEqual(path.stat().st_size, 4 << 20)
                by_thread = query(path, "select thread_id, count(distinct name) as names, min(name) as name, count(*) as n from events "
                                        "where name like 'thread%' group by thread_id")
                self.assertEqual([f"thread{i}" for i in range(8)], sorted(row["name"] for row in by_thread))
                self.assertEqual({1}, {row["names"] for row in by_thread})
                self.assertGreater(sum(row["n"] for row in by_thread), 50_000)
                rows = ledger(path)
                self.assertIn("recording_not_ended", rows)
                self.assertIn("overwritten_spans", rows)
                self.assertFalse({"dropped_spans", "damaged_chunks", "truncated_file"} & set(rows), rows)
                # At most one that each of them was in.
                self.assertLessEqual(rows.get("unfinished_spans", {"count": 0})["count"], 8)

    def test_exit_without_destructors_loses_nothing(self):
        [path] = self.check_same("_exit", 5_000, status=7)
        self.assertEqual({"work": 1, "mix": 5_000}, counts(path))

    def test_a_program_that_calls_exec_leaves_two_files(self):
        paths = self.check_same("exec", 5_000)
        self.assertEqual(2, len(paths))
        self.assertEqual({"work": 1, "mix": 5_000}, counts(paths[0]))
        self.assertEqual({"work": 1, "mix": 5_000}, counts(paths[1]))

    def test_a_fork_in_a_span_gives_each_process_its_own_file(self):
        paths = self.check_same("fork", 50_000)
        self.assertEqual(4, len(paths))
        found = [counts(path) for path in paths]
        [parent] = [count for count in found if "before fork" in count]
        self.assertEqual({"before fork": 1, "across fork": 3, "work": 2, "mix": 50_100}, parent)
        for child in found:
            if child is not parent:
                self.assertEqual({"work": 1, "mix": 100}, child)
        # All of one rank: one trace, with the threads of four processes.
        self.assertEqual([{"n": 5}], query(self.folder, "select count(*) as n from tracks"))

    def test_ten_thousand_threads(self):
        [path] = self.check_same("threads", 10_000)
        self.assertEqual({"work": 10_000, "mix": sum(3 + i % 5 for i in range(10_000))}, counts(path))
        self.assertLess(path.stat().st_size, 16 << 20)

    def test_a_full_disk_costs_spans_and_nothing_else(self):
        script = 'LOCKSTEP_TRACE="$1" "$2" work 100000; status=$?; cp "$1"/*.spans "$3"; exit $status'
        self.folder.mkdir()
        done = on_own_file_system(self, launch, "-o size=768k", script, self.scratch / "small", JOB, self.folder)
        self.assertEqual((0, launch(JOB, "work", 100_000).stdout), (done.returncode, done.stdout), done.stderr)
        [path] = self.folder.glob("*.spans")
        kept = counts(path)["mix"]
        dropped = ledger(path)["dropped_spans"]["count"]
        self.assertGreater(kept, 20_000)
        # 1,000 counter values are records too.
        self.assertAlmostEqual(101_001, kept + dropped, delta=1_100)

    def test_a_file_system_that_cannot_be_written_costs_spans_and_nothing_else(self):
        script = 'LOCKSTEP_TRACE="$1" "$2" threads 200; status=$?; ls -A "$1" >&2; exit $status'
        done = on_own_file_system(self, launch, "-o ro", script, self.scratch / "fixed", JOB)
        self.assertEqual((0, launch(JOB, "threads", 200).stdout), (done.returncode, done.stdout), done.stderr)
        said, dropped = done.stderr.splitlines()  # And no file.
        self.assertIn("Read-only file system; the program goes on without", said)
        self.assertRegex(dropped, r"dropped \d+")

    def test_the_limit_is_kept_and_what_is_lost_is_counted(self):
        [path] = self.check_same("work", 200_000, LOCKSTEP_TRACE_LIMIT_MIB=1)
        self.assertLessEqual(path.stat().st_size, 1 << 20)
        self.assertGreater(counts(path)["mix"], 30_000)
        self.assertGreater(ledger(path)["dropped_spans"]["count"], 100_000)

    def test_a_limit_of_the_shell_is_no_end_of_the_job(self):
        done = launch("sh", "-c", 'ulimit -f 1000; exec "$0" work 200000', JOB, LOCKSTEP_TRACE=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        [path] = self.folder.glob("*.spans")
        self.assertGreater(counts(path)["mix"], 1_000)

    def test_a_folder_that_cannot_be_written_is_said_once(self):
        target = self.scratch / "file"
        target.write_text("")
        self.folder = target / "below"
        self.assertEqual([], self.check_same("threads", 200))
        self.assertEqual(1, self.traced.stderr.count("liblockstep:"), self.traced.stderr)

    def test_steps_are_steps(self):
        [path] = self.check_same("steps", 12)
        self.assertEqual([{"n": 12, "least": 0, "most": 11}],
                         query(path, "select count(*) as n, min(step) as least, max(step) as most from steps"))

    def test_requests_have_tails_and_a_time_to_first_output(self):
        [path] = self.check_same("requests", 200)
        [row] = query(path, "select * from inference_requests")
        self.assertEqual(("generate", 200, 20, 0, 800), tuple(row[name] for name in (
            "kind", "request_count", "failed_count", "unfinished_count", "output_count")))
        # Each sleeps for a millisecond before its first output.
        self.assertGreater(row["first_token_median_ns"], 1_000_000)
        self.assertLessEqual(row["first_token_median_ns"], row["median_ns"])
        self.assertLessEqual(row["median_ns"], row["p95_ns"])
        self.assertLessEqual(row["p95_ns"], row["p99_ns"])
        [linked] = query(path, "select count(*) as n, count(distinct r.trace_id) as traces, min(r.trace_id) as trace, "
                               "min(s.start_ns >= r.start_ns and s.end_ns <= r.end_ns) as inside from linked_spans s "
                               "join linked_spans r on s.parent_span_id = r.span_id where r.is_request and s.name = 'call'")
        self.assertEqual({"n": 200, "traces": 1, "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "inside": 1}, linked)
        text = launch(LOCKSTEP, "analyze", path, "--section", "inference").stdout
        self.assertRegex(text, r"generate +200 +20 ")

    def test_counters_hold_their_values(self):
        [path] = self.check_same("work", 1_000)
        self.assertEqual([{"rank": 0, "n": 10, "least": 0, "most": 900, "unit": None}],
                         query(path, "select rank, sample_count as n, min as least, max as most, unit from counters where name = 'done'"))

    def test_a_copy_that_is_cut_is_read_to_its_last_whole_chunk(self):
        [path] = self.check_same("work", 50_000)
        whole = path.read_bytes()
        for size in (700, 4096, 5000, len(whole) // 3, len(whole) - 50):
            cut = self.scratch / "rank0.spans"
            cut.write_bytes(whole[:size])
            done = launch(LOCKSTEP, "query", cut, "select count(*) as n from events", "--json")
            self.assertIn(done.returncode, (0, 1, 4), done.stderr)
            if size > 8192:
                self.assertGreater(json.loads(done.stdout)["rows"][0]["n"], 1_000)


if __name__ == "__main__":
    unittest.main()
