"""One rank reduces another data type: its parameter was never cast. Gloo aborts a rank that gets twice the bytes."""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def main():
    with ExampleJob() as job:
        for step in job.steps():
            dtype = torch.float64 if job.goes_wrong(step) else torch.float32
            gradient = torch.ones(job.gradients, dtype=dtype)
            dist.all_reduce(gradient)  # here: culprits, victims
            dist.barrier()


if __name__ == "__main__":
    main()
