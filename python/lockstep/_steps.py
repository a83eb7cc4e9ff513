"""Marks the steps of a training job that marks nothing itself: `lockstep run --steps` (docs/instrument.md#jobs-that-mark-nothing).

A plain file of its own that needs Python's standard library and liblockstep alone. Nothing happens before the job imports torch,
and liblockstep is not opened before its first batch, forward, backward or optimizer step. Then these are hooked, all from outside:

- every torch.optim.Optimizer's step (PyTorch's own global hooks): phase `optimizer`, and where a step ends;
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
import weakref
from _thread import get_ident as _get_ident
from collections.abc import Callable
from typing import Any

__all__ = ["enable"]

_LIBRARY = "liblockstep.so.1"
_NAMES = ("input", "forward", "backward", "optimizer", "comm")
_INPUT, _FORWARD, _BACKWARD, _OPTIMIZER, _COMM = range(len(_NAMES))
# So many turns alike say in which order several optimizers step.
_SAME_TURNS = 3
_MOST_OPTIMIZERS = 4096
_MOST_OPEN = 16
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
_is_compiling: Callable[[], bool]
_is_cuda: Callable[[], bool]


def enable() -> bool:
    """Makes the import of torch install the hooks; a job that does not import it is left alone. False: it could not be done."""
    try:
        if not os.environ.get("LOCKSTEP_TRACE"):
            return False
        torch = sys.modules.get("torch")
        if torch is not None:
            _install(torch)
        else:
            fsdp = "torch.distributed.fsdp.fully_sharded_data_parallel"
            sys.meta_path.insert(0, _Finder({"torch": _install, fsdp: _install_fsdp}))
        return True
    except Exception as error:
        _switch_off(error)
        return False


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


class _Finder:
    """Calls back after modules have been imported. What finds and loads them stays whoever it was."""

    def __init__(self, wanted: dict[str, Callable[[Any], None]]) -> None:
        self.wanted = wanted
        self.is_asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if self.is_asking or name not in self.wanted:
            return None
        self.is_asking = True
        try:
            for finder in sys.meta_path:
                spec = finder.find_spec(name, path, target) if finder is not self and hasattr(finder, "find_spec") else None
                if spec is not None:
                    self.watch(name, spec)
                    return spec
        finally:
            self.is_asking = False
        return None

    def watch(self, name: str, spec: Any) -> None:
        loader = spec.loader
        load = getattr(loader, "exec_module", None)
        if load is None:
            return

        def exec_module(module: Any) -> None:
            loader.__dict__.pop("exec_module", None)  # As it was.
            load(module)
            call_back = self.wanted.pop(name, None)
            if call_back is not None:
                try:
                    call_back(module)
                except Exception as error:
                    _switch_off(error)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # A loader without a dictionary: not PyTorch as anybody installs it.
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


class _Turns:
    """Where a step ends: when the optimizer that comes last in a turn of the training loop has stepped. Which one that is, is
    not known at first: it is the first one that steps, until several turns alike have shown an order."""

    def __init__(self) -> None:
        self.last: Callable[[], Any] = lambda: None
        self.others: list[int] = []  # That have stepped since, in order.
        self.newest: Callable[[], Any] = lambda: None
        self.before: list[int] = []  # The same of the turn before.
        self.same = 0
        self.has_counted = False  # The turn that is under way.
        self.may_learn = True

    def end(self, optimizer: Any) -> bool:
        """It has stepped. Whether the step ends with it."""
        last = self.last()
        if last is None or last is optimizer:
            if last is None:  # The first of all, or that one is gone.
                self.last = weakref.ref(optimizer)
            if self.has_counted:
                self.has_counted = False
                self.others = []
                return False
            self.learn()
            return True
        number = id(optimizer)
        if number in self.others:  # Twice without the last one: that one has stopped, or comes now and then.
            self.last, self.others, self.before, self.may_learn = weakref.ref(optimizer), [], [], False
            self.has_counted = False
            return True
        if len(self.others) < _MOST_OPTIMIZERS:
            self.others.append(number)
            self.newest = weakref.ref(optimizer)
        return False

    def learn(self) -> None:
        others, self.others = self.others, []
        if not self.may_learn or not others:
            self.same, self.before = 0, others
            return
        self.same = self.same + 1 if others == self.before else 1
        self.before = others
        if self.same >= _SAME_TURNS and self.newest() is not None:
            self.last, self.before, self.has_counted, self.may_learn = self.newest, [], True, False


_turns = _Turns()
_open: list[tuple[int, int]] = []  # Optimizers that step just now, and their spans: one may call another.
_stepped = 0


def _before_optimizer(optimizer: Any, _arguments: Any, _options: Any) -> None:
    if not _is_on or _is_compiling():
        return
    try:
        number = id(optimizer)
        if _open and (len(_open) >= _MOST_OPEN or any(number == other for other, _ in _open)):
            _close_from(0)  # A step that was left by an exception.
        _open.append((number, 0 if _open else _enter(_OPTIMIZER)))
    except Exception as error:
        _switch_off(error)


def _after_optimizer(optimizer: Any, _arguments: Any, _options: Any) -> None:
    global _stepped
    if not _is_on or _is_compiling():
        return
    try:
        number = id(optimizer)
        for at, (other, _) in enumerate(_open):
            if other == number:
                _close_from(at)
                break
        _stepped += 1
        if not _open and _turns.end(optimizer):
            _end_step()
    except Exception as error:
        _switch_off(error)


def _close_from(at: int) -> None:
    for _, span in _open[at:]:
        if span:
            _leave(span)
    del _open[at:]


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
    global _is_compiling, _is_cuda
    _is_cuda = torch.cuda.is_initialized
    _is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)
    optimizers = importlib.import_module("torch.optim.optimizer")
    if not hasattr(optimizers, "register_optimizer_step_post_hook"):
        _switch_off(f"PyTorch {torch.__version__} has no hooks for optimizers; 2.0 and later have")
        return
    optimizers.register_optimizer_step_pre_hook(_before_optimizer)
    optimizers.register_optimizer_step_post_hook(_after_optimizer)
    _wrap(torch.autograd, "backward", _BACKWARD)
    loaders = importlib.import_module("torch.utils.data.dataloader")
    _wrap(loaders.DataLoader, "__iter__", _INPUT)  # Starts the workers.
    _wrap(loaders._BaseDataLoaderIter, "__next__", _INPUT)
    _wrap(torch.nn.parallel.DistributedDataParallel, "forward", _FORWARD, torch.is_grad_enabled, hides_communication=True)
    _watch_scaler(torch)
    work = getattr(getattr(torch._C, "_distributed_c10d", None), "Work", None)
    if work is not None:
        _wrap(work, "wait", _COMM, lambda: not _is_cuda())


def _install_fsdp(module: Any) -> None:
    torch = sys.modules["torch"]
    _wrap(module.FullyShardedDataParallel, "forward", _FORWARD, torch.is_grad_enabled, hides_communication=True)


def _watch_scaler(torch: Any) -> None:
    """A GradScaler leaves an optimizer's step out when gradients have overflown: the turn ends all the same."""
    scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    original = scaler.step

    def step(self: Any, optimizer: Any, *arguments: Any, **options: Any) -> Any:
        before = _stepped
        result = original(self, optimizer, *arguments, **options)
        try:
            if _is_on and _stepped == before and not _open and (_is_started or _begin_recording()) and _turns.end(optimizer):
                _end_step()
        except Exception as error:
            _switch_off(error)
        return result

    scaler.step = functools.wraps(original)(step)
