"""One rank evaluates, the others do not: when to evaluate was decided by a clock of the rank's own.

Its all_gather meets the barrier that the others are in.
"""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def evaluate(job):
    losses = [torch.zeros(4) for _ in range(job.world_size)]
    dist.all_gather(losses, torch.ones(4))  # here: culprits


def main():
    with ExampleJob() as job:
        for step in job.steps():
            dist.all_reduce(torch.ones(job.gradients))
            if job.goes_wrong(step):
                evaluate(job)
            dist.barrier()  # here: victims


if __name__ == "__main__":
    main()
