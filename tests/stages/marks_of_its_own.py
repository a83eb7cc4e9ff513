"""A data-parallel job that marks its steps and two stages with lockstep's package, and leaves the others to `lockstep run --stages`.
Under torchrun: STEPS."""

import sys
import time

import lockstep
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

PAUSE_S = 0.002


class Rows(Dataset):
    """The batch is copied where it is fetched."""

    def __len__(self):
        return 8 * int(sys.argv[1])

    def __getitem__(self, number):
        if number % 8 == 0:
            time.sleep(PAUSE_S)
            with lockstep.stage("h2d"):
                time.sleep(PAUSE_S)
        return torch.full((16,), number / 100)


class Net(nn.Sequential):
    def forward(self, batch):
        with lockstep.trace("loss"):  # Forward, too.
            time.sleep(PAUSE_S)
        return super().forward(batch)


def main():
    try:
        lockstep.stage("elsewhere")
    except ValueError:
        pass
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Net(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for batch in lockstep.steps(DataLoader(Rows(), batch_size=8)):
        net(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()  # A rank whose peer has gone before it is aborted.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
