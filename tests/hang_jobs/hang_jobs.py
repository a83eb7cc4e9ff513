"""Real jobs that hang (examples/hangs), started, waited for, looked at with `lockstep hang`, and ended."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOCKSTEP_BINARY", str(SOURCE / "build/release/bin/lockstep"))
EXAMPLES = SOURCE / "examples" / "hangs"
LIFETIME_S = 800  # Of a job's processes; longer than any test waits for them.
QUIET_S = 6  # A wait is called a hang beyond three times the job's longest gap: a busy machine's gaps are of a second.
STEPS_TO_JUDGE = 30  # A job that is not stuck is looked at when its slow rank has made so many steps.


def marked_lines(script, word):
    """Numbers of the lines of examples/hangs/SCRIPT.py that end in "# here: WORD"."""
    lines = (EXAMPLES / f"{script}.py").read_text(encoding="utf-8").splitlines()
    marked = ((number, line.partition("# here: ")[2]) for number, line in enumerate(lines, 1))
    return {number for number, words in marked if word in words.split(", ")}


class HangJob:
    """One example under torchrun. `fault_rank` goes wrong; `keeps_on` if no rank falls silent."""

    def __init__(self, python, folder, script, ranks=4, fault_rank=1, keeps_on=False, steps=STEPS_TO_JUDGE, variables=None):
        self.script, self.ranks, self.fault_rank, self.keeps_on, self.steps = script, ranks, fault_rank, keeps_on, steps
        self.folder = folder / f"{script}-{ranks}"
        self.state, self.dump, self.logs = (self.folder / name for name in ("state", "dump", "logs"))
        self.state.mkdir(parents=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("KINETO", "SLURM", "PBS"))}
        environment.update(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore",
                           PYTHONPATH=str(SOURCE / "python"), **(variables or {}))
        with open(self.folder / "torchrun.log", "wb") as log:
            # torchrun is not to notice that a rank has ended: other launchers do not.
            self.launcher = subprocess.Popen(
                [python, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(ranks), "--rdzv-id",
                 script, "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1",
                 "--monitor-interval", str(LIFETIME_S), "--log-dir", self.logs, "--redirects", "3",
                 EXAMPLES / f"{script}.py", "--state", self.state, "--dump", self.dump, "--fault-rank", str(fault_rank),
                 "--lifetime-s", str(LIFETIME_S)],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def told(self):
        """What each rank told last, by rank: [pid, "step" or "fault", step]."""
        paths = [path for path in self.state.iterdir() if path.name.startswith("rank")]
        return {int(path.name.removeprefix("rank")): path.read_text(encoding="ascii").split() for path in paths}

    def pids(self):
        return [int(words[0]) for _, words in sorted(self.told().items())]

    def wait_for_fault(self):
        """Until the fault has happened and nothing moves any more, or the job has gone on for a while."""
        wait_until(lambda: len(self.told()) == self.ranks, f"{self.script}'s ranks to start")
        if self.keeps_on:
            wait_until(lambda: int(self.told()[self.fault_rank][2]) >= self.steps, f"{self.script} to go on")
            return
        wait_until(lambda: self.told()[self.fault_rank][1] == "fault", f"{self.script} to go wrong")

        def is_quiet():
            told = (path.stat().st_mtime for path in self.state.iterdir() if path.name.startswith("rank"))
            return time.time() - max(told) > QUIET_S

        wait_until(is_quiet, f"{self.script} to fall silent")

    def request_dumps(self, without=()):
        """Every rank but those that cannot writes its flight record and stacks."""
        (self.dump / "request").touch()
        for rank in set(range(self.ranks)) - set(without):
            wait_until((self.dump / f"trace_{rank}").exists, f"{self.script}'s rank {rank} to dump")

    def end(self):
        """Ends the ranks, then torchrun, which only has to notice."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                if self.launcher.poll() is None:  # Else its children are gone, and the numbers may be another's.
                    os.kill(pid, signal.SIGKILL)
        if self.launcher.poll() is None:
            self.launcher.terminate()
            try:
                self.launcher.wait(30)
            except subprocess.TimeoutExpired:
                self.launcher.kill()
                self.launcher.wait()


def hang_json(*arguments):
    """The object that `lockstep hang --json ARGUMENTS...` prints."""
    done = subprocess.run([BINARY, "hang", "--json", *map(str, arguments)], capture_output=True, text=True, encoding="utf-8",
                          stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
    if done.returncode not in (0, 3, 4):
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}\n{done.stdout}")
    return json.loads(done.stdout)["data"]


class HangJobsCase(unittest.TestCase):
    """Starts the jobs of a class all at once: {script: keywords of HangJob}. Each test looks at one."""

    jobs = {}

    @classmethod
    def setUpClass(cls):
        if not cls.jobs:
            raise unittest.SkipTest("no jobs of its own")
        python = python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lkhang-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.started = {}
        for script, keywords in cls.jobs.items():
            job = cls.started[script] = HangJob(python, cls.folder, script, **keywords)
            cls.addClassCleanup(job.end)

    def judge(self, script, kind, culprits, lines=(), without=(), sources=("live", "dumps")):
        """Both ways of looking at the job give this verdict. `lines`: whose marked lines it must name."""
        job = self.started[script]
        job.wait_for_fault()
        if "live" in sources:
            self.check("live", hang_json(*(f"--pid={pid}" for pid in job.pids())), job, kind, culprits, lines)
        if "dumps" in sources:
            job.request_dumps(without)
            self.check("dumps", hang_json(job.dump, job.logs), job, kind, culprits, lines)
        job.end()

    def check(self, source, diagnosis, job, kind, culprits, lines):
        verdict = diagnosis["verdict"]
        with self.subTest(script=job.script, ranks=job.ranks, source=source):
            try:
                self.assertEqual(kind, verdict["kind"], verdict["explanation"])
                self.assertEqual(culprits, verdict["culprit_ranks"], verdict["explanation"])
                for word in lines:
                    named = {site["line"] for site in verdict["sites"]
                             if site["role"] == word.removesuffix("s") and site["file"].endswith(f"/{job.script}.py")}
                    self.assertTrue(named & marked_lines(job.script, word), f"{word}: {verdict['sites']}")
            except AssertionError:
                keep(job, source, diagnosis)
                raise


def keep(job, source, diagnosis):
    """Where LOCKSTEP_KEEP names a folder, what a wrong verdict was made of stays there."""
    if folder := os.environ.get("LOCKSTEP_KEEP"):
        target = pathlib.Path(folder) / f"{job.script}-{job.ranks}"
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{source}.json").write_text(json.dumps(diagnosis, indent=1), encoding="utf-8")
        subprocess.run(["cp", "-r", *filter(pathlib.Path.exists, (job.dump, job.logs, job.state)), target], check=False)
        print(f"kept: {target}", file=sys.stderr)
