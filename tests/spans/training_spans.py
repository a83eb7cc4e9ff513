"""A small data-parallel job, marked by liblockstep and recorded by Kineto at once. Under torchrun: FOLDER for the traces."""

import pathlib
import sys

import lockstep
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for step in range(8):
            lockstep.step(step)
            with record_function(f"ProfilerStep#{step}"):
                # The span is around the profiler's range of the same work.
                with lockstep.trace("span forward"), record_function("range forward"):
                    loss = model(torch.randn(64, 256)).square().mean()
                with lockstep.trace("span backward"), record_function("range backward"):
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                lockstep.counter("loss", loss.item())
    lockstep.step_end()
    with lockstep.trace("after the profiler"):
        dist.barrier()
    profiler.export_chrome_trace(str(folder / f"rank{rank}.json"))
    print(f"rank {rank}: loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
