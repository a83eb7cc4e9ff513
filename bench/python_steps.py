#!/usr/bin/env python3
"""What the hooks of `lockstep run --stages` cost a step, recorded: turns with and without them, of one job.

    $(scripts/python_env) bench/python_steps.py [BUILD]

CPU time of the thread that trains, in ns a step; BUILD is the folder that was built (build/release). The step is one of a model of one
weight under DistributedDataParallel (one rank, Gloo), with a DataLoader: input, forward, backward, the wait for gradients, optimizer,
the end of the step. Quantiles over all steps: what else the machine does can only make a step dearer. Two processes would differ by
more than what is measured, for where their memory happens to lie.
"""

import importlib.util
import os
import pathlib
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader, dataloader

ROOT = pathlib.Path(__file__).resolve().parents[1]
TURNS = 400
STEPS = 60  # A turn.
SETTLING_STEPS = 5
QUANTILES = (0.1, 0.25, 0.5)
HOOKED = [(torch.autograd, "backward"), (torch.nn.Module, "__call__"), (DistributedDataParallel, "__call__"),
          (torch.nn.Linear, "__call__"), (DistributedDataParallel, "_sync_buffers"), (DataLoader, "__iter__"),
          (dataloader._BaseDataLoaderIter, "__next__")]


def load_steps():
    """As `lockstep run` does it: without the package."""
    for name in ("_boundaries", "_launchers", "_torch_memory", "_steps"):
        spec = importlib.util.spec_from_file_location(f"lockstep.{name}", ROOT / f"python/lockstep/{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[f"lockstep.{name}"] = module
    return module


def current():
    """What the hooked places hold now, and the hooks of all optimizers."""
    places = [vars(owner).get(name) for owner, name in HOOKED]
    return places, dict(optimizers._global_optimizer_pre_hooks), dict(optimizers._global_optimizer_post_hooks)


def put_back(state):
    places, before, after = state
    for (owner, name), value in zip(HOOKED, places, strict=True):
        if value is not None:
            setattr(owner, name, value)
        elif name in vars(owner):
            delattr(owner, name)
    for hooks, wanted in ((optimizers._global_optimizer_pre_hooks, before), (optimizers._global_optimizer_post_hooks, after)):
        hooks.clear()
        hooks.update(wanted)


class Job:
    def __init__(self):
        self.model = DistributedDataParallel(torch.nn.Linear(1, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)
        self.loader = DataLoader(torch.zeros(STEPS, 1), batch_size=1)

    def turn(self):
        """CPU time of its steps, in ns."""
        times = []
        begin = time.thread_time_ns()
        for batch in self.loader:
            self.optimizer.zero_grad()
            self.model(batch).sum().backward()
            self.optimizer.step()
            end = time.thread_time_ns()
            times.append(end - begin)
            begin = end
        return times[SETTLING_STEPS:]


def measure():
    plain, hooked = Job(), Job()  # Of its own: a hook stays with the model.
    plain.turn()
    states = {False: current()}
    steps = load_steps()
    assert steps.enable()
    hooked.turn()
    states[True] = current()
    times = {False: [], True: []}
    for number in range(TURNS):
        has_hooks = number % 2 == 1
        put_back(states[has_hooks])
        times[has_hooks] += (hooked if has_hooks else plain).turn()
    assert steps._is_on
    return times


def main():
    build = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(GLOO_SOCKET_IFNAME="lo", LOCKSTEP_TRACE=folder, LOCKSTEP_TRACE_RING="1", LOCKSTEP_TRACE_LIMIT_MIB="32",
                          LOCKSTEP_STEPS_HOOKS=str(build / "lib/_hooks.abi3.so"))
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        times = measure()
        dist.destroy_process_group()
    print("quantile   without      with     added  ns a step")
    for quantile in QUANTILES:
        without, with_hooks = (sorted(times[each])[int(quantile * len(times[each]))] for each in (False, True))
        print(f"{quantile:8.2f} {without:9} {with_hooks:9} {with_hooks - without:9}")


if __name__ == "__main__":
    main()
