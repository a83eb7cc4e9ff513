"""One rank is killed (SIGKILL), as by the kernel when memory runs out. Its neighbours see the connection reset.

torchrun looks for ended ranks ten times a second and ends the job; many launchers do not. To see what stays behind:
torchrun --monitor-interval 120.
"""

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
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(gradient)  # here: victims


if __name__ == "__main__":
    main()
