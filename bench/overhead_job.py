"""The job of bench/overhead: data-parallel training on Gloo that runs so many steps when it is told to.

Rank 0 reads a count of steps a line from the FIFO that is its first argument, all ranks run them, and rank 0 writes a line to
the file that is the second: {"steps": [[start_unix_ns, duration_ns], ...], "cpu_ns": of all ranks' threads}. A count of 0 ends the job.
The third argument, else 256, is the model's width, and a batch has a quarter of it.
"""

import contextlib
import json
import sys
import time

import torch
import torch.distributed as dist
import torch.profiler  # noqa: F401  Counts iterations for captures, as in jobs that profile themselves.
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# What a profiler that wants to be told of steps puts around each: tests/stages/traced_by_traceml.py.
around_step = contextlib.nullcontext


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    width = int(sys.argv[3]) if len(sys.argv) > 3 else 256
    layers = [layer for _ in range(8) for layer in (nn.Linear(width, width), nn.GELU())]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(width, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batch = torch.randn(width // 4, width)
    first = dist.get_rank() == 0
    commands = open(sys.argv[1], encoding="ascii") if first else None  # noqa: SIM115
    results = open(sys.argv[2], "a", encoding="ascii") if first else None  # noqa: SIM115
    count = torch.zeros(1, dtype=torch.int64)
    while True:
        if first:
            count[0] = int(commands.readline() or "0")
        dist.broadcast(count, 0)
        if not count.item():
            break
        times = []
        cpu_ns = time.process_time_ns()
        for _ in range(int(count.item())):
            wall, start = time.time_ns(), time.perf_counter_ns()
            with around_step(model):
                model(batch).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            times.append((wall, time.perf_counter_ns() - start))
        used = torch.tensor(time.process_time_ns() - cpu_ns)
        dist.reduce(used, 0)
        if first:
            results.write(json.dumps({"steps": times, "cpu_ns": used.item()}) + "\n")
            results.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
