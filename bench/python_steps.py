#!/usr/bin/env python3
"""What the hooks of `lockstep run --stages` cost, recorded: each alone, and all of them in a real step.

    LOCKSTEP_TRACE=/tmp/spans LOCKSTEP_STEPS_LIBRARY=build/release/lib/liblockstep.so.1 $(scripts/python_env) bench/python_steps.py

Medians of rounds, CPU time in ns a call; what the loop itself costs, and what is called, is taken off. The step is one of a model of
one weight under DistributedDataParallel (one rank, Gloo), with a DataLoader; rounds with and without hooks take turns.
"""

import importlib.util
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist

ROUNDS = 9
CALLS = 20_000
STEPS = 500
STEP_ROUNDS = 21


class Target:
    def method(self):
        return None


def steps_module():
    """As `lockstep run` loads it: without the package."""
    for name in ("_boundaries", "_steps"):
        path = pathlib.Path(__file__).resolve().parents[1] / f"python/lockstep/{name}.py"
        spec = importlib.util.spec_from_file_location(f"lockstep.{name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[f"lockstep.{name}"] = module
    return module


def median_ns(function):
    function(100)
    rounds = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        function(CALLS)
        rounds.append((time.thread_time_ns() - begin) / CALLS)
    return statistics.median(rounds)


def step_costs_ns(steps):
    """CPU time of a step without hooks, and what they add."""
    with tempfile.NamedTemporaryFile() as store:
        dist.init_process_group("gloo", init_method=f"file://{store.name}", rank=0, world_size=1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        loader = torch.utils.data.DataLoader(torch.zeros(STEPS, 1), batch_size=1)

        def train():
            begin = time.thread_time_ns()
            for batch in loader:
                optimizer.zero_grad()
                model(batch).sum().backward()
                optimizer.step()
            return (time.thread_time_ns() - begin) / STEPS

        times = {False: [], True: []}
        train()
        for turn in range(2 * STEP_ROUNDS):
            is_on = turn % 2 == 0
            steps._is_on = steps._boundaries._is_on = is_on
            times[is_on].append(train())
        steps._is_on = steps._boundaries._is_on = True
        dist.destroy_process_group()
    added = statistics.median(with_hooks - without for with_hooks, without in zip(times[True], times[False], strict=True))
    return statistics.median(times[False]), added


def main():
    target = Target()
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight])

    def call(count):
        for _ in range(count):
            target.method()

    plain = median_ns(call)
    steps = steps_module()
    assert steps.enable(), "LOCKSTEP_TRACE says where to record to"
    before, after = steps._boundaries._before, steps._boundaries._after

    def pair(count):
        for _ in range(count):
            before(optimizer, (), {})
            after(optimizer, (), {})

    print(f"torch {torch.__version__}, a call {plain:.0f} ns")
    print(f"optimizer's step, and a step ends  {median_ns(pair):8.0f}")
    steps._wrap(Target, "method", 0)
    print(f"batch of a DataLoader, backward    {median_ns(call) - plain:8.0f}")
    steps._wrap(Target, "method", 1, torch.is_grad_enabled)
    print(f"forward (with the one above)       {median_ns(call) - plain:8.0f}")
    assert steps._is_on and steps._steps > ROUNDS * CALLS
    plain, added = step_costs_ns(steps)
    print(f"a whole step of {plain:.0f}               {added:8.0f}")


if __name__ == "__main__":
    main()
