"""torch.profiler in a training job, with traces that `lockstep analyze` finds its way in.

This file needs the standard library only, and PyTorch once a rank is profiled: the training job's environment need not
have NumPy or the compiled part of lockstep.
"""

from __future__ import annotations

import gzip
import importlib
import os
import re
import shutil
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Union

from ._errors import FailedPreconditionError, InvalidArgumentError
from ._launchers import find_rank

ScheduleOption = Union[Mapping[str, int], Callable[[int], Any], None]
RanksOption = Union[str, int, Iterable[int], None]
FolderOption = Union[str, "os.PathLike[str]"]

_SCHEDULE = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
_GZIP_LEVEL = 1  # A training loop waits for it: a third of the time of level 6, a fifth larger.
_MAX_NAMES = 10_000


def _rank_and_world() -> tuple[int | None, int | None]:
    """Of this process: as torch.distributed knows them where it is in use, else as the launcher says; None: unknown."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    return find_rank(os.environ)


def _parse_ranks(ranks: RanksOption) -> list[tuple[int, int]] | None:
    """Inclusive ranges; None: all ranks."""
    if ranks is None:
        return None
    if isinstance(ranks, int):
        ranks = [ranks]
    if not isinstance(ranks, str):
        numbers = list(ranks)
        if not all(isinstance(rank, int) and rank >= 0 for rank in numbers):
            raise InvalidArgumentError(f"ranks={numbers!r}: ranks are whole numbers from 0")
        return [(rank, rank) for rank in numbers]
    if ranks.strip() == "all":
        return None
    ranges = []
    for part in ranks.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", part)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise InvalidArgumentError(f"ranks={ranks!r}: expected ranks and ranges such as '0,3,8-15', or 'all'")
        ranges.append((int(match[1]), int(match[2] or match[1])))
    return ranges


class Profiler:
    """What `lockstep.profiler` returns: a context manager, to be told of each step. Not made directly.

    Attributes:
        enabled: whether this rank is profiled. False until the context is entered, and for ranks that are left out.
        rank: of this process, or None where nothing says it. Known once the context is entered.
        files: the traces written so far, whole, in order.
        errors: why a trace could not be written (a full disk, say); the job goes on. Also told as a RuntimeWarning.
        profile: the ``torch.profiler.profile`` below, for ``key_averages()`` and the like; None where not enabled.
    """

    def __init__(self, schedule: ScheduleOption, ranks: list[tuple[int, int]] | None, folder: str, compress: bool,
                 rank: int | None, options: dict[str, Any]) -> None:
        self.enabled = False
        self.rank = rank
        self.files: list[str] = []
        self.errors: list[Exception] = []
        self.profile: Any = None
        self._world: int | None = None
        self._schedule = schedule
        self._ranks = ranks
        self._folder = folder
        self._compress = compress
        self._options = options
        self._after: Callable[[Any], Any] | None = options.pop("on_trace_ready", None)
        self._window = 0

    def step(self) -> None:
        """Says that a step has ended. For a rank that is left out this does nothing."""
        if self.profile is not None:
            self.profile.step()

    def start(self) -> None:
        """Begins, as entering the context does."""
        if self.profile is not None:
            raise FailedPreconditionError("this profiler has begun already; make another one")
        known_rank, self._world = _rank_and_world()
        if self.rank is None:
            self.rank = known_rank
        elif self.rank != known_rank:
            self._world = None
        if self._ranks is not None:
            if self.rank is None:
                warnings.warn("lockstep.profiler(ranks=...): nothing says which rank this process is, so it is profiled; "
                              "give rank=, or enter the context after init_process_group", RuntimeWarning, stacklevel=3)
            elif not any(first <= self.rank <= last for first, last in self._ranks):
                return
        torch_profiler = importlib.import_module("torch.profiler")
        schedule = self._schedule
        if isinstance(schedule, Mapping):
            schedule = torch_profiler.schedule(**schedule)
        self.profile = torch_profiler.profile(schedule=schedule, on_trace_ready=self._write, **self._options)
        self.enabled = True
        self.profile.start()

    def stop(self) -> None:
        """Ends, as leaving the context does. A window that had begun is written as far as it got."""
        if self.profile is not None and self.enabled:
            self.enabled = False
            self.profile.stop()

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.stop()

    def _stem(self, attempt: int) -> str:
        """A name of the rules in docs/formats/file-names.md: rank first, then what makes it unique."""
        host = re.sub(r"[^A-Za-z0-9.-]+", "-", socket.gethostname()) or "host"
        again = f"-{attempt}" if attempt else ""
        if self.rank is None:
            # The form whose files are taken for windows of one process, in order of time.
            return f"{host}_{os.getpid()}.{time.time_ns()}.pt.trace.json"
        world = f"-of-{self._world}" if self._world is not None else ""
        return f"rank{self.rank}{world}_{host}_{os.getpid()}_window{self._window}{again}.json"

    def _write(self, profile: Any) -> None:
        try:
            self.files.append(self._write_whole(profile))
        except Exception as error:  # Whatever it is: a trace is not worth the job.
            self.errors.append(error)
            warnings.warn(f"lockstep.profiler: window {self._window} of rank {self.rank} was not written to "
                          f"{self._folder}: {error}", RuntimeWarning, stacklevel=2)
        self._window += 1
        if self._after is not None:
            self._after(profile)

    def _write_whole(self, profile: Any) -> str:
        """Under a name that nobody reads, then renamed: whoever sees a trace sees a whole one, and none is overwritten."""
        os.makedirs(self._folder, exist_ok=True)
        # A dot before it: `lockstep analyze` passes such names over.
        temporary = os.path.join(self._folder, f".{self._stem(0)}.{threading.get_native_id()}.tmp.json")
        packed = temporary + ".gz"
        try:
            profile.export_chrome_trace(temporary)
            if not os.path.getsize(temporary):
                raise OSError("PyTorch wrote an empty file; the disk may be full")
            source = temporary
            if self._compress:
                with open(temporary, "rb") as plain, gzip.open(packed, "wb", compresslevel=_GZIP_LEVEL) as out:
                    shutil.copyfileobj(plain, out, 1 << 20)
                source = packed
            ending = ".gz" if self._compress else ""
            for attempt in range(_MAX_NAMES):
                final = os.path.join(self._folder, self._stem(attempt) + ending)
                if _give_name(source, final):
                    return final
            raise OSError(f"{self._folder} holds {_MAX_NAMES} traces of this name")
        finally:
            for path in (temporary, packed):
                if os.path.exists(path):
                    os.unlink(path)


def _give_name(source: str, final: str) -> bool:
    """Renames without overwriting; False: there is such a file."""
    try:
        os.link(source, final)
        return True
    except FileExistsError:
        return False
    except OSError:  # A file system without hard links.
        if os.path.lexists(final):
            return False
        os.rename(source, final)
        return True


def profiler(
    *,
    schedule: ScheduleOption = None,
    ranks: RanksOption = None,
    folder: FolderOption = "traces",
    compress: bool = True,
    rank: int | None = None,
    **options: Any,
) -> Profiler:
    """``torch.profiler.profile`` for a job of many ranks: ::

        with lockstep.profiler(schedule=dict(wait=10, warmup=1, active=3, repeat=2), ranks="0,3", folder="traces") as profiler:
            for batch in loader:
                train(batch)
                profiler.step()

    Each window of each rank becomes a file of its own in ``folder``, such as ``rank3-of-8_node01_4711_window0.json.gz``: whole
    or not there, never overwritten, and read by ``lockstep analyze folder``. Give every job a folder of its own.

    Ranks that are left out get an object that does nothing and does not import torch.profiler. What goes wrong while a
    trace is written is told as a warning and does not end the job.

    Args:
        schedule: arguments of ``torch.profiler.schedule``, or what it returned; None: all of it is one window.
        ranks: which to profile: ``"0,3,8-15"``, numbers, or None for all.
        folder: made where it is missing; local or shared.
        compress: gzip.
        rank: of this process, where neither torch.distributed nor the launcher's environment says it.
        **options: of ``torch.profiler.profile``: ``activities``, ``record_shapes``, ``with_stack``, ... ``on_trace_ready`` is
            called after a trace was written.

    Raises:
        InvalidArgumentError: ``ranks``, ``schedule`` or ``rank`` make no sense.
    """
    if isinstance(schedule, Mapping):
        if not {"wait", "warmup", "active"} <= set(schedule) <= set(_SCHEDULE):
            raise InvalidArgumentError(f"schedule={dict(schedule)!r}: wait, warmup and active are needed, and there are "
                                       f"{', '.join(_SCHEDULE[3:])} besides")
    elif schedule is not None and not callable(schedule):
        raise InvalidArgumentError("schedule= takes the arguments of torch.profiler.schedule as a dict, or its result")
    if rank is not None and (not isinstance(rank, int) or rank < 0):
        raise InvalidArgumentError(f"rank={rank!r}: ranks are whole numbers from 0")
    return Profiler(dict(schedule) if isinstance(schedule, Mapping) else schedule, _parse_ranks(ranks),
                    os.fspath(folder), compress, rank, options)
