"""One rank raises and its peers wait: a thread that is not a daemon keeps its process alive, and its connections open."""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def next_batch(job, step):
    if job.goes_wrong(step):
        raise ValueError("sample 4711: the label is missing")  # here: culprits
    return torch.ones(job.gradients)


def main():
    with ExampleJob() as job:
        for step in job.steps():
            gradient = next_batch(job, step)
            dist.all_reduce(gradient)  # here: victims


if __name__ == "__main__":
    main()
