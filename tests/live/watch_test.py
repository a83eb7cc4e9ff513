"""`lockstep watch`: a slow job is not called stuck, one that stops is, and what ends or is killed is said so."""

import json
import os
import unittest

import jsonschema

from live_jobs import SOURCE, LiveCase, Watch

SCHEMA = json.loads((SOURCE / "docs/schema/watch-1.schema.json").read_text(encoding="utf-8"))
STUCK = 3


class WatchTest(LiveCase):
    def watch(self, *arguments):
        return Watch(self, "--job", self.job, "--keep", self.folder / "kept", *arguments)

    def check(self, watch):
        for event in watch.events:
            jsonschema.validate(event, SCHEMA)

    def test_a_job_that_stops_after_some_steps_is_looked_into_while_it_lives(self):
        # Rank 1 stops first; rank 0 goes on for a while: that alone is not silence.
        ranks = [self.start_rank(0, arguments=["0.1+", *["0.1"] * 20, "stay"]), self.start_rank(1, arguments=["0.1+", "stay"])]
        watch = self.watch("--once", "--silence", "2s", "--first-silence", "4s")
        watch.wait_for("rhythm")
        for rank in reversed(ranks):
            self.tell(rank)
        stuck = watch.wait_for("stuck")
        self.assertTrue(all(rank.poll() is None for rank in ranks))
        status, names = watch.end()
        self.assertEqual((STUCK, ["begin", "rhythm", "silent", "stuck"]), (status, names))
        self.check(watch)
        index = json.loads((self.folder / "kept" / os.path.basename(stuck["folder"]) / "evidence.json").read_text())
        self.assertEqual([0, 1], [process["rank"] for process in index["processes"]])
        self.assertTrue(all(rank.poll() is None for rank in ranks), "the job goes on")

    def test_slow_steps_are_not_called_stuck(self):
        steps = (["0.05"] * 6 + ["0.5"]) * 12  # Ten times as long, again and again.
        self.start_rank(0, world_size=1, arguments=[*steps, "end"])
        watch = self.watch("--silence", "1s", "--first-silence", "3s")
        status, names = watch.end()
        self.assertEqual((0, ["begin", "rhythm", "rank_ended", "ended"]), (status, names))
        self.check(watch)

    def test_a_job_slower_than_the_least_silence_is_given_its_time(self):
        rank = self.start_rank(0, world_size=1, arguments=["1.0+", "1.0", "1.0", "end"])
        watch = self.watch("--silence", "300ms", "--first-silence", "8s")
        watch.wait_for("rhythm")
        self.tell(rank)
        status, names = watch.end()
        self.assertEqual((0, ["begin", "rhythm", "rank_ended", "ended"]), (status, names))
        self.assertGreater(watch.events[1]["limit_ns"], 2_000_000_000)

    def test_a_killed_rank_is_named_and_those_that_wait_are_looked_into(self):
        self.start_rank(0, arguments=["0.1"] * 20 + ["stay"])
        killed = self.start_rank(1, arguments=["0.1"] * 2000)
        watch = self.watch("--once", "--silence", "2s", "--first-silence", "4s")
        watch.wait_for("rhythm")
        killed.kill()
        killed.wait()
        self.assertEqual(1, watch.wait_for("rank_ended")["rank"])
        stuck = watch.wait_for("stuck")
        self.assertEqual(STUCK, watch.end()[0])
        folder = self.folder / "kept" / os.path.basename(stuck["folder"])
        missing = json.loads((folder / "evidence.json").read_text())["missing"]
        self.assertIn((1, "process"), [(one["rank"], one["what"]) for one in missing])
        self.check(watch)

    def test_it_goes_on_after_a_verdict_and_says_when_the_job_moves_again(self):
        rank = self.start_rank(0, world_size=1, arguments=["0.1+", "line", *["0.1"] * 20, "end"])
        watch = self.watch("--silence", "1s", "--first-silence", "2s")
        for event in ("rhythm", "stuck"):
            watch.wait_for(event)
            self.tell(rank)
        status, names = watch.end()
        self.assertEqual((STUCK, ["begin", "rhythm", "silent", "stuck", "moves", "rank_ended", "ended"]), (status, names))
        self.check(watch)
        self.assertGreater(watch.events[4]["limit_ns"], watch.events[2]["limit_ns"])

    def test_a_job_that_is_not_there_is_said_so(self):
        self.assertEqual(1, self.watch().end()[0])


if __name__ == "__main__":
    unittest.main()
