#!/usr/bin/env python3
"""Profiles chosen steps of chosen ranks with torch.profiler, from inside the training script.

    torchrun --standalone --nproc-per-node 4 examples/profile_schedule.py --folder traces --ranks 0,2-3
    lockstep analyze traces/

The two lines that a training script needs are marked with (1) and (2). To trace a job without changing it, or one that runs
already: `lockstep run`, `lockstep capture` (docs/capture.md).
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import lockstep


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="traces", help="where the traces go (default traces)")
    parser.add_argument("--ranks", default="all", help="which ranks to profile, such as 0,2-3 (default all)")
    parser.add_argument("--steps", type=int, default=40, help="steps to train (default 40)")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    # Twice: five steps without, one to warm the profiler up, three that are recorded. All ranks count the same steps.
    schedule = dict(wait=5, warmup=1, active=3, repeat=2)
    with lockstep.profiler(schedule=schedule, ranks=arguments.ranks, folder=arguments.folder,  # (1)
                           record_shapes=True) as profiler:
        for _ in range(arguments.steps):
            batch = torch.randn(32, 64)
            loss = (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()  # (2)

    if profiler.files:
        print(f"rank {profiler.rank}: {', '.join(profiler.files)}", flush=True)
    # Those that wrote no trace are done first, and wait here. PyTorch aborts a process that ends while a thread of Gloo's still lets go
    # of its last work (pytorch/pytorch#190489): this barrier, unlike dist.barrier(), gives those threads none.
    dist.monitored_barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
