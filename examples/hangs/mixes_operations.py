"""One rank calls another operation on the same tensor: an old version of the code broadcast what is reduced now."""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def main():
    with ExampleJob() as job:
        for step in job.steps():
            gradient = torch.ones(job.gradients)
            if job.goes_wrong(step):
                dist.broadcast(gradient, src=job.rank)  # here: culprits
                dist.barrier()
            else:
                dist.all_reduce(gradient)  # here: victims
            dist.barrier()


if __name__ == "__main__":
    main()
