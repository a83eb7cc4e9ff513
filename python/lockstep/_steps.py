"""Marks the stages of a training job's steps that marks nothing itself: `lockstep run --stages` (docs/instrument.md#jobs-that-mark-nothing).

A plain file that needs Python's standard library, _boundaries.py and _torch_memory.py beside it, and liblockstep alone. Nothing happens before the job
imports torch, and liblockstep is not opened before its first batch, forward, backward or optimizer step. Then these are hooked, all
from outside:

- every torch.optim.Optimizer's step (_boundaries.py): stage `optimizer`, and where a step ends;
- torch.autograd.backward: stage `backward`;
- the outermost module's call: stage `forward` where gradients are wanted, else `validation` if the module is one that trains;
- DataLoader's iterators: stage `input`;
- torch.save and torch.distributed.checkpoint: stage `checkpoint`;
- Python's garbage collection: stage `gc`;
- waits for collectives in jobs on the CPU: stage `comm`. Those of Python by Work.wait(); that of DistributedDataParallel, which is
  one of C++ at the end of backward, by a callback of autograd that runs just before it. On a GPU a stream waits and not the host:
  that is recorded, and whoever reads the file leaves the stage out.

Each hook gives back what it wraps gives back, and raises what that raises. Whatever goes wrong in a hook switches all of them off,
with one line on standard error. Code that torch.compile traces is left as it is.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import os
import sys
from _thread import get_ident as _get_ident
from collections.abc import Callable
from typing import Any

__all__ = ["enable"]

_LIBRARY = "liblockstep.so.1"
_NAMES = ("input", "forward", "backward", "optimizer", "comm", "checkpoint", "validation", "gc")
_INPUT, _FORWARD, _BACKWARD, _OPTIMIZER, _COMM, _CHECKPOINT, _VALIDATION, _GC = range(len(_NAMES))
# What lockstepd has to know is said again after so many steps: a ring forgets.
_REMINDER_STEPS = 1000
# In so many steps every outermost module of the training loop is called.
_FINDING_STEPS = 3
_MOST_MODULES = 1 << 20

_is_on = True
_is_started = False
_numbers: list[int] = []
_start: Callable[[int], int]
_finish: Callable[[int], None]
_step: Callable[[], None]
_count: Callable[[int, float], None]
_name: Callable[[bytes], int]
_unknown = 0  # The number of the counter that says so.
_hides_communication = False
_meets = False  # The next backward ends with a wait for all ranks.
_modules: _Modules
_steps = 0
_span = 0  # Of the optimizer that steps just now.
_boundaries: Any
_torch_memory: Any
_is_compiling: Callable[[], bool]
_is_cuda: Callable[[], bool]


def enable() -> bool:
    """Makes the import of torch install the hooks; a job that does not import it is left alone. False: it could not be done."""
    try:
        if not os.environ.get("LOCKSTEP_TRACE"):
            return False
        global _boundaries, _torch_memory, _is_compiling
        _boundaries = importlib.import_module("._boundaries", __package__)  # Which `lockstep run` has loaded, without the package.
        _torch_memory = importlib.import_module("._torch_memory", __package__)
        _is_compiling = _boundaries.is_compiling
        _boundaries.watch(_listener())
        _boundaries.when_imported("torch", _guarded(_install))
        _boundaries.when_imported("torch.distributed.checkpoint.state_dict_saver", _guarded(_install_checkpoints))
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
    global _is_started, _start, _finish, _step, _count, _name, _unknown
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
        _count, _name = library.lockstep_counter, library.lockstep_name
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
    if _is_cuda():
        _torch_memory.each_second(lambda name, value: _count(_name(name.encode()), value))
    _steps += 1
    if _steps == _FINDING_STEPS:
        _modules.stop_finding()


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


def _wrap(owner: Any, name: str, phase: int | Callable[[Any], int], applies: Callable[[], bool] | None = None,
          inside: set[int] | None = None, original: Any = None) -> None:
    """Puts a span around a method or function. Where it is called within itself (`inside`: threads that are) the outermost counts.
    `phase`: by the first argument, or the same for all; below 0: none."""
    original = original or getattr(owner, name)
    threads: set[int] = set() if inside is None else inside
    choose = phase if callable(phase) else None
    fixed = -1 if callable(phase) else phase

    def wrapper(*arguments: Any, **options: Any) -> Any:
        if _is_compiling() or not _is_on or (applies is not None and not applies()):
            return original(*arguments, **options)
        thread = _get_ident()
        if thread in threads:
            return original(*arguments, **options)
        threads.add(thread)
        span = 0
        try:
            chosen = fixed if choose is None else choose(arguments[0])
            if chosen >= 0:
                span = _enter(chosen)
            return original(*arguments, **options)
        finally:
            threads.discard(thread)
            if span:
                _leave(span)

    setattr(owner, name, functools.wraps(original)(wrapper))


class _Modules:
    """Calls of the outermost modules. They are found by way of Module.__call__, which all modules share; after a few steps that is
    given back, and the classes that were found have a __call__ of their own. Instances stay as they are: what the job saves of
    them can be read where there is no lockstep."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.ddp = torch.nn.parallel.DistributedDataParallel
        self.trained: set[int] = set()  # Modules that were called for a gradient, and those in them.
        self.inside: set[int] = set()  # Threads.
        self.original = torch.nn.Module.__call__
        _wrap(torch.nn.Module, "__call__", self.find, self.is_outside, self.inside)
        self.finder = torch.nn.Module.__call__

    def find(self, module: Any) -> int:
        try:
            kind = type(module)
            _wrap(kind, "__call__", self.phase, self.is_outside, self.inside, kind.__dict__.get("__call__", self.original))
        except Exception as error:
            _switch_off(error)
        return self.phase(module)

    def is_outside(self) -> bool:
        """What backward computes again is backward."""
        return bool(self.torch._C._current_graph_task_id() == -1)

    def phase(self, module: Any) -> int:
        try:
            return self.phase_of(module)
        except Exception as error:
            _switch_off(error)
            return -1

    def phase_of(self, module: Any) -> int:
        global _meets
        if self.torch.is_grad_enabled():
            if id(module) not in self.trained and len(self.trained) < _MOST_MODULES:
                self.trained.update(map(id, module.modules()))
            module = getattr(module, "_orig_mod", module)  # Of torch.compile(module).
            if isinstance(module, self.ddp):
                _meets = module.require_backward_grad_sync and not _is_cuda()
            return _FORWARD
        return -1 if module.training or id(module) not in self.trained else _VALIDATION

    def stop_finding(self) -> None:
        if self.torch.nn.Module.__call__ is self.finder:
            self.torch.nn.Module.__call__ = self.original


def _wrap_backward(torch: Any) -> None:
    """DistributedDataParallel waits for its collectives in a callback that autograd runs when all gradients are there. Callbacks run
    in the order in which they were asked for: one that is asked for by the first hook of all runs just before."""
    original = torch.autograd.backward
    inside: set[int] = set()
    wait = 0
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def gradients_are_there() -> None:
        nonlocal wait
        if not wait:
            wait = _enter(_COMM)

    def first_hook(_gradient: Any) -> None:
        queue(gradients_are_there)

    def ask(tensors: Any) -> Any:
        try:
            root = tensors if isinstance(tensors, torch.Tensor) else tensors[0]
            return root.register_hook(first_hook) if root.grad_fn is not None and not _compiles_autograd() else None
        except Exception as error:
            _switch_off(error)
            return None

    @functools.wraps(original)
    def backward(tensors: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal wait
        thread = _get_ident()
        if _is_compiling() or not _is_on or thread in inside:
            return original(tensors, *arguments, **options)
        inside.add(thread)
        span = _enter(_BACKWARD)
        hook = ask(tensors) if _meets else None
        try:
            return original(tensors, *arguments, **options)
        finally:
            inside.discard(thread)
            if hook is not None:
                hook.remove()
                ended, wait = wait, 0
                if ended:
                    _leave(ended)
            if span:
                _leave(span)

    torch.autograd.backward = backward


def _compiles_autograd() -> bool:
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


_collection = 0


def _collects(phase: str, info: dict[str, int]) -> None:
    """Full collections: the others are too short, and too many."""
    global _collection
    if info["generation"] != 2 or not _is_started:
        return
    if phase == "start":
        _collection = _enter(_GC)
    elif _collection:
        span, _collection = _collection, 0
        _leave(span)


def _install(torch: Any) -> None:
    """`torch` has just been imported."""
    global _is_cuda, _modules
    _is_cuda = torch.cuda.is_initialized
    _wrap_backward(torch)
    loaders = importlib.import_module("torch.utils.data.dataloader")
    _wrap(loaders.DataLoader, "__iter__", _INPUT)  # Starts the workers.
    _wrap(loaders._BaseDataLoaderIter, "__next__", _INPUT)
    _wrap(torch, "save", _CHECKPOINT)
    _modules = _Modules(torch)
    waits = {"wait": getattr(getattr(torch._C, "_distributed_c10d", None), "Work", None), "_sync_buffers": _modules.ddp}
    for name, owner in waits.items():
        if hasattr(owner, name):
            _wrap(owner, name, _COMM, lambda: not _is_cuda())
    gc.callbacks.append(_collects)


def _install_checkpoints(module: Any) -> None:
    for name in ("save", "async_save"):
        if hasattr(module, name):
            _wrap(module, name, _CHECKPOINT)
