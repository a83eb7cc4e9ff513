"""faulty_training.py with PyTorch's profiler round some of its steps.

profiled_training.py FOLDER FIRST COUNT STEPS FAULT: COUNT steps from FIRST on (4 at least) are in FOLDER/rankN.pt.trace.json.
"""

import contextlib
import os
import sys

import faulty_training
import torch

folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
del sys.argv[1:4]


def write(profiler):
    profiler.export_chrome_trace(os.path.join(folder, f"rank{os.environ['RANK']}.pt.trace.json"))


profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], on_trace_ready=write,
                                  schedule=torch.profiler.schedule(wait=first - 2, warmup=2, active=count, repeat=1))


@contextlib.contextmanager
def around_step(_model):
    yield
    profiler.step()


faulty_training.around_step = around_step
with profiler:
    faulty_training.main()
