"""`lockstep hang` asks a job's RAS, twice, and weighs what it says. NCCL needs GPUs, so a rank replays recorded answers;
everything from its socket on is real."""

import json
import os
import pathlib
import socket
import subprocess
import unittest

from live_jobs import PYTHON, SOURCE, LiveCase, clean_environment

RAS_RANK = pathlib.Path(__file__).with_name("recorded_ras_rank.py")
RECORDED = pathlib.Path(os.environ.get("LOCKSTEP_DATA", SOURCE.parent / "shared/data")) / "nccl/ras"


def recorded_status():
    """NCCL 2.29.1's own answer, of a job of two ranks of which one does not answer."""
    path = RECORDED / "status_2.29.json"
    if not path.exists():
        raise unittest.SkipTest(f"{path} is not here: NCCL's recorded answers are shared data")
    return json.loads(path.read_text(encoding="utf-8"))


def with_counts(status, launched):
    """The recorded answer with so many ranks, all there, which have launched so many AllReduces."""
    communicator = status["communicators"][0]
    one = communicator["ranks"][0]
    communicator["ranks"] = [{**one, "rank": rank, "pid": one["pid"] + rank,
                              "collective_counts": {**one["collective_counts"], "AllReduce": count}}
                             for rank, count in enumerate(launched)]
    communicator.update(size=len(launched), ranks_count=len(launched), missing_ranks_count=0, missing_ranks=[])
    return status


class RasTest(LiveCase):
    def start_ras_rank(self, answer, world_size, address="127.0.0.1:{}"):
        """Rank 0, which listens where its NCCL_RAS_ADDR says."""
        path = self.folder / "answer.json"
        path.write_text(answer if isinstance(answer, str) else json.dumps(answer, indent=1), encoding="utf-8")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            process = subprocess.Popen(
                [PYTHON, RAS_RANK, str(listener.fileno()), path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                pass_fds=[listener.fileno()],
                env=clean_environment(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world_size), TORCHELASTIC_RUN_ID=self.job,
                                      NCCL_RAS_ADDR=address.format(listener.getsockname()[1])))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual("ready\n", process.stdout.readline())
        return process

    def test_ranks_that_stay_behind_are_the_verdict_where_nothing_else_tells(self):
        self.start_ras_rank(with_counts(recorded_status(), [7, 7, 6, 7]), world_size=4)
        for rank in (1, 2, 3):
            self.start_rank(rank, world_size=4)
        data, folder, _ = self.hang("--job", self.job)
        kept = self.kept(folder)
        names = sorted(one["file"] for one in kept["ras"])
        self.assertEqual(sorted(path.name for path in folder.glob("ras_*")), names)
        self.assertEqual(2, len(names), kept)
        self.assertEqual(("stuck_outside_collective", [2]), (data["verdict"]["kind"], data["verdict"]["culprit_ranks"]), data)
        self.assertIn("launched 6 of AllReduce", data["verdict"]["explanation"])
        # Asked for another rank, it is still asked through the one that listens.
        kept = self.kept(self.hang("--job", self.job, "--rank", "1")[1])
        self.assertEqual(([1], 2), ([process["rank"] for process in kept["processes"]], len(kept["ras"])))

    def test_what_a_daemon_was_told_comes_whole_and_supports_the_verdict(self):
        self.start_ras_rank(recorded_status(), world_size=2)
        _, path, _ = self.start_daemon()
        data, folder, _ = self.hang("--socket", path, "--job", self.job)
        self.assertEqual(("crash", [1]), (data["verdict"]["kind"], data["verdict"]["culprit_ranks"]), data)
        by_ras = [item for item in data["evidence"] if item["source"] == "ras" and item["ranks"] == [1]]
        self.assertEqual([False], [item["contradicts"] for item in by_ras], data["evidence"])
        for answer in folder.glob("ras_*.json"):
            self.assertEqual(recorded_status(), json.loads(answer.read_text(encoding="utf-8")))

    def test_who_answers_and_is_no_ras_is_named_missing(self):
        process = self.start_ras_rank("no answer of RAS's", world_size=1, address="192.0.2.1:{}")
        data, folder, _ = self.hang("--pid", process.pid)
        missing = [one for one in self.kept(folder)["missing"] if one["what"] == "ras"]
        self.assertEqual(1, len(missing), data)
        self.assertIn("192.0.2.1", missing[0]["reason"])
        self.assertIn("NCCL_RAS_ADDR=localhost", missing[0]["remedy"])

    def test_a_job_without_nccl_misses_nothing(self):
        self.start_rank(0, world_size=1)
        kept = self.kept(self.hang("--job", self.job)[1])
        self.assertEqual(([], []), (kept["ras"], [one for one in kept["missing"] if one["what"] == "ras"]))


if __name__ == "__main__":
    unittest.main()
