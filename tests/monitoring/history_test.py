"""The history that a real lockstepd keeps of real ranks: killed and started anew, of several jobs, bounded, asked for by `lockstep top`."""

import json
import os
import pathlib
import tempfile
import time
import unittest

from monitored import Watched  # First: it says where the others are.
from daemon_process import write_config
from top_test import Job, top

SECOND = 10**9


class HistoryTest(unittest.TestCase):
    def folder(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkh-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        folder.chmod(0o755)
        return folder

    def history(self, daemon, **query):
        words = "&".join(f"{name}={value}" for name, value in query.items())
        status, _, found = daemon.ask("GET", "/api/v1/history" + (f"?{words}" if words else ""))
        self.assertEqual(200, status, found)
        for series in found["series"]:
            for name, values in series["figures"].items():
                self.assertEqual(len(found["times_unix_ns"]), len(values), name)
        self.assertEqual(sorted(set(found["times_unix_ns"])), found["times_unix_ns"])
        return found

    def steps(self, found):
        """{(job, rank): [(time, steps)]}"""
        return {(series["labels"]["job_id"], series["labels"]["rank"]):
                [pair for pair in zip(found["times_unix_ns"], series["figures"].get("steps", [])) if pair[1] is not None]
                for series in found["series"] if series["kind"] == "rank"}

    def wait_for_looks(self, daemon, job, looks, ranks=2):
        def there():
            steps = self.steps(self.history(daemon, job=job.name, points=2000))
            return len(steps) == ranks and min(map(len, steps.values())) >= looks
        daemon.wait_for(there, f"{looks} looks with steps")

    def ask_for_parts(self, daemon, job):
        whole, few = self.history(daemon, job=job.name, points=2000), self.history(daemon, job=job.name, points=2)
        self.assertLessEqual(len(few["times_unix_ns"]), 3)
        since = whole["times_unix_ns"][2]
        self.assertEqual(since, self.history(daemon, job=job.name, points=2000, since_ns=since)["times_unix_ns"][0])
        self.assertEqual([], [series for series in self.history(daemon, job="another")["series"] if "job_id" in series["labels"]])
        for query in ("points=0", "points=9999", "since_ns=yesterday", "jop=1", "job=%zz"):
            status, _, body = daemon.ask("GET", f"/api/v1/history?{query}")
            self.assertEqual((400, "invalid_argument"), (status, body["error"]["code"]), query)

    def test_two_jobs_a_kill_and_a_restart(self):
        folder = self.folder()
        daemon = Watched(self, folder=folder)
        jobs = [Job(self, "ours", [(10, 10, 5, 5), (12, 10, 3, 5)]), Job(self, "theirs", [(5, 5, 0, 5), (5, 5, 0, 5)])]
        for job in jobs:
            self.wait_for_looks(daemon, job, 6)
        self.ask_for_parts(daemon, jobs[1])
        before = self.history(daemon, points=2000)
        daemon.process.kill()
        daemon.process.wait()
        self.assertEqual(0o600, (folder / "state" / "history").stat().st_mode & 0o777)

        daemon = Watched(self, folder=folder)
        after = self.history(daemon, points=2000)
        # Nothing that was there is lost, and nothing is made up.
        self.assertLessEqual(set(before["times_unix_ns"]), set(after["times_unix_ns"]))
        known, again = ({key: looks for key, looks in self.steps(found).items() if key[0] in {job.name for job in jobs}}
                        for found in (before, after))  # A daemon of root's sees others' ranks, too.
        self.assertEqual(4, len(known))
        for key, looks in known.items():
            self.assertEqual(looks, again[key][:len(looks)])
            self.assertEqual(sorted(steps for _, steps in looks), [steps for _, steps in looks])
        # A job's own, and that of no other.
        self.assertEqual({jobs[0].name}, {job for job, _ in self.steps(self.history(daemon, job=jobs[0].name))})
        # It is written on: the counters of a new daemon begin anew, or go on where it has read the rank's file again.
        daemon.wait_for(lambda: self.history(daemon)["times_unix_ns"][-1] > before["times_unix_ns"][-1] + 3 * SECOND, "more")
        # And top knows at its first look what was before it.
        done = top("--once", "--json", "--socket", daemon.path, "--job", jobs[0].name)
        self.assertEqual(0, done.returncode, done.stderr)
        [shown] = json.loads(done.stdout)["data"]["jobs"]
        # Its own two looks would give one.
        self.assertGreaterEqual(len(shown["step_history_ns"]), 4)
        for step_ns in shown["step_history_ns"]:
            self.assertGreaterEqual(step_ns, 29e6)
        for rank in shown["ranks"]:
            self.assertGreaterEqual(len(rank["step_history_ns"]), 4)
        self.assertEqual(2, json.loads(done.stdout)["data"]["look_count"])

    def test_an_ended_job_grows_old_and_goes(self):
        folder = self.folder()
        config = write_config(folder, '[history]\nkeep = "4s"\ncoarse_keep = "6s"\ncoarse_every = "1s"\nlimit_mebibytes = 1\n')
        daemon = Watched(self, "--config", config, folder=folder)
        lasting, passing = Job(self, "lasting", [(5, 5, 0, 5)]), Job(self, "passing", [(5, 5, 0, 5)])
        for job in (lasting, passing):
            self.wait_for_looks(daemon, job, 3, ranks=1)
        passing.end()
        for rank in passing.ranks:
            rank.end()
        # That it ended is told while it is known.
        daemon.wait_for(lambda: "rank_ended" in [event["kind"] for event in self.history(daemon, job=passing.name)["events"]], "its end")
        daemon.wait_for(lambda: not self.history(daemon, job=passing.name)["series"], "its going")
        found = self.history(daemon)
        self.assertIn(lasting.name, {series["labels"].get("job_id") for series in found["series"]})
        self.assertGreaterEqual(found["times_unix_ns"][0], found["now_unix_ns"] - 8 * SECOND)
        limit = daemon.value("lockstep_history_limit_bytes")
        self.assertEqual(1 << 20, limit)
        self.assertLessEqual(daemon.value("lockstep_history_bytes"), limit)
        self.assertLessEqual((folder / "state" / "history").stat().st_size, limit)

    def test_without_a_history_all_else_works(self):
        folder = self.folder()
        daemon = Watched(self, "--config", write_config(folder, '[history]\nkeep = "0"\n'), folder=folder)
        job = Job(self, "none", [(5, 5, 0, 5)])
        job.wait_for_steps(daemon, 10)
        self.assertEqual([], self.history(daemon)["series"])
        self.assertIsNone(daemon.value("lockstep_history_bytes"))
        self.assertFalse((folder / "state" / "history").exists())
        self.assertEqual(0, top("--once", "--socket", daemon.path, "--job", job.name).returncode)

    def test_a_file_that_is_none_is_begun_anew(self):
        folder = self.folder()
        for content in (os.urandom(100_000), b"LKHIST01" + os.urandom(200_000), b"L"):
            state = folder / "state"
            state.mkdir(mode=0o700, exist_ok=True)
            (state / "history").write_bytes(content)
            began_ns = time.time_ns()
            daemon = Watched(self, folder=folder)
            self.assertTrue(all(time_ns >= began_ns for time_ns in self.history(daemon)["times_unix_ns"]))
            self.assertIn("a new one was begun", "".join(daemon.lines))
            daemon.stop()
        # A history that cannot be opened is reported; the daemon serves all the same.
        (folder / "state" / "history").unlink()
        (folder / "state" / "history").symlink_to("/dev/null")
        began_ns = time.time_ns()
        daemon = Watched(self, folder=folder)
        self.assertIn("runs without a history", "".join(daemon.lines))
        self.assertTrue(all(time_ns >= began_ns for time_ns in self.history(daemon)["times_unix_ns"]))


if __name__ == "__main__":
    unittest.main()
