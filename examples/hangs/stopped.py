"""One rank's process is stopped (SIGSTOP), as by a debugger, a shell's Ctrl-Z or a container that was frozen."""

import os
import signal

import torch
import torch.distributed as dist

from example_job import ExampleJob


def main():
    with ExampleJob() as job:
        for step in job.steps():
            gradient = torch.ones(job.gradients)
            if job.goes_wrong(step):
                os.kill(os.getpid(), signal.SIGSTOP)  # here: culprits
            dist.all_reduce(gradient)  # here: victims


if __name__ == "__main__":
    main()
