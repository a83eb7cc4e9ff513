#!/usr/bin/env python3
"""What a span costs in Python, beside torch's record_function and an empty loop.

    LOCKSTEP_TRACE=/tmp/spans PYTHONPATH=build/release/python $(scripts/python_env) bench/python_spans.py

Without LOCKSTEP_TRACE: what a span costs when it is off. Medians of rounds, in ns; what the loop itself costs is taken off.
"""

import statistics
import time

import lockstep
import torch
from torch.profiler import ProfilerActivity, profile, record_function

ROUNDS = 9
CALLS = 50_000


@lockstep.trace("decorated")
def decorated():
    pass


def empty():
    for _ in range(CALLS):
        pass


def call():
    function = decorated.__wrapped__
    for _ in range(CALLS):
        function()


def named_each_time():
    for _ in range(CALLS):
        with lockstep.trace("forward"):
            pass


def made_once():
    span = lockstep.trace("forward")
    for _ in range(CALLS):
        with span:
            pass


def decorated_function():
    for _ in range(CALLS):
        decorated()


def counter():
    for i in range(CALLS):
        lockstep.counter("value", i)


def record_function_range():
    for _ in range(CALLS // 10):
        with record_function("forward"):
            pass


def median_ns(function, calls=CALLS):
    function()
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        function()
        rounds.append((time.perf_counter_ns() - begin) / calls)
    return statistics.median(rounds)


def main():
    loop = median_ns(empty)
    print(f"torch {torch.__version__}, loop {loop:.1f}")
    for function, less in ((named_each_time, loop), (made_once, loop), (decorated_function, median_ns(call)), (counter, loop)):
        print(f"{function.__name__:24} {median_ns(function) - less:8.1f}")
    print(f"{'record_function, off':24} {median_ns(record_function_range, CALLS // 10) - loop:8.1f}")
    with profile(activities=[ProfilerActivity.CPU]):
        profiled = median_ns(record_function_range, CALLS // 10) - loop
    print(f"{'record_function, profiled':24} {profiled:8.1f}")


if __name__ == "__main__":
    main()
