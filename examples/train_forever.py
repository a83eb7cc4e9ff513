"""Trains a small model until it is ended: a job to watch. After `--stall-after` seconds the next batch of one rank never comes.

    torchrun --standalone --nproc-per-node 4 examples/train_forever.py --stall-after 60

No line of it knows of lockstep. On the CPU, over Gloo.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

BATCH_S = 0.1  # What reading a batch takes: the job leaves the machine to others.


class Batches(IterableDataset):
    def __init__(self, stalls_at):
        self.stalls_at = stalls_at

    def __iter__(self):
        while True:
            time.sleep(BATCH_S)
            while self.stalls_at is not None and time.monotonic() > self.stalls_at:
                time.sleep(1)
            yield torch.randn(64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stall-after", type=float, default=None, metavar="SECONDS", help="when the stall begins (default: never)")
    parser.add_argument("--stall-rank", type=int, default=1, help="the rank whose input stalls (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    stalls = options.stall_after is not None and dist.get_rank() == options.stall_rank
    model = DistributedDataParallel(nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(Batches(time.monotonic() + options.stall_after if stalls else None), batch_size=None):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
