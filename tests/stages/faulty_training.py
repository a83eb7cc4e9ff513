"""A training job under torchrun that knows nothing of lockstep: DistributedDataParallel over Gloo, with a fault in one rank or none.

faulty_training.py STEPS FAULT: FAULT is none, or STAGE:RANK:MILLISECONDS:WHEN, where STAGE is data, forward, backward, optimizer,
checkpoint, gc, cores, leak (4 MB are kept, however many milliseconds) or raise (an exception in forward), and WHEN is every, K (each K-th step), late (from the middle on)
or once. A step takes about 40 ms, most of it asleep as if a device computed, so that the ranks of a small machine do not disturb each
other. WORKERS in the environment is how many processes a rank's DataLoader forks.
"""

import contextlib
import gc
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist

# What a profiler that wants to be told of steps puts around each: traced_by_traceml.py.
around_step = contextlib.nullcontext
INPUT_S, FORWARD_S, BACKWARD_S, OPTIMIZER_S = 0.003, 0.010, 0.016, 0.004
# What is computed in forward in earnest: about a millisecond.
MATRIX = torch.full((160, 160), 0.01)
MULTIPLICATIONS = 8


class Fault:
    def __init__(self, text, steps):
        self.stage, self.seconds, self.step, self.steps = "none", 0.0, 0, steps
        if text != "none":
            stage, rank, milliseconds, self.when = text.split(":")
            if int(rank) == dist.get_rank():
                self.stage, self.seconds = stage, float(milliseconds) / 1e3

    def is_due(self, stage):
        if stage != self.stage:
            return False
        if self.when == "every":
            return True
        if self.when == "late":
            return self.step >= self.steps // 2
        if self.when == "once":
            return self.step == self.steps * 2 // 3
        return self.step % int(self.when) == int(self.when) - 1

    def sleep(self, stage, usual_s=0.0):
        time.sleep(usual_s + (self.seconds if self.is_due(stage) else 0.0))


class Data(torch.utils.data.Dataset):
    def __init__(self, fault):
        self.fault = fault

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if index % 8 == 0:
            self.fault.sleep("data", INPUT_S)
        return torch.full((64,), float(index % 7))


class SlowGradient(torch.autograd.Function):
    @staticmethod
    def forward(context, value, fault):
        context.fault = fault
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        context.fault.sleep("backward", BACKWARD_S)
        return gradient, None


class Net(torch.nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))

    def forward(self, value):
        self.fault.sleep("forward", FORWARD_S)
        if self.fault.is_due("raise"):
            raise ArithmeticError("planted in mid-step")
        for _ in range(MULTIPLICATIONS):
            torch.mm(MATRIX, MATRIX)
        return SlowGradient.apply(self.layers(value), self.fault)


class SlowOptimizer(torch.optim.SGD):
    def __init__(self, fault, parameters):
        super().__init__(parameters, lr=1e-3)
        self.fault = fault

    @torch.no_grad()
    def step(self, closure=None):
        self.fault.sleep("optimizer", OPTIMIZER_S)
        return super().step(closure)


class SlowFile:
    """What torch.save writes to takes its time."""

    def __init__(self, seconds):
        self.seconds = seconds

    def write(self, data):
        time.sleep(self.seconds)
        self.seconds = 0.0
        return len(data)

    def flush(self):
        pass


def collect(seconds):
    """Python's garbage collection for about so long: cycles in which something has to be looked at."""
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        gc.collect()


def starve():
    """Leaves this process a share of one core, beside others that never sleep."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rivals = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(3)]
    os.nice(5)
    return rivals


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    steps = int(sys.argv[1])
    fault = Fault(sys.argv[2], steps)
    rivals = starve() if fault.stage == "cores" else []
    gc.collect()
    gc.freeze()  # What is collected later is this list alone, in about a millisecond, and not all of PyTorch.
    keep = [[] for _ in range(20_000)] if fault.stage == "gc" else []
    leaked = []
    model = torch.nn.parallel.DistributedDataParallel(Net(fault))
    optimizer = SlowOptimizer(fault, model.parameters())
    loader = torch.utils.data.DataLoader(Data(fault), batch_size=8, num_workers=int(os.environ.get("WORKERS", "0")))
    for step, batch in zip(range(steps), loader):
        fault.step = step
        with around_step(model):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            if step % 10 == 9:
                torch.save(model.module.state_dict(), SlowFile(fault.seconds if fault.stage == "checkpoint" else 0.002))
            if fault.is_due("leak"):
                leaked.append(torch.ones(1_000_000))
            if fault.is_due("gc"):
                collect(fault.seconds)
    for rival in rivals:
        rival.kill()
    del keep
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
