"""`lockstep hang` on processes that run: here without a daemon, through daemons, by two users, with a dead node."""

import json
import os
import socket
import subprocess
import unittest

from live_jobs import BINARY, LiveCase


class ThisNodeTest(LiveCase):
    def test_ranks_of_a_job_are_found_without_a_daemon(self):
        ranks = [self.start_rank(rank) for rank in (0, 1)]
        data, folder, said = self.hang("--job", self.job)
        kept = self.kept(folder)
        self.assertEqual([(rank, process.pid) for rank, process in enumerate(ranks)],
                         [(process["rank"], process["pid"]) for process in kept["processes"]])
        self.assertEqual(("lockstep.evidence/1", self.job, 2), (kept["schema"], kept["job"]["id"], kept["world_size"]))
        self.assertEqual([0, 1], [rank["rank"] for rank in data["ranks"]])
        self.assertIn(str(folder), said)
        for process in kept["processes"]:
            self.assertTrue((folder / process["folder"] / "process.json").exists())
        for path in (folder, *folder.rglob("*")):
            self.assertEqual(0, path.stat().st_mode & 0o077, path)
        self.assertTrue(all(process.poll() is None for process in ranks))
        again = subprocess.run([BINARY, "hang", "--json", folder], capture_output=True, text=True, encoding="utf-8",
                               stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(data, json.loads(again.stdout)["data"], "what was kept reads again as what was printed")

    def test_a_rank_that_has_ended_is_named_missing(self):
        self.start_rank(0)
        ended = self.start_rank(1)
        ended.kill()
        ended.wait()
        data, folder, _ = self.hang("--job", self.job)
        self.assertIn((1, "process"), [(one["rank"], one["what"]) for one in self.kept(folder)["missing"]])
        self.assertEqual([0, 1], [rank["rank"] for rank in data["ranks"]])

    def test_pids_and_ranks_select(self):
        ranks = [self.start_rank(rank, world_size=3) for rank in range(3)]
        for arguments, expected in ((("--pid", ranks[1].pid), [1]), ((f"--pid={ranks[0].pid},{ranks[2].pid}",), [0, 2]),
                                    (("--pid", ranks[0].pid, "--pid", ranks[1].pid), [0, 1]),
                                    (("--job", self.job, "--rank", "1-2"), [1, 2])):
            kept = self.kept(self.hang(*arguments)[1])
            self.assertEqual(expected, [process["rank"] for process in kept["processes"]], arguments)
            self.assertEqual([], [one for one in kept["missing"] if one["what"] == "process"])

    def test_several_jobs_of_one_name_are_told_apart_by_their_launchers(self):
        self.start_rank(0)
        script = f'RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID={self.job} "$0" -c "import time; time.sleep(600)" & wait'
        other = subprocess.Popen(["/bin/bash", "-c", script, "/usr/bin/python3"], process_group=0)
        self.addCleanup(other.wait)
        self.addCleanup(os.killpg, other.pid, 9)
        said = ""
        for _ in range(200):  # Until the shell has started it.
            said = self.hang("--job", self.job, status=(0, 2, 4))[2]
            if f"--pid {other.pid}" in said:
                break
        self.assertIn(f"--pid {other.pid}", said)
        kept = self.kept(self.hang("--pid", other.pid)[1])
        self.assertEqual([0], [process["rank"] for process in kept["processes"]])

    def test_what_is_not_there_is_said_so(self):
        said = self.hang("--job", "no-such-job", status=(1,))[2]
        self.assertIn("no-such-job", said)
        said = self.hang("--pid", "0", status=(2,))[2]
        self.assertIn("--pid", said)
        said = self.hang(self.folder, "--job", "x", status=(2,))[2]
        self.assertIn("give either, not both", said)

    def test_a_folder_that_is_in_use_is_not_written_to(self):
        self.start_rank(0, world_size=1)
        (self.folder / "there").mkdir()
        (self.folder / "there" / "file").touch()
        said = self.hang("--job", self.job, "--keep", self.folder / "there", status=(1, 2))[2]
        self.assertEqual(["file"], [path.name for path in (self.folder / "there").iterdir()], said)


class DaemonsTest(LiveCase):
    def test_the_daemon_is_asked_over_its_socket(self):
        ranks = [self.start_rank(rank) for rank in (0, 1)]
        _, path, _ = self.start_daemon()
        kept = self.kept(self.hang("--socket", path, "--job", self.job)[1])
        self.assertEqual([process.pid for process in ranks], [process["pid"] for process in kept["processes"]])

    def test_nodes_are_asked_and_the_dead_one_is_named(self):
        self.start_rank(0)
        self.start_rank(1)
        _, _, line = self.start_daemon()
        port = line.rsplit("127.0.0.1:", 1)[1].split()[0]
        with socket.socket() as taken:  # Listens to nobody: a connection is refused.
            taken.bind(("127.0.0.1", 0))
            dead = taken.getsockname()[1]
            data, folder, said = self.hang("--host", f"127.0.0.1:{port},localhost:{dead}", "--job", self.job)
        kept = self.kept(folder)
        self.assertEqual([0, 1], [process["rank"] for process in kept["processes"]])
        self.assertEqual(1, sum(node["problem"] is not None for node in kept["nodes"]))
        self.assertIn("localhost", said)
        self.assertIn("node", [one["what"] for one in data["missing"]])

    def test_nodes_are_reached_through_a_carrier_and_the_unreachable_one_is_named(self):
        """As by ssh, with a command in its place that runs the same program here."""
        ranks = [self.start_rank(rank) for rank in (0, 1)]
        _, path, _ = self.start_daemon()
        carrier = self.folder / "as-ssh"
        carrier.write_text('#!/bin/sh\n[ "$1" = down ] && { echo "connect to host down: No route to host" >&2; exit 255; }\n'
                           'shift\nexec sh -c "$*"\n')
        carrier.chmod(0o755)
        data, folder, said = self.hang("--host", "up,down", "--via", f"{carrier} {{host}}", "--socket", path, "--job", self.job)
        kept = self.kept(folder)
        self.assertEqual([process.pid for process in ranks], [process["pid"] for process in kept["processes"]])
        problems = [node["problem"] for node in kept["nodes"] if node["problem"] is not None]
        self.assertEqual(1, len(problems), kept)
        self.assertIn("No route to host", problems[0])
        self.assertIn("No route to host", said)
        self.assertIn("node", [one["what"] for one in data["missing"]])


if __name__ == "__main__":
    unittest.main()
