"""What the examples beside this file share: a process group, a loop of short steps, and an end that comes for certain.

An example runs under torchrun, on the CPU, over Gloo:

    with ExampleJob() as job:
        for step in job.steps():
            gradient = torch.ones(16)
            if job.goes_wrong(step):
                continue
            dist.all_reduce(gradient)

Nothing burns processor time: a step sleeps. Whatever happens, each process ends `--lifetime-s` after it started.
"""

import argparse
import ctypes
import os
import pathlib
import signal
import threading
import time

# Read by PyTorch when the first group is made: the last 2,000 collectives of each rank are remembered.
os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch.distributed as dist  # noqa: E402

import hang_dumps  # noqa: E402

try:
    import lockstep  # Its Python package: then `lockstep hang` asks the ranks themselves.
except ImportError:
    lockstep = None


class ExampleJob:
    """One rank of an example. `rank` and `world_size` are torchrun's; `gradients` is the number of elements exchanged."""

    gradients = 4096

    def __init__(self):
        self._arguments = _parse_arguments()
        self._done = threading.Event()
        self._state = self._arguments.state
        self._told = None
        self.step_s = self._arguments.step_s
        # A thread that is not a daemon, as those of loggers and uploaders of metrics are. A rank that raises stays alive for
        # it, with all its connections open: its peers wait, and the launcher sees nothing.
        threading.Thread(target=self._upload_metrics, name="metrics", daemon=False).start()
        _end_with_launcher()
        if lockstep is not None:
            lockstep.enable_hang_dumps()
        dist.init_process_group("gloo")
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        hang_dumps.enable(self._arguments.dump)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            dist.destroy_process_group()
            self._done.set()

    @property
    def has_fault(self):
        """Whether this is the rank that goes wrong (`--fault-rank`)."""
        return self.rank == self._arguments.fault_rank

    def steps(self):
        """Numbers of steps, from 0, without end unless `--steps` gives one. A step takes `--step-s`, asleep."""
        step = 0
        while step != self._arguments.steps:
            self._tell(step)
            time.sleep(self.step_s)
            yield step
            step += 1

    def goes_wrong(self, step):
        """True on the rank with the fault, from step `--fault-step` on."""
        if not self.has_fault or step < self._arguments.fault_step:
            return False
        self._tell(step, "fault")
        return True

    def _tell(self, step, word="step"):
        """For who waits for the fault: STATE/rank1 holds process, word and step. Not needed for the job itself."""
        if self._state is not None and self._told != (step, word):
            self._told = (step, word)
            unfinished = self._state / f".rank{self.rank}"
            unfinished.write_text(f"{os.getpid()} {word} {step}\n", encoding="ascii")
            unfinished.rename(self._state / f"rank{self.rank}")

    def _upload_metrics(self):
        if not self._done.wait(self._arguments.lifetime_s):
            os._exit(1)  # Not sys.exit: the main thread is stuck, so it would never get there.


def _end_with_launcher():
    """A stopped process cannot end itself: the kernel kills it when torchrun is gone."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _parse_arguments():
    parser = argparse.ArgumentParser(description="One rank of a job that goes wrong on purpose; run it under torchrun.")
    parser.add_argument("--fault-rank", type=int, default=1, help="the rank that goes wrong (default 1)")
    parser.add_argument("--fault-step", type=int, default=10, help="the step in which it does (default 10)")
    parser.add_argument("--steps", type=int, default=-1, help="end after that many steps (default: go on)")
    parser.add_argument("--step-s", type=float, default=0.05, help="how long a step takes, in s (default 0.05)")
    parser.add_argument("--lifetime-s", type=float, default=120, help="each process ends after this many s (default 120)")
    parser.add_argument("--dump", type=pathlib.Path, help="folder for flight records and stacks (hang_dumps.py)")
    parser.add_argument("--state", type=pathlib.Path, help="folder in which each rank says how far it is")
    return parser.parse_args()
