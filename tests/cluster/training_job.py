"""A small job that goes on until it is ended: DDP over Gloo, nothing in it knows of lockstep.

Started by torchrun, or by srun with one task a rank. Each rank notes every hundredth step in FOLDER/rankN.
"""

import os
import pathlib
import sys
import time

# Under srun alone the launcher's variables are SLURM's.
os.environ.setdefault("RANK", os.environ.get("SLURM_PROCID", "0"))
os.environ.setdefault("LOCAL_RANK", os.environ.get("SLURM_LOCALID", "0"))
os.environ.setdefault("WORLD_SIZE", os.environ.get("SLURM_STEP_NUM_TASKS", "1"))

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    note = folder / f"rank{dist.get_rank()}"
    step = 0
    while True:
        optimizer.zero_grad()
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        optimizer.step()
        # A loader that takes its time: eight ranks share the test machine's cores.
        time.sleep(0.02)
        if step % 100 == 0:
            note.write_text(f"{step}\n")
        step += 1


if __name__ == "__main__":
    main()
