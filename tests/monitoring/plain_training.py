"""A data-parallel job as anybody writes it, which knows nothing of lockstep. Under torchrun: FOLDER STEPS. Each rank writes a
digest of what it has learnt into FOLDER, and stays until FOLDER/end is there."""

import hashlib
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = TensorDataset(torch.randn(640, 64), torch.randn(640, 1))
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 1)))
    optimizer = torch.optim.AdamW(model.parameters())
    done = 0
    losses = []
    while done < steps:
        sampler.set_epoch(done)
        for batch, wanted in loader:
            loss = (model(batch) - wanted).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            done += 1
            if done == steps:
                break
    mean = torch.tensor(losses).mean()
    dist.all_reduce(mean)
    digest = hashlib.sha256(repr((losses, mean.item())).encode())
    for parameter in model.parameters():
        digest.update(str(parameter.detach().double().tolist()).encode())
    (folder / f"rank{rank}").write_text(f"{done} {digest.hexdigest()}\n", encoding="utf-8")
    while not (folder / "end").exists():
        time.sleep(0.05)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
