#!/usr/bin/env python3
"""Counters of a real lockstepd for processes that keep rings: what they did, also what their rings have forgotten."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from daemon_process import OTHER_UID, SOURCE, Daemon
from waiting import PATIENCE_S, wait_until

RANK = os.environ["LOCKSTEP_NCCL_RANK"]
COLLECTIVE = set(re.findall(r"^\| `lockstep_collective_(\w+)`", (SOURCE / "docs/daemon-metrics.md").read_text(encoding="utf-8"),
                            re.MULTILINE))
BYTES = 4 << 20  # Of one all_reduce of the processes.
# A program that maps the files that it is told.
MAPS = """
import mmap, sys
kept = []
for path in map(str.strip, sys.stdin):
    with open(path, "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    print("mapped", flush=True)
"""


class Rank:
    """A process with a ring that does what it is told. `settings`: its environment; `inside`: a command that runs it elsewhere."""

    def __init__(self, test, rank, size, done=0, opened=0, user=None, inside=(), **settings):
        environment = {**os.environ, **settings}
        self.process = subprocess.Popen([*inside, RANK, str(rank), str(size), str(done), str(opened), "stay"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment, **({"user": user, "group": user} if user else {}))
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.end)
        test.assertEqual(self.process.stdout.readline(), "ready\n")

    def call(self, function, count):
        self.process.stdin.write(f"{function} {count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)


class MetricsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkn-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.folder.chmod(0o755)
        self.rings = self.folder / "rings"
        self.rings.mkdir()
        self.rings.chmod(0o777)
        self.settings = {"LOCKSTEP_NCCL_DIR": str(self.rings), "SLURM_JOB_ID": f"job-{os.getpid()}"}
        self.daemon = Daemon(self)

    def text(self):
        status, _, body = self.daemon.ask("GET", "/metrics")
        self.assertEqual(status, 200)
        return body.decode()

    def series(self, job=None):
        """{(name, rank, pg, op): value} of the test's own job."""
        found = {}
        for line in self.text().splitlines():
            match = re.fullmatch(r"(lockstep_collective_\w+)\{(.*)\} (\S+)", line)
            if match is None:
                continue
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            if labels["job_id"] != (job or self.settings["SLURM_JOB_ID"]):
                continue
            key = (match[1].removeprefix("lockstep_collective_"), *(labels.get(name) for name in ("rank", "pg", "op")))
            self.assertNotIn(key, found, "a series is there once")
            found[key] = float(match[3])
        return found

    def wait_for(self, condition):
        """The series once `condition` of them holds."""
        found = {}

        def holds():
            nonlocal found
            found = self.series()
            return condition(found)
        wait_until(holds, lambda: f"waited with {found}", every_s=0.2)
        return found

    def wait_for_another_look(self, rank):
        """Until the daemon knows of a process that starts now, and so has looked at all that were there before."""
        Rank(self, rank, 3, done=1, **self.settings)
        self.wait_for(lambda found: str(rank) in {key[1] for key in found})

    def test_sums_go_on_where_the_ring_forgets(self):
        rank = Rank(self, 3, 4, done=10, LOCKSTEP_NCCL_OPERATIONS="64", **self.settings)
        group = ("3", "default_pg")
        found = self.wait_for(lambda found: found)
        self.assertEqual({key[0] for key in found}, COLLECTIVE)
        self.assertEqual(found["calls_total", *group, "all_reduce"], 10)
        before = found
        for i in range(1, 4):
            rank.call("all_reduce", 1000)
            rank.call("all_gather", 7)
            found = self.wait_for(lambda found, i=i: found.get(("completed_total", *group, None)) == 10 + 1007 * i)
            for name, value in before.items():
                self.assertGreaterEqual(found[name], value, name)
            before = found
        self.assertEqual(found["calls_total", *group, "all_reduce"], 3010)
        self.assertEqual(found["calls_total", *group, "all_gather"], 21)
        self.assertEqual(found["bytes_total", *group, "all_reduce"], 3010 * BYTES)
        self.assertEqual(found["bytes_total", *group, "all_gather"], 21 * BYTES * 4)
        self.assertEqual(found["bus_bytes_total", *group, "all_reduce"], 3010 * BYTES * 2 * 3 / 4)
        self.assertEqual(found["bus_bytes_total", *group, "all_gather"], 21 * BYTES * 4 * 3 / 4)
        for name in ("enqueued_total", "started_total", "completed_total"):
            self.assertEqual(found[name, *group, None], 3031)
        # As the harness's device says: 10 short ones of 5 us, the rest of 0.5 ms.
        seconds = found["seconds_total", *group, "all_reduce"] + found["seconds_total", *group, "all_gather"]
        self.assertAlmostEqual(seconds, 10 * 5e-6 + 3021 * 5e-4, places=6)
        self.assertEqual(found["oldest_inflight_seconds", *group, None], 0)

    def test_containers_that_share_a_folder_and_a_pid_keep_their_own_rings(self):
        container = ["unshare", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child", "sh", "-c", 'hostname "pod$0" && exec "$@"']
        if subprocess.run([*container, "0", "true"], capture_output=True).returncode != 0:
            self.skipTest("lacks the right to make namespaces")
        # One that has none yet does not take another's for its own.
        early = subprocess.Popen([*container, "2", "sleep", "600"], env={**os.environ, **self.settings})
        self.addCleanup(early.wait)
        self.addCleanup(early.kill)
        for rank, done in ((0, 5), (1, 3)):
            Rank(self, rank, 2, done=done, inside=[*container, str(rank)], **self.settings)
        self.assertEqual({"lockstep-nccl.rank0.pod0.1.ring", "lockstep-nccl.rank1.pod1.1.ring"}, {path.name for path in self.rings.iterdir()})
        calls = ("calls_total", "default_pg", "all_reduce")
        found = self.wait_for(lambda found: sum(value for key, value in found.items() if key[0] == calls[0]) >= 6)
        self.assertEqual({"0": 5, "1": 3}, {key[1]: value for key, value in found.items() if (key[0], *key[2:]) == calls})
        self.wait_for_another_look(3)
        self.assertEqual({"0": 5, "1": 3, "3": 1}, {key[1]: value for key, value in self.series().items() if (key[0], *key[2:]) == calls})

    def test_what_is_under_way_grows_old_and_ends_with_its_process(self):
        began = time.monotonic()
        rank = Rank(self, 0, 2, done=4, opened=2, **self.settings)
        group = ("0", "default_pg")
        self.wait_for(lambda found: found.get(("oldest_inflight_seconds", *group, None), 0) > 1)
        found = self.series()
        self.assertLess(found["oldest_inflight_seconds", *group, None], time.monotonic() - began)
        self.assertEqual((found["enqueued_total", *group, None], found["completed_total", *group, None]), (6, 4))
        rank.process.kill()  # Not waited for: a process that has ended and that nobody noticed is none.
        self.wait_for(lambda found: found == {})

    def test_ranks_are_series_of_their_own(self):
        ranks = [Rank(self, rank, 3, done=rank + 1, **self.settings) for rank in range(3)]
        found = self.wait_for(lambda found: len({key[1] for key in found}) == len(ranks))
        self.assertEqual([found["calls_total", str(rank), "default_pg", "all_reduce"] for rank in range(3)], [1, 2, 3])

    def test_the_collector_tells_of_itself(self):
        Rank(self, 0, 1, done=1, **self.settings)
        self.wait_for(lambda found: found)
        text = self.text()
        self.assertIn('lockstep_collector_present{collector="nccl_rings"} 1\n', text)
        self.assertIn('lockstep_collector_success{collector="nccl_rings"} 1\n', text)
        self.assertGreater(float(re.search(r'duration_seconds\{collector="nccl_rings"\} (\S+)', text)[1]), 0)

    def test_a_file_that_is_cut_costs_its_series_alone(self):
        Rank(self, 0, 2, done=1, **self.settings)
        broken = Rank(self, 1, 2, done=1, **self.settings)
        self.wait_for(lambda found: {key[1] for key in found} == {"0", "1"})
        for path in self.rings.glob(f"*.{broken.process.pid}.ring"):
            os.truncate(path, 5000)
        self.wait_for(lambda found: {key[1] for key in found} == {"0"})
        self.assertIn('lockstep_collector_success{collector="nccl_rings"} 1\n', self.text())

    def test_links_and_others_files_are_not_read(self):
        kept = self.folder / "kept"
        kept.mkdir()
        rank = Rank(self, 0, 3, done=1, **{**self.settings, "LOCKSTEP_NCCL_DIR": str(kept)})
        # A process that claims the ring of another as its own: by a link, and, where the test may, by a file that is not its user's.
        claims = subprocess.Popen([sys.executable, "-c", MAPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, **self.settings})
        self.addCleanup(claims.wait)
        self.addCleanup(claims.kill)
        self.addCleanup(claims.stdin.close)
        self.addCleanup(claims.stdout.close)

        def claim():
            print(link, file=claims.stdin, flush=True)
            self.assertEqual("mapped\n", claims.stdout.readline())
        source = next(kept.glob("*.ring"))
        link = self.rings / f"lockstep-nccl.host.{claims.pid}.ring"
        link.symlink_to(source)
        claim()
        self.assertTrue(rank.process.poll() is None)
        self.wait_for(lambda found: found)
        self.wait_for_another_look(1)
        self.assertEqual(self.series()["calls_total", "0", "default_pg", "all_reduce"], 1)
        link.unlink()
        content = bytearray(source.read_bytes())
        content[24:28] = claims.pid.to_bytes(4, "little")
        link.write_bytes(content)
        if os.getuid() == 0:
            os.chown(link, OTHER_UID, OTHER_UID)
            claim()
            self.wait_for_another_look(2)
            self.assertEqual(self.series()["calls_total", "0", "default_pg", "all_reduce"], 1)
            os.chown(link, 0, 0)
        else:
            claim()
        self.wait_for(lambda found: found["calls_total", "0", "default_pg", "all_reduce"] == 2)

    @unittest.skipUnless(os.getuid() == 0, "lacks root, who alone starts processes of others: run the tests as root")
    def test_root_reads_a_users_ring(self):
        if subprocess.run(["test", "-x", RANK], user=OTHER_UID, group=OTHER_UID, check=False).returncode != 0:
            self.skipTest(f"other users cannot enter the folder of {RANK}: build where they can")
        Rank(self, 0, 1, done=3, user=OTHER_UID, **self.settings)
        self.assertEqual(self.wait_for(lambda found: found)["calls_total", "0", "default_pg", "all_reduce"], 3)

    def test_prometheus_own_checker_takes_the_text(self):
        Rank(self, 0, 2, done=1, opened=1, **self.settings)
        self.wait_for(lambda found: found)
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("promtool is not there: scripts/packages.txt has prometheus")
        done = subprocess.run([promtool, "check", "metrics"], input=self.text(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
