"""faulty_training.py with ranks that synchronise apart: parallel_training.py STEPS FAULT WAY, under torchrun with four ranks.

dp_tp: a mesh of two groups for data and two for tensors; forward adds up what the ranks of a tensor group have. dp_pp: two copies of a
pipeline of two stages. pp: one pipeline of four. Batches are passed on in two parts. dtensors: as dp_tp, whose layers are DTensors, and
gradients are added up by functional collectives. unseen: any number of ranks that add up gradients by PyTorch's operators, whose waits no
hook sees. Knows nothing of lockstep.
"""

import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from faulty_training import Fault, Net, SlowOptimizer
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

PARTS = 2


class TensorParallelNet(Net):
    def __init__(self, fault, group):
        super().__init__(fault)
        self.group = group

    def forward(self, value):
        hidden = super().forward(value)
        dist.all_reduce(hidden.detach().clone(), group=self.group)
        return hidden


class Stage:
    """One stage of a pipeline."""

    def __init__(self, model, group):
        self.model, self.group = model, group
        self.first, self.last = dist.get_rank(group) == 0, dist.get_rank(group) == dist.get_world_size(group) - 1
        place = dist.get_process_group_ranks(group).index(dist.get_rank())
        ranks = dist.get_process_group_ranks(group)
        self.before, self.behind = ranks[place - 1], ranks[(place + 1) % len(ranks)]

    def step(self, batch):
        sent = []
        outputs = []
        for part in range(PARTS):
            value = batch.clone()
            if not self.first:
                dist.recv(value, self.before, group=self.group)
            value.requires_grad_()
            output = self.model(value)
            outputs.append((value, output))
            if not self.last:
                sent.append(dist.isend(batch + output.detach().mean(), self.behind, group=self.group))
        for value, output in outputs:
            gradient = torch.ones_like(output)
            if not self.last:
                dist.recv(gradient, self.behind, group=self.group)
            output.backward(gradient)
            if not self.first:
                sent.append(dist.isend(value.grad.mean(1, keepdim=True), self.before, group=self.group))
        for work in sent:
            work.wait()


def add_up_unseen(gradient):
    collectives = torch.ops._c10d_functional
    gradient.copy_(collectives.wait_tensor(collectives.all_reduce(gradient, "sum", dist.group.WORLD.group_name)))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    steps = int(sys.argv[1])
    fault = Fault(sys.argv[2], steps)
    way = sys.argv[3]
    if way == "unseen":
        model = Net(fault)
    elif way == "dtensors":
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = Net(fault)
        parallelize_module(model.layers, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    elif way == "pp":
        stage = Stage(Net(fault), dist.group.WORLD)
        model = stage.model
    else:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=tuple(way.split("_")))
        data, other = (mesh[name].get_group() for name in way.split("_"))
        model = TensorParallelNet(fault, other) if way == "dp_tp" else Net(fault)
        stage = Stage(model, other)
        if way == "dp_tp":
            model = DistributedDataParallel(model, process_group=data)
    optimizer = SlowOptimizer(fault, model.parameters())
    loader = torch.utils.data.DataLoader(torch.ones(steps * 8, 64), batch_size=8)
    for step, batch in enumerate(loader):
        fault.step = step
        optimizer.zero_grad()
        if way in ("dp_tp", "dtensors", "unseen"):
            model(batch).square().mean().backward()
        else:
            stage.step(batch)
        if way == "dp_pp":
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, group=data)
        for parameter in model.parameters():
            if way == "unseen":
                add_up_unseen(parameter.grad)
            elif way == "dtensors":
                gradient = parameter.grad.to_local() if isinstance(parameter.grad, DTensor) else parameter.grad
                gradient.copy_(functional.all_reduce(gradient, "sum", mesh["dp"]))
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
