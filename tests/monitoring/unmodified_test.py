"""`lockstep run --stages`: jobs that know nothing of lockstep have steps and phases, in a real lockstepd, and learn what they would
have learnt without it, to the bit."""

import json
import os
import pathlib
import subprocess
import unittest

from monitored import DAEMON, Watched, parse
from pytorch import JobCase, job_environment, torchrun
from waiting import PATIENCE_S

BINARY = os.environ["LOCKSTEP_BINARY"]
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
RANKS = 2
STEPS = 60


class UnmodifiedTest(JobCase):
    def train(self, name, prefix, **variables):
        """A torchrun of the job; (its process, the folder of what its ranks say)."""
        folder = self.folder / name
        folder.mkdir()
        command = torchrun(self.python, RANKS, "--rdzv-id", f"{name}-{os.getpid()}", "--no-python", *prefix, self.python,
                           HERE / "plain_training.py", folder, str(STEPS))
        log = open(folder / "log", "w+", encoding="utf-8")  # noqa: SIM115
        self.addCleanup(log.close)
        job = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=job_environment(**variables))
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job, folder

    def results(self, daemon, job, folder):
        def is_done():
            self.assertIsNone(job.poll(), (folder / "log").read_text())
            return all((folder / f"rank{rank}").exists() and (folder / f"rank{rank}").read_text().endswith("\n") for rank in range(RANKS))
        daemon.wait_for(is_done, "results")
        return [(folder / f"rank{rank}").read_text() for rank in range(RANKS)]

    def end(self, job, folder):
        (folder / "end").touch()
        self.assertEqual(0, job.wait(PATIENCE_S), (folder / "log").read_text())

    def test_a_torchrun_job_that_marks_nothing(self):
        daemon = Watched(self)
        plain, plain_folder = self.train("plain", [])
        learnt = self.results(daemon, plain, plain_folder)
        self.end(plain, plain_folder)
        job, folder = self.train("steps", [BINARY, "run", "--stages", "--quiet", "--"], LOCKSTEP_SOCKET=str(daemon.path))
        self.assertEqual(learnt, self.results(daemon, job, folder))
        self.assertTrue(all(line.startswith(f"{STEPS} ") for line in learnt), learnt)
        name = f"steps-{os.getpid()}"
        for rank in range(RANKS):
            daemon.wait_for(lambda: daemon.value("lockstep_steps_total", job_id=name, rank=str(rank)) == STEPS, "steps")  # noqa: B023
        samples = parse(daemon.metrics())
        for rank in range(RANKS):
            of_rank = {metric: {} for metric in ("lockstep_step_phase_seconds_total", "lockstep_step_seconds_total", "lockstep_user_value")}
            for (metric, labels), value in samples.items():
                labels = dict(labels)
                if labels.get("rank") == str(rank) and labels.get("job_id") == name and metric in of_rank:
                    of_rank[metric][labels.get("phase")] = value
            phases = of_rank["lockstep_step_phase_seconds_total"]
            self.assertAlmostEqual(sum(phases.values()), of_rank["lockstep_step_seconds_total"][None], delta=1e-6)
            # What DistributedDataParallel waits for inside backward is told apart from it.
            for phase in ("input", "forward", "backward", "comm_exposed", "optimizer"):
                self.assertGreater(phases[phase], 0, phases)
            self.assertEqual(of_rank["lockstep_user_value"], {})
            print(f"rank {rank}: " + ", ".join(f"{phase} {1000 * seconds / STEPS:.2f} ms" for phase, seconds in phases.items() if seconds))
        recordings = {pathlib.Path(line.split()[-1]).parent for line in self.maps(job.pid) if line.strip().endswith(".spans")}
        self.assertTrue(recordings)
        self.end(job, folder)
        # What was recorded for the daemon alone is gone with the job.
        self.assertFalse([folder for folder in recordings if folder.exists()])

    @staticmethod
    def maps(pid):
        """Lines of /proc/PID/maps of a process and all below it."""
        children = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit():
                    children.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(entry.name))
            except OSError:
                pass
        lines, below = [], [pid]
        while below:
            one = below.pop()
            below += children.get(one, [])
            try:
                lines += pathlib.Path(f"/proc/{one}/maps").read_text().splitlines()
            except OSError:
                pass
        return lines

    def test_what_a_step_is(self):
        spans = self.folder / "spans"
        # An own sitecustomize is run, too.
        own = self.folder / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("print('own')\n", encoding="utf-8")
        command = [self.python, HERE / "plain_turns.py"]
        done = subprocess.run([BINARY, "run", "--steps", "--quiet", "--", *command], capture_output=True, text=True, timeout=PATIENCE_S,
                              env=job_environment(LOCKSTEP_TRACE=str(spans), PYTHONPATH=str(own),
                                                  LOCKSTEP_SOCKET=str(self.folder / "run" / "lockstepd.sock")), check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("own", lines)
        loops = [json.loads(line) for line in lines if line.startswith("{")]
        learnt = {loop["loop"]: loop["learnt"] for loop in loops}
        self.assertEqual(learnt["without_the_hooks"], learnt["one_optimizer"])
        for loop in loops:
            files = list(spans.glob(f"*-pid{loop['pid']}.spans"))
            if not loop["turns"]:
                self.assertEqual(files, [])
                continue
            query = "select (select count(*) from steps), (select count(*) from events where name = 'backward')"
            counted = subprocess.run([BINARY, "query", "--format", "csv", files[0], query], capture_output=True, text=True, check=True)
            steps, backward = map(int, counted.stdout.splitlines()[1].split(","))
            self.assertEqual(loop["turns"], steps, loop["loop"])
            self.assertGreaterEqual(backward, loop["turns"], loop["loop"])
        # The one that could not be marked says so, once, and is as it would be.
        said = [line for line in done.stderr.splitlines() if "are not marked" in line]
        self.assertEqual(1, len(said), done.stderr)


if __name__ == "__main__":
    assert DAEMON.exists()
    unittest.main()
