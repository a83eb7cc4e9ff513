"""Marks the steps of a training job that marks nothing itself: `lockstep run --steps` (docs/instrument.md#jobs-that-mark-nothing).

A plain file that needs Python's standard library, _boundaries.py beside it and liblockstep alone. Nothing happens before the job
imports torch, and liblockstep is not opened before its first batch, forward, backward or optimizer step. Then these are hooked, all
from outside:

- every torch.optim.Optimizer's step (_boundaries.py): phase `optimizer`, and where a step ends;
- torch.autograd.backward: phase `backward`;
- forward of DistributedDataParallel and FullyShardedDataParallel where gradients are wanted: phase `forward`;
- DataLoader's iterators: phase `input`;
- Work.wait() of collectives: phase `comm_exposed`. Where it cannot be told, since DistributedDataParallel waits inside backward or
  a CUDA stream does and not the host, that is recorded, and lockstepd leaves the phase out.

Each hook gives back what it wraps gives back, and raises what that raises. Whatever goes wrong in a hook switches all of them off,
with one line on standard error. Code that torch.compile traces is left as it is.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from _thread import get_ident as _get_ident
from collections.abc import Callable
from typing import Any

__all__ = ["enable"]

_LIBRARY = "liblockstep.so.1"
_NAMES = ("input", "forward", "backward", "optimizer", "comm")
_INPUT, _FORWARD, _BACKWARD, _OPTIMIZER, _COMM = range(len(_NAMES))
# What lockstepd has to know is said again after so many steps: a ring forgets.
_REMINDER_STEPS = 1000

_is_on = True
_is_started = False
_numbers: list[int] = []
_start: Callable[[int], int]
_finish: Callable[[int], None]
_step: Callable[[], None]
_count: Callable[[int, float], None]
_unknown = 0  # The number of the counter that says so.
_hides_communication = False
_steps = 0
_span = 0  # Of the optimizer that steps just now.
_boundaries: Any
_is_compiling: Callable[[], bool]
_is_cuda: Callable[[], bool]


def enable() -> bool:
    """Makes the import of torch install the hooks; a job that does not import it is left alone. False: it could not be done."""
    try:
        if not os.environ.get("LOCKSTEP_TRACE"):
            return False
        global _boundaries, _is_compiling
        _boundaries = importlib.import_module("._boundaries", __package__)  # Which `lockstep run` has loaded, without the package.
        _is_compiling = _boundaries.is_compiling
        _boundaries.watch(_listener())
        _boundaries.when_imported("torch", _guarded(_install))
        _boundaries.when_imported("torch.distributed.fsdp.fully_sharded_data_parallel", _guarded(_install_fsdp))
        return True
    except Exception as error:
        _switch_off(error)
        return False


def _guarded(install: Callable[[Any], None]) -> Callable[[Any], None]:
    def call(module: Any) -> None:
        try:
            install(module)
        except Exception as error:
            _switch_off(error)

    return call


def _switch_off(error: BaseException | str) -> None:
    """Never again in this process."""
    global _is_on
    if not _is_on:
        return
    _is_on = False
    try:
        what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        print(f"lockstep: the steps of this process (pid {os.getpid()}) are not marked: {what}", file=sys.stderr, flush=True)
    except Exception:
        pass


def _open_library() -> ctypes.PyDLL:
    """The one that is there already, for two would write two files; else the one that `lockstep run` came with."""
    if "lockstep._spans" not in sys.modules:
        for name in (os.environ.get("LOCKSTEP_STEPS_LIBRARY"), _LIBRARY):
            if name:
                try:
                    try:
                        return ctypes.PyDLL(_LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
                    except OSError:
                        return ctypes.PyDLL(name)
                except OSError:
                    pass
        import lockstep._spans  # noqa: F401
    return ctypes.PyDLL(_LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)


def _begin_recording() -> bool:
    """At the first thing that a hook sees."""
    global _is_started, _start, _finish, _step, _count, _unknown
    _is_started = True
    try:
        if "lockstep._trace" in sys.modules:
            _switch_off("the program marks its own with lockstep's Python package")
            return False
        library = _open_library()
        # Integers go as they are: types that ctypes has to look after would cost as much as the call.
        library.lockstep_name.argtypes, library.lockstep_name.restype = [ctypes.c_char_p], ctypes.c_uint32
        library.lockstep_span_start.argtypes, library.lockstep_span_start.restype = [ctypes.c_uint32], ctypes.c_uint64
        library.lockstep_span_finish.argtypes, library.lockstep_span_finish.restype = [ctypes.c_uint64], None
        library.lockstep_step.argtypes, library.lockstep_step.restype = [], None
        library.lockstep_counter.argtypes, library.lockstep_counter.restype = [ctypes.c_uint32, ctypes.c_double], None
        if not ctypes.c_uint32.in_dll(library, "lockstep_recording").value:
            _switch_off("liblockstep does not record; it says why")
            return False
        _numbers[:] = [library.lockstep_name(name.encode()) for name in _NAMES]
        _unknown = library.lockstep_name(b"comm_exposed_unknown")
        _start, _finish, _step = library.lockstep_span_start, library.lockstep_span_finish, library.lockstep_step
        _count = library.lockstep_counter
        os.register_at_fork(after_in_child=_forget)
        _step()
        return True
    except Exception as error:
        _switch_off(error)
        return False


def _forget() -> None:
    """A forked child, such as a DataLoader's worker, trains nothing of its own."""
    global _is_on
    _is_on = False


def _enter(phase: int) -> int:
    """A span, or 0."""
    try:
        if _is_on and (_is_started or _begin_recording()):
            return _start(_numbers[phase])
    except Exception as error:
        _switch_off(error)
    return 0


def _leave(span: int) -> None:
    try:
        _finish(span)
    except Exception as error:
        _switch_off(error)


def _hide_communication() -> None:
    """From now on it is known that it cannot be known."""
    global _hides_communication
    if not _hides_communication:
        _hides_communication = True
        _count(_unknown, 1)


def _end_step() -> None:
    global _steps
    _step()
    if _steps % _REMINDER_STEPS == 0:
        if _hides_communication:
            _count(_unknown, 1)
        elif _is_cuda():
            _hide_communication()
    _steps += 1


def _listener() -> Any:
    class Marks(_boundaries.Listener):  # type: ignore[misc]
        def before_optimizer(self) -> None:
            global _span
            _span = _enter(_OPTIMIZER)

        def after_optimizer(self) -> None:
            global _span
            span, _span = _span, 0
            if span:
                _leave(span)

        def step_ended(self) -> None:
            try:
                if _is_on and (_is_started or _begin_recording()):
                    _end_step()
            except Exception as error:
                _switch_off(error)

        def lost(self, why: BaseException | str) -> None:
            _switch_off(why)

    return Marks()


def _wrap(owner: Any, name: str, phase: int, applies: Callable[[], bool] | None = None, hides_communication: bool = False) -> None:
    """Puts a span around a method or function. Where it is called within itself the outermost counts."""
    original = getattr(owner, name)
    inside: set[int] = set()  # Threads.

    def wrapper(*arguments: Any, **options: Any) -> Any:
        if _is_compiling() or not _is_on or (applies is not None and not applies()):
            return original(*arguments, **options)
        thread = _get_ident()
        if thread in inside:
            return original(*arguments, **options)
        span = _enter(phase)
        if hides_communication and span and not _hides_communication:
            _hide_communication()
        inside.add(thread)
        try:
            return original(*arguments, **options)
        finally:
            inside.discard(thread)
            if span:
                _leave(span)

    setattr(owner, name, functools.wraps(original)(wrapper))


def _install(torch: Any) -> None:
    """`torch` has just been imported."""
    global _is_cuda
    _is_cuda = torch.cuda.is_initialized
    _wrap(torch.autograd, "backward", _BACKWARD)
    loaders = importlib.import_module("torch.utils.data.dataloader")
    _wrap(loaders.DataLoader, "__iter__", _INPUT)  # Starts the workers.
    _wrap(loaders._BaseDataLoaderIter, "__next__", _INPUT)
    _wrap(torch.nn.parallel.DistributedDataParallel, "forward", _FORWARD, torch.is_grad_enabled, hides_communication=True)
    work = getattr(getattr(torch._C, "_distributed_c10d", None), "Work", None)
    if work is not None:
        _wrap(work, "wait", _COMM, lambda: not _is_cuda())


def _install_fsdp(module: Any) -> None:
    torch = sys.modules["torch"]
    _wrap(module.FullyShardedDataParallel, "forward", _FORWARD, torch.is_grad_enabled, hides_communication=True)
