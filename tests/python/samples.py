"""What the tests of the Python package share: runs to look at, and files to make."""

import functools
import json
import os
import pathlib

import lockstep

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
RECORDED = SOURCE / "examples" / "recorded"


@functools.lru_cache(maxsize=None)
def recorded():
    """The recorded job: four ranks, of which rank 2 is slow."""
    return lockstep.load(RECORDED)


def trace(rank, world_size, names=("aten::mm", "aten::add"), start_us=1_000_000):
    """The text of a small trace: operators, kernels with launches, allocator counters."""
    events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 7, "tid": 7, "ts": start_us, "dur": 100}]
    for i, name in enumerate(names):
        at = start_us + 10 * i
        events += [
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": at, "dur": 6},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": at + 1, "dur": 2,
             "args": {"correlation": i + 1}},
            {"ph": "X", "cat": "kernel", "name": f"kernel_{name}", "pid": 0, "tid": 7, "ts": at + 4, "dur": 5,
             "args": {"correlation": i + 1, "device": 0, "stream": 7}},
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7, "ts": at, "s": "t",
             "args": {"Bytes": 512, "Total Allocated": 512 * (i + 1), "Total Reserved": 4096, "Device Type": 1,
                      "Device Id": 0}},
        ]
    return json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size},
                       "traceEvents": events})


def write_job(folder, world_size=2, **options):
    """A folder of small traces, one for each rank."""
    folder = pathlib.Path(folder)
    for rank in range(world_size):
        (folder / f"rank{rank}.json").write_text(trace(rank, world_size, **options), encoding="utf-8")
    return folder
