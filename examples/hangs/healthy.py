"""Nothing is wrong: every rank goes on. What `lockstep hang` must not call stuck."""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def main():
    with ExampleJob() as job:
        for _ in job.steps():
            gradient = torch.ones(job.gradients)
            dist.all_reduce(gradient)


if __name__ == "__main__":
    main()
