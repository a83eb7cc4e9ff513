"""One rank reduces a tensor of another size: it alone has a second head, which a condition on the rank gave it.

Gloo aborts a *victim*, the rank that receives more than it has room for; the rank with the fault survives.
"""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def main():
    with ExampleJob() as job:
        for step in job.steps():
            heads = 2 if job.goes_wrong(step) else 1
            gradient = torch.ones(heads * job.gradients)
            dist.all_reduce(gradient)  # here: culprits, victims
            dist.barrier()


if __name__ == "__main__":
    main()
