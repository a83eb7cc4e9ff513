"""One rank is slow, and the job is not stuck: its batches take four times as long as the others'."""

import time

import torch
import torch.distributed as dist

from example_job import ExampleJob


def next_batch(job, step):
    if job.goes_wrong(step):
        time.sleep(3 * job.step_s)  # here: culprits
    return torch.ones(job.gradients)


def main():
    with ExampleJob() as job:
        for step in job.steps():
            gradient = next_batch(job, step)
            dist.all_reduce(gradient)  # here: victims


if __name__ == "__main__":
    main()
