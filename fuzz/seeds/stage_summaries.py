"""Seeds of summaries of stages, and of the workload that `lockstep run` keeps beside what ranks record."""
import json

from corpus import write

WORKLOAD = {"model": "gpt2", "batch": "8"}


def summary(window_count, **changes):
    windows = [{"first_step": 2 * i, "last_step": 2 * i + 1, "step_count": 2, "ns": 100 + i % 3,
                "frontier_ns": [1, 2, 30, 40, 5, 6, 7, 8, 1, i % 3]} for i in range(window_count)]
    data = {"verdict": {"answer": "even", "sentence": "No rank holds the others up."},
            "job": {"world_size": 2, "workload": WORKLOAD, "exit_status": 0},
            "ranks": [{"rank": rank, "ended_in_order": True} for rank in range(2)],
            "steps": [{"step": step, "ns": 50 + step % 5} for step in range(2 * window_count)], "windows": windows,
            "memory": {"ranks": [{"rank": 0, "resident": {"peak_bytes": 1 << 30}, "allocated": None, "peak_allocated_bytes": 1 << 20}]}}
    return {"schema": "lockstep.stages/1", "partial": False, "data": {**data, **changes}, "ledger": []}


for name, value in {
    "whole": summary(20),
    "one_window": summary(1),
    "no_steps": summary(0),
    "no_job": summary(8, job=None),
    "killed": summary(8, job={"world_size": 3, "workload": {}, "exit_status": 137}),
    "unsound": summary(8, ranks=[{"rank": -1}]),
    "same_window": summary(2, windows=2 * summary(1)["data"]["windows"]),
    "largest": summary(8, windows=[{"first_step": i, "last_step": i, "step_count": 1 << 40, "ns": 1 << 60, "frontier_ns": [1 << 60] * 10}
                                   for i in range(8)]),
    "workload": WORKLOAD,
    "bad_workload": {"a b": "1"},
}.items():
    text = json.dumps(value, separators=(",", ":"))
    write("stage_summary", name, text.encode())
write("stage_summary", "cut", json.dumps(summary(3)).encode()[:300])
