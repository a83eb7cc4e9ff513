#!/usr/bin/env python3
"""What the hooks of `lockstep run --steps` cost: each alone, recorded.

    LOCKSTEP_TRACE=/tmp/spans LOCKSTEP_STEPS_LIBRARY=build/release/lib/liblockstep.so.1 $(scripts/python_env) bench/python_steps.py

Medians of rounds, CPU time in ns a call; what the loop itself costs, and what is called, is taken off.
"""

import importlib.util
import pathlib
import statistics
import time

import torch

ROUNDS = 9
CALLS = 20_000


class Target:
    def method(self):
        return None


def steps_module():
    path = pathlib.Path(__file__).resolve().parents[1] / "python/lockstep/_steps.py"
    spec = importlib.util.spec_from_file_location("steps", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def median_ns(function):
    function(100)
    rounds = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        function(CALLS)
        rounds.append((time.thread_time_ns() - begin) / CALLS)
    return statistics.median(rounds)


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


if __name__ == "__main__":
    main()
