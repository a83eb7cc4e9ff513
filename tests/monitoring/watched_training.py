"""A data-parallel job that goes on until it is ended, with the troubles that FILE (JSON) asks for at each step:
{"slow": RANK, "input": SECONDS, "fat": RANK, "creep": RANK, "hang": RANK, "apart": true, "errors": RANK}. No FILE: no trouble. Each rank writes when
its steps end into FILE.steps.RANK. Under torchrun: FILE [WORK_S], what a step takes, and a slow rank's again."""

import json
import pathlib
import sys
import time

import lockstep
import torch
import torch.distributed as dist
from torch import nn


CREEP_BYTES = 1 << 20  # a step


def read_plan(file):
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def main():
    plan_file = pathlib.Path(sys.argv[1])
    work_s = float(sys.argv[2]) if len(sys.argv) > 2 else 0.05
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    apart = False
    held = []
    ends = plan_file.with_name(f"{plan_file.name}.steps.{rank}").open("w", buffering=1)  # noqa: SIM115
    while True:
        plan = read_plan(plan_file)
        lockstep.step(step)
        if step > 0:
            ends.write(f"{time.time()}\n")
        step += 1
        with lockstep.trace("input"):
            time.sleep(plan.get("input", 0))
        with lockstep.trace("forward"):
            time.sleep(work_s * (2 if plan.get("slow") == rank else 1))
            loss = model(torch.randn(8, 64)).square().mean()
        with lockstep.trace("backward"):
            loss.backward()
        while read_plan(plan_file).get("hang") == rank:
            time.sleep(0.1)
        if not apart:
            with lockstep.trace("all_reduce"):
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                # All go apart after the same step.
                wish = torch.tensor([float(plan.get("apart", False))])
                dist.all_reduce(wish)
                apart = wish.item() > 0
        with lockstep.trace("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        if plan.get("creep") == rank:
            held.append(b"x" * CREEP_BYTES)
        else:
            held.clear()
        if plan.get("errors") == rank:
            for _ in range(10):
                print(f"[rank{rank}]: ERROR: planted", flush=True)  # As PyTorch's own handler has it: ranks of a node share a file.
        lockstep.counter("tokens", 8)
        # A stand-in for what torch.cuda.memory_stats would say: there is no device here.
        lockstep.counter("torch_memory_reserved_bytes", 3e9 if plan.get("fat") == rank else 2e9)


if __name__ == "__main__":
    main()
