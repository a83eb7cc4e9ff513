"""A training job that goes on: DistributedDataParallel over Gloo on CPU, no profiler in it. For tests of capture.

Each step lies in an annotation "train_step#N", so that a trace says which steps it holds. READY-DIR/RANK appears when a
rank has trained a few steps. It ends when it is told to, or after ten minutes (STEADY_JOB_LIMIT_S: after another time).
With a second argument it only computes forward: no optimizer, so that PyTorch counts no steps. STEADY_JOB_SLOW names a
file: once it is there, the rank that is written in it works 250 ms longer each step. STEADY_JOB_PAUSE_S is how long each
step sleeps.
"""

import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

LIMIT_S = float(os.environ.get("STEADY_JOB_LIMIT_S", "600"))
PAUSE_S = float(os.environ.get("STEADY_JOB_PAUSE_S", "0.02"))
HIDDEN_LAYERS = 5


def network():
    hidden = [layer for _ in range(HIDDEN_LAYERS) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(64, 8))


def main():
    ready = pathlib.Path(sys.argv[1])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    forward_only = len(sys.argv) > 2
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    samples = torch.randn(32, 64)
    slow = pathlib.Path(os.environ.get("STEADY_JOB_SLOW", os.devnull))
    end = time.monotonic() + LIMIT_S
    step = 0
    while time.monotonic() < end:
        with record_function(f"train_step#{step}"):
            if forward_only:
                with torch.no_grad():
                    model(samples)
            else:
                optimizer.zero_grad()
                model(samples).square().mean().backward()
                optimizer.step()
            time.sleep(PAUSE_S)
            if slow.is_file() and slow.read_text(encoding="ascii") == str(rank):
                time.sleep(0.25)
        step += 1
        if step == 5:
            # There at once and whole: who waits for it reads it then.
            part = ready.with_name(f"{ready.name}-{rank}.part")
            part.write_text(str(os.getpid()), encoding="ascii")
            part.rename(ready / str(rank))


if __name__ == "__main__":
    main()
