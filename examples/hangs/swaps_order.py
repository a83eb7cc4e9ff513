"""Two collectives in another order on one rank: as when the order follows a set, or whichever hook comes first.

The others wait in all_reduce; the rank with the fault waits at the same place of the same group in broadcast.
"""

import torch
import torch.distributed as dist

from example_job import ExampleJob


def reduce_loss(loss):
    dist.all_reduce(loss)  # here: victims


def share_learning_rate(rate):
    dist.broadcast(rate, src=0)  # here: culprits


def main():
    with ExampleJob() as job:
        for step in job.steps():
            loss, rate = torch.ones(1), torch.ones(1)
            if job.goes_wrong(step):
                share_learning_rate(rate)
                reduce_loss(loss)
            else:
                reduce_loss(loss)
                share_learning_rate(rate)


if __name__ == "__main__":
    main()
