"""One rank's batch never comes: it sleeps in data loading, as behind storage that does not answer."""

import time

import torch
import torch.distributed as dist

from example_job import ExampleJob


def next_batch(job, step):
    while job.goes_wrong(step):
        time.sleep(1)  # here: culprits
    return torch.ones(job.gradients)


def main():
    with ExampleJob() as job:
        for step in job.steps():
            gradient = next_batch(job, step)
            dist.all_reduce(gradient)  # here: victims


if __name__ == "__main__":
    main()
