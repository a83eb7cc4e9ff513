"""A small data-parallel job, marked by liblockstep, logged, and recorded by Kineto at once. Under torchrun: FOLDER for the traces,
LOGS for logs and for how long its requests took by its own clock."""

import json
import logging
import pathlib
import sys
import time

import lockstep
import lockstep.logging
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function


def serve(count):
    """How long each request took, in nanoseconds: inside its marks, and around them."""
    inside, around = [], []
    for number in range(count):
        before = time.perf_counter_ns()
        with lockstep.request("answer") as request:
            begin = time.perf_counter_ns()
            time.sleep(0.001 + 0.0002 * (number * 7 % count))
            request.output()
            inside.append(time.perf_counter_ns() - begin)
        around.append(time.perf_counter_ns() - before)
    return {"inside": inside, "around": around}


def main():
    folder, logs = map(pathlib.Path, sys.argv[1:3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    lockstep.logging.setup(logs, console="none")
    log = logging.getLogger("trainer")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for step in range(8):
            lockstep.step(step)
            with record_function(f"ProfilerStep#{step}"):
                # The span is around the profiler's range of the same work.
                with lockstep.trace("span forward"), record_function("range forward"):
                    loss = model(torch.randn(64, 256)).square().mean()
                    log.info("forward %d", step)
                with lockstep.trace("span backward"), record_function("range backward"):
                    loss.backward()
                    log.warning("backward %d", step)
                optimizer.step()
                optimizer.zero_grad()
                lockstep.counter("loss", loss.item())
        measured = serve(40)
    lockstep.step_end()
    with lockstep.trace("after the profiler"):
        dist.barrier()
    profiler.export_chrome_trace(str(folder / f"rank{rank}.json"))
    (logs / f"measured{rank}.json").write_text(json.dumps(measured), encoding="utf-8")
    print(f"rank {rank}: loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
