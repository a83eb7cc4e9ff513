"""A pipeline in which one stage does not receive what its predecessor sends: the two count micro-batches differently.

The sender waits in send; the rank with the fault and all after it are already in the all_reduce that ends the step.
"""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def pass_through_stage(job, step):
    """A micro-batch of activations from the stage before, and on to the next."""
    activations = torch.ones(job.gradients)
    if job.rank > 0 and not job.goes_wrong(step):
        dist.recv(activations, src=job.rank - 1)
    if job.rank < job.world_size - 1:
        dist.send(activations, dst=job.rank + 1)  # here: victims


def main():
    with ExampleJob() as job:
        for step in job.steps():
            pass_through_stage(job, step)
            dist.all_reduce(torch.ones(1))  # here: culprits


if __name__ == "__main__":
    main()
