"""Ways to train, one after the other in the same processes: what each learns is printed by rank 0. Under torchrun. Knows nothing of
lockstep. Each takes STEPS steps."""

import contextlib
import io
import json
import os
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

STEPS = 8


class Net(nn.Module):
    def __init__(self, reentrant=None):
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.rest = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
        self.reentrant = reentrant

    def forward(self, batch):
        time.sleep(0.002)
        hidden = self.first(batch)
        return self.rest(hidden) if self.reentrant is None else checkpoint(self.rest, hidden, use_reentrant=self.reentrant)


class Head(nn.Module):
    """Leaves the parameter unused that it has first."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(4, 4)
        self.net = Net()

    def forward(self, batch):
        return self.net(batch)


class FunctionalNet(Net):
    """What its first layer gives is added up over all ranks, and so is that one's gradient."""

    def forward(self, batch):
        return self.rest(functional.all_reduce(self.first(batch), "sum", dist.group.WORLD))


def of_dtensors():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return parallelize_module(Net(), mesh, {"first": ColwiseParallel(), "rest.0": RowwiseParallel()})


def sharded():
    net = Net()
    fully_shard(net, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    return net


WAYS = {
    "ddp": lambda: DistributedDataParallel(Net()),
    "accumulated": lambda: DistributedDataParallel(Net()),
    "unused": lambda: DistributedDataParallel(Head(), find_unused_parameters=True),
    "recomputed": lambda: DistributedDataParallel(Net(reentrant=False)),
    "recomputed_within": lambda: DistributedDataParallel(Net(reentrant=True), static_graph=True),
    "compiled_inside": lambda: DistributedDataParallel(torch.compile(Net(), backend="eager")),
    "compiled_outside": lambda: torch.compile(DistributedDataParallel(Net()), backend="eager"),
    "scripted": lambda: DistributedDataParallel(torch.jit.script(nn.Sequential(nn.Linear(16, 4), nn.Linear(4, 1)))),
    "scripted_alone": lambda: torch.jit.script(nn.Sequential(nn.Linear(16, 4), nn.Linear(4, 1))),
    "beside_a_local_model": lambda: DistributedDataParallel(Net()),
    "fsdp1": lambda: FullyShardedDataParallel(Net(), device_id=torch.device("cpu")),
    "fsdp2": sharded,
    "by_hand": Net,
    "functional": FunctionalNet,
    "functional_compiled": lambda: torch.compile(FunctionalNet(), backend="eager", fullgraph=True),
    "of_dtensors": of_dtensors,
    "left_by_exceptions": lambda: DistributedDataParallel(Net()),
}


def train(way, net):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(dist.get_rank())
    local = Net()
    total = 0.0
    for step in range(STEPS):
        parts = 3 if way == "accumulated" else 1
        for part in range(parts):
            with net.no_sync() if part + 1 < parts else contextlib.nullcontext():
                loss = net(torch.randn(8, 16, generator=data)).square().mean()
                loss.backward()
            total += loss.item()
        if way == "beside_a_local_model":
            local(torch.ones(8, 16)).sum().backward()
        if way in ("by_hand", "scripted_alone", "functional_compiled"):
            for parameter in net.parameters():
                dist.all_reduce(parameter.grad)
        if way == "left_by_exceptions" and step % 2:
            with contextlib.suppress(KeyError), torch.no_grad():
                optimizer.step(lambda: {}["no"])
            with contextlib.suppress(KeyError):
                optimizer.step(lambda: {}["no"])
        optimizer.step()
        optimizer.zero_grad()
    if way == "ddp":
        saved = io.BytesIO()
        torch.save(net.module, saved)
        assert b"lockstep" not in saved.getvalue()
    return total


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    learnt = {}
    for way, make in WAYS.items():
        torch.manual_seed(0)
        learnt[way] = train(way, make())
    if dist.get_rank() == 0:
        print(json.dumps(learnt), flush=True)
    dist.barrier()
    os._exit(0)  # After so many ways PyTorch's threads now and then abort a process that ends in order.


if __name__ == "__main__":
    main()
