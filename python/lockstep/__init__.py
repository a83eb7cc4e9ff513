"""lockstep: where the time of a distributed PyTorch job goes, and which rank the others wait for.

    import lockstep

    run = lockstep.load("traces/")
    run                              # the verdict; in a notebook with pictures
    run.breakdown().to_pandas()      # compute, exposed communication, idle per rank, in ns
    run.findings().to_dicts()        # what to do first

Times are int64 nanoseconds, sizes bytes, shares 0..1; ``table.units`` says which. See docs/python.md.
"""

from ._comparison import Comparison, compare
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
from ._native import version as __version__
from ._progress import Progress
from ._run import Job, Run, Track, load, passes
from ._table import Categories, Category, Column, Table

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
    "Progress",
    "ReadError",
    "Run",
    "Table",
    "Track",
    "UnsupportedError",
    "__version__",
    "compare",
    "load",
    "passes",
]
