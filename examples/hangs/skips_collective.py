"""One rank skips a collective: whether gradients are clipped was made to depend on the rank's own data.

The others wait in the all_reduce of clip(); the rank with the fault is already in the barrier after it.
"""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def clip(gradient, is_small):
    if is_small:  # Of this rank alone: that is the mistake.
        return
    squares = gradient.square().sum()
    dist.all_reduce(squares)  # here: victims
    gradient.div_(squares.sqrt().clamp(min=1))


def main():
    with ExampleJob() as job:
        for step in job.steps():
            gradient = torch.ones(job.gradients)
            dist.all_reduce(gradient)
            clip(gradient, is_small=job.goes_wrong(step))
            dist.barrier()  # here: culprits


if __name__ == "__main__":
    main()
