"""lockstep: where the time of a distributed PyTorch job goes, and which rank the others wait for.

    import lockstep

    run = lockstep.load("traces/")
    run                              # the verdict; in a notebook with pictures
    run.breakdown().to_pandas()      # compute, exposed communication, idle per rank, in ns
    run.findings().to_dicts()        # what to do first

And in the training job itself: ``with lockstep.profiler(schedule=..., ranks="0,3") as profiler``, and spans of its own that
``LOCKSTEP_TRACE=FOLDER`` records: ``with lockstep.trace("forward")``, ``lockstep.step()``, ``lockstep.counter("loss", loss)``.

Times are int64 nanoseconds, sizes bytes, shares 0..1; ``table.units`` says which. See docs/python.md.
"""

from typing import TYPE_CHECKING

from ._errors import (
    CancelledError,
    CorruptDataError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    PartialWarning,
    PermissionDeniedError,
    ReadError,
    UnsupportedError,
)
from ._capture import enable_captures
from ._hang import enable_hang_dumps
from ._profiler import Profiler, profiler
from ._stages import enable_stages

if TYPE_CHECKING:
    from ._comparison import Comparison, compare
    from ._native import version as __version__
    from ._progress import Progress
    from ._run import Job, Run, Track, load, passes
    from ._table import Categories, Category, Column, Table
    from ._trace import Request, counter, linked_trace, mark, request, stage, step, step_end, steps, torch_memory, trace
else:
    # Looked up at first use: a training job that only wants the profiler needs neither NumPy nor the compiled module.
    _PLACES = {
        "__version__": "_native",
        "Comparison": "_comparison",
        "compare": "_comparison",
        "Progress": "_progress",
        "Job": "_run",
        "Run": "_run",
        "Track": "_run",
        "Request": "_trace",
        "counter": "_trace",
        "linked_trace": "_trace",
        "mark": "_trace",
        "request": "_trace",
        "stage": "_trace",
        "step": "_trace",
        "step_end": "_trace",
        "steps": "_trace",
        "torch_memory": "_trace",
        "trace": "_trace",
        "load": "_run",
        "passes": "_run",
        "Categories": "_table",
        "Category": "_table",
        "Column": "_table",
        "Table": "_table",
    }

    def __getattr__(name):
        if name not in _PLACES:
            raise AttributeError(f"module 'lockstep' has no attribute '{name}'")
        import importlib

        try:
            module = importlib.import_module(f".{_PLACES[name]}", __name__)
        except ImportError as error:
            if "_native" not in str(error) and "_spans" not in str(error):
                raise
            message = (f"lockstep.{name} needs the compiled part of lockstep, which is not here for this Python: pip install . "
                       "in the checkout, or PYTHONPATH=build/release/python (docs/python.md). lockstep.profiler needs none.")
            raise ImportError(message) from error
        value = module.version if name == "__version__" else getattr(module, name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})

__all__ = [
    "CancelledError",
    "Categories",
    "Category",
    "Column",
    "Comparison",
    "CorruptDataError",
    "Error",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "Job",
    "LimitExceededError",
    "NotFoundError",
    "PartialWarning",
    "PermissionDeniedError",
    "Profiler",
    "Progress",
    "ReadError",
    "Request",
    "Run",
    "Table",
    "Track",
    "UnsupportedError",
    "__version__",
    "compare",
    "counter",
    "enable_captures",
    "enable_hang_dumps",
    "enable_stages",
    "linked_trace",
    "load",
    "mark",
    "passes",
    "profiler",
    "request",
    "stage",
    "step",
    "step_end",
    "steps",
    "torch_memory",
    "trace",
]
