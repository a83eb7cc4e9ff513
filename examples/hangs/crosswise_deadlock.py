"""Two groups of the same ranks, used crosswise: in each group on its own, every rank calls the same in the same order.

The others wait in the group of gradients for the rank with the fault; that one waits for them in the group of metrics.
"""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def main():
    with ExampleJob() as job:
        gradients = dist.new_group(group_desc="gradients")
        metrics = dist.new_group(group_desc="metrics")
        for step in job.steps():
            gradient, loss = torch.ones(job.gradients), torch.ones(1)
            if job.goes_wrong(step):
                dist.all_reduce(loss, group=metrics)  # here: culprits
                dist.all_reduce(gradient, group=gradients)
            else:
                dist.all_reduce(gradient, group=gradients)  # here: victims
                dist.all_reduce(loss, group=metrics)


if __name__ == "__main__":
    main()
