"""Marks the stages of a training job's steps that marks nothing itself: `lockstep run --stages` (docs/instrument.md#jobs-that-mark-nothing).

A plain file that needs Python's standard library, _boundaries.py, _launchers.py and _torch_memory.py beside it, and the module _hooks alone. Nothing
happens before the job imports torch, and nothing is recorded before its first batch, forward, backward or optimizer step. Then these are
hooked, all from outside:

- every torch.optim.Optimizer's step (_boundaries.py): stage `optimizer`, and where a step ends;
- torch.autograd.backward: stage `backward`;
- the outermost module's call: stage `forward` where gradients are wanted, else `validation` if the module is one that trains;
- DataLoader's iterators: stage `input`;
- torch.save, torch.distributed.checkpoint and files of safetensors: stage `checkpoint`;
- Python's garbage collection: stage `gc`;
- waits for collectives in jobs on the CPU: stage `comm`. Those of Python by Work.wait(), and by that for the tensor of a functional
  collective; that of DistributedDataParallel, which is one of C++ at the end of backward, by a callback of autograd that runs just
  before it.

Where the program uses CUDA, events in the job's stream tell how long each stage lasts on the device, and how long its stream waits for
collectives (docs/formats/span-trace.md#device-times). Where they cannot be had that is recorded: the host does not wait for collectives.

Each hook gives back what it wraps gives back, and raises what that raises. Whatever goes wrong in a hook switches all of them off,
with one line on standard error. Code that torch.compile traces is left as it is. A program may mark stages of its own with lockstep's
Python package: the innermost counts. Once it marks steps, those count and none are marked here.

Here is decided what is what and hooked; _hooks, which is C++, does what is done in every step.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import importlib.util
import os
import sys
import weakref
import zlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

__all__ = ["enable"]

# As _hooks numbers them.
_INPUT, _FORWARD, _BACKWARD, _OPTIMIZER, _COMM, _CHECKPOINT, _VALIDATION, _GC = range(8)
_NONE = -1
(_PLAIN, _WORK_WAIT, _BUFFER_WAIT, _MODULE, _OUTERMOST_BACKWARD, _SHARD_WAIT, _TENSOR_WAIT, _ISSUE, _ISSUE_TO_ONE, _GROUP_OF_TENSOR,
 _ISSUE_TENSOR) = range(11)
# Methods of a process group that give a Work; those of one peer are others.
_COLLECTIVES = """allreduce allreduce_coalesced broadcast reduce allgather _allgather_base allgather_coalesced
    allgather_into_tensor_coalesced all_gather_single all_gather_single_coalesced gather scatter reduce_scatter _reduce_scatter_base
    reduce_scatter_tensor_coalesced reduce_scatter_single reduce_scatter_single_coalesced alltoall alltoall_base all_to_all_single barrier
    _end_coalescing""".split()
_ONE_TO_ONE = ("send", "recv", "recv_anysource")
_FUNCTIONAL = "torch.distributed._functional_collectives"
_MOST_RANKS_NAMED = 64
# In so many steps from an optimizer's first one on every outermost module of its training loop is called.
_FINDING_STEPS = 3
_MOST_MODULES = 1 << 20

_is_on = True
_has_device_times = False
_boundaries: Any
_launchers: Any
_torch_memory: Any
_hooks: Any = None
_modules: _Modules
_is_compiling: Callable[[], bool]
_is_cuda: Callable[[], bool]


def enable() -> bool:
    """Makes the import of torch install the hooks; a job that does not import it is left alone. False: it could not be done."""
    try:
        if not os.environ.get("LOCKSTEP_TRACE"):
            return False
        global _boundaries, _launchers, _torch_memory
        _launchers = importlib.import_module("._launchers", __package__)
        _boundaries = importlib.import_module("._boundaries", __package__)  # Which `lockstep run` has loaded, without the package.
        _torch_memory = importlib.import_module("._torch_memory", __package__)
        _boundaries.when_imported("torch", _guarded(_install))
        _boundaries.when_imported("torch.distributed.checkpoint.state_dict_saver", _guarded(_install_checkpoints))
        _boundaries.when_imported("safetensors.torch", _guarded(_install_safetensors))
        for folder in ("fsdp._fully_shard", "_composable.fsdp"):  # Since PyTorch 2.6, and before.
            _boundaries.when_imported(f"torch.distributed.{folder}._fsdp_param_group", _guarded(_install_shards))
        return True
    except Exception as error:
        _switch_off(error)
        return False


def _guarded(install: Callable[[Any], None]) -> Callable[[Any], None]:
    def call(module: Any) -> None:
        try:
            if _is_on:
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
        if _hooks is not None:
            _hooks.switch_off()
        what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        print(f"lockstep: the steps of this process (pid {os.getpid()}) are not marked: {what}", file=sys.stderr, flush=True)
    except Exception:
        pass


def _load_hooks() -> Any:
    """The module that `lockstep run` came with, else the package's. It is linked with liblockstep: with the one that is there already,
    for two would write two files."""
    path = os.environ.get("LOCKSTEP_STEPS_HOOKS")
    if not path:
        return importlib.import_module("lockstep._hooks")
    spec = importlib.util.spec_from_file_location("lockstep_run._hooks", path)  # The package may come with another version.
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leave_steps() -> None:
    """The program marks its own steps. What is marked within them stays."""
    if _hooks is not None:
        _hooks.leave_steps()


def _rank_of_group() -> dict[str, str]:
    """torch.distributed's word on the rank, as liblockstep reads it, where no launcher has one: Lightning starts such processes."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or _launchers.find_rank(os.environ)[0] is not None:
        return {}
    if not distributed.is_available() or not distributed.is_initialized():
        return {}
    return {"RANK": str(distributed.get_rank()), "WORLD_SIZE": str(distributed.get_world_size())}


def _begin_recording() -> bool:
    """At the first thing that a hook sees."""
    if not _is_on:
        return False
    told = _rank_of_group()
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    records = _hooks.record(os.environ["LOCKSTEP_TRACE"])
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    if not records:
        _switch_off("liblockstep does not record; it says why")
    else:
        # A forked child, such as a DataLoader's worker, trains nothing of its own.
        os.register_at_fork(after_in_child=_hooks.switch_off)
    return _is_on


def _stepped(count: int) -> None:
    """What lockstepd has to know is said again now and then: a ring forgets."""
    if count >= _modules.finding_ends:
        _modules.stop_finding()
    if _is_cuda():
        _use_device()


def _use_device() -> None:
    global _has_device_times
    torch: Any = sys.modules["torch"]
    current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    had_device_times = _has_device_times
    _has_device_times = current_stream is not None and _hooks.use_device(current_stream, torch.cuda.current_device())
    if not _has_device_times:
        _hooks.count("comm_exposed_unknown", 1.0)  # It cannot be known.
        return
    if not had_device_times:
        atexit.register(_hooks.resolve_device)
    spans: Any = sys.modules.get("lockstep._spans")  # Of the package, which may be of another version.
    if hasattr(spans, "watch"):
        spans.watch(_hooks.marks)


def _listener() -> Any:
    class Marks(_boundaries.Listener):  # type: ignore[misc]
        def before_optimizer(self) -> None:
            _hooks.before_optimizer()

        def after_optimizer(self) -> None:
            _hooks.after_optimizer()

        def step_ended(self) -> None:
            _hooks.step_ended()

        def optimizer_is_new(self) -> None:
            try:
                _modules.start_finding()
            except Exception as error:
                _switch_off(error)

        def lost(self, why: BaseException | str) -> None:
            _switch_off(why)

    return Marks()


def _wrap(owner: Any, name: str, phase: int, kind: int = _PLAIN, original: Any = None) -> None:
    """Puts a span around a method or function. Where it is called within itself the outermost counts."""
    original = original or getattr(owner, name)
    call = _hooks.around(original, phase, kind)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        return original(*arguments, **options) if _is_compiling() else call(arguments, options)

    setattr(owner, name, functools.wraps(original)(wrapper))


class _Modules:
    """Calls of the outermost modules. They are found by way of Module.__call__, which all modules share; after a few steps that is
    given back, until another optimizer appears, and the classes that were found have a __call__ of their own. Instances stay as they
    are: what the job saves of them can be read where there is no lockstep."""

    def __init__(self, torch: Any, waits: _Waits) -> None:
        self.torch = torch
        self.waits = waits
        self.ddp = torch.nn.parallel.DistributedDataParallel
        self.trained: set[int] = set()  # Modules that were called for a gradient, and those in them.
        self.original: Any = None
        self.finder: Any = None
        self.finding_ends = 0  # A step.
        self.wrappers: set[Any] = set()

    def start_finding(self) -> None:
        self.finding_ends = _hooks.report_step(_FINDING_STEPS)
        if self.finder is None:
            self.original = self.torch.nn.Module.__call__
            _wrap(self.torch.nn.Module, "__call__", _NONE, _MODULE)
            self.finder = self.torch.nn.Module.__call__

    def stop_finding(self) -> None:
        if self.finder is not None and self.torch.nn.Module.__call__ is self.finder:
            self.torch.nn.Module.__call__ = self.original
            self.finder = None

    def find(self, kind: Any) -> None:
        call = next(each.__dict__["__call__"] for each in kind.__mro__ if "__call__" in each.__dict__)
        if call not in self.wrappers and isinstance(call, FunctionType):
            _wrap(kind, "__call__", _NONE, _MODULE, self.original if call is self.finder else call)
            self.wrappers.add(kind.__call__)

    def choose(self, module: Any) -> int:
        """The phase of a call from outside of any other module's, and of any backward. Not asked again for modules that are remembered."""
        if self.finder is not None:
            self.find(type(module))
        if not self.torch.is_grad_enabled():
            return _NONE if module.training or id(module) not in self.trained else _VALIDATION
        if id(module) not in self.trained and len(self.trained) < _MOST_MODULES:
            self.trained.update(map(id, module.modules()))
        inner = getattr(module, "_orig_mod", module)  # Of torch.compile(module).
        held = getattr(inner, "module", None)  # Of DistributedDataParallel and its like: validation often calls it alone.
        if self.finder is not None and isinstance(held, self.torch.nn.Module):
            self.find(type(held))
        waits = isinstance(inner, self.ddp) and (_has_device_times or not _is_cuda())
        if waits:
            self.waits.watch(inner)
        _hooks.remember(weakref.ref(module), weakref.ref(inner) if waits else None, inner.process_group if waits else None)
        return _FORWARD


class _Waits:
    """Those of DistributedDataParallel for its collectives: in a callback that autograd runs when all gradients are there. Callbacks
    run in the order in which they were queued. The node that adds up a parameter's gradient queues ours before
    DistributedDataParallel can know that all are there; where a backward passes it by, the first hook of the whole backward does."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.has_to_ask = False
        self.watched: weakref.WeakSet[Any] = weakref.WeakSet()  # Of one of its parameters the node queues.
        original = torch.autograd.backward
        call = _hooks.around(original, _BACKWARD, _OUTERMOST_BACKWARD)

        @functools.wraps(original)
        def backward(*arguments: Any, **options: Any) -> Any:
            if _is_compiling():
                return original(*arguments, **options)
            if not self.has_to_ask or not _hooks.expects_wait():
                return call(arguments, options)
            hook = self.ask(arguments[0] if arguments else options.get("tensors"))
            try:
                return call(arguments, options)
            finally:
                if hook is not None:
                    hook.remove()

        torch.autograd.backward = backward

    def watch(self, module: Any) -> None:
        """A DistributedDataParallel that _hooks does not remember."""
        _hooks.expect_wait(module.require_backward_grad_sync, module.process_group)
        if module in self.watched:
            return
        self.watched.add(module)
        try:
            parameter = next(each for each in module._module_parameters if each.requires_grad)
            parameter.view_as(parameter).grad_fn.next_functions[0][0].register_prehook(_queue_wait)
            self.has_to_ask = False
        except Exception:  # Of another PyTorch.
            self.has_to_ask = True

    def missed(self) -> None:
        """A backward has passed the node by, or has another one within it, with callbacks of its own."""
        self.has_to_ask = True

    def ask(self, tensors: Any) -> Any:
        try:
            root = tensors if isinstance(tensors, self.torch.Tensor) else tensors[0]
            return root.register_hook(_queue_wait) if root.grad_fn is not None and not _compiles_autograd() else None
        except Exception as error:
            _switch_off(error)
            return None


def _queue_wait(_gradients: Any) -> None:
    if not _is_compiling():
        _hooks.queue_wait()


def _name_group(group: Any) -> str | None:
    """"dp[0,2]": a text that its ranks have in common, and no other group with them. "": all ranks. None: PyTorch does not know it."""
    try:
        c10d = sys.modules["torch.distributed.distributed_c10d"]
        ranks = c10d.get_process_group_ranks(group)
        if len(ranks) == c10d.get_world_size():
            return ""
        name = str(getattr(group, "group_desc", ""))
        if name in ("", "undefined"):
            name = "group"
        if name.startswith("mesh_"):  # A device mesh's: the rest is the name of its dimension.
            name = name[len("mesh_"):]
        name = "".join(each if each.isalnum() or each in "_-." else "_" for each in name[:64])
        return f"{name}[{_list_ranks(sorted(ranks))}]"
    except Exception:  # One that was made by hand, or of another PyTorch.
        return None


def _find_group(name: str) -> Any:
    """The process group that PyTorch knows by this name; None: it knows none."""
    try:
        return sys.modules["torch.distributed.distributed_c10d"]._resolve_process_group(name)
    except Exception:
        return None


def _find_callers_group() -> Any:
    """Functional collectives are differentiated by functions that wait for collectives of their own."""
    frame = sys._getframe(1).f_back  # Of whoever calls the wrapper.
    if frame is None or frame.f_globals.get("__name__") != _FUNCTIONAL or "ctx" not in frame.f_locals:
        return None
    group = frame.f_locals.get("group_name")
    return _find_group(group) if isinstance(group, str) else group


def _list_ranks(ranks: list[int]) -> str:
    steps = {ranks[i + 1] - ranks[i] for i in range(len(ranks) - 1)}
    if len(ranks) > 2 and len(steps) == 1:
        return f"{ranks[0]}-{ranks[-1]}" + ("" if steps == {1} else f":{steps.pop()}")
    listed = ",".join(map(str, ranks))
    return listed if len(ranks) <= _MOST_RANKS_NAMED else f"{ranks[0]}-{ranks[-1]}#{zlib.crc32(listed.encode()):08x}"


def _compiles_autograd() -> bool:
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


def _install(torch: Any) -> None:
    """`torch` has just been imported."""
    global _hooks, _is_compiling, _is_cuda, _modules
    _hooks = _load_hooks()
    _is_cuda = torch.cuda.is_initialized
    waits = _Waits(torch)
    _modules = _Modules(torch, waits)
    _hooks.configure(
        begin=_begin_recording,
        lost=_switch_off,
        stepped=_stepped,
        each_second=lambda: _torch_memory.tell(_hooks.count),
        missed=waits.missed,
        choose_module=_modules.choose,
        name_group=_name_group,
        find_group=_find_group,
        find_callers_group=_find_callers_group,
        current_task=torch._C._current_graph_task_id,
        wants_gradients=torch.is_grad_enabled,
        is_on_device=_is_cuda,
        queue_callback=torch.autograd.Variable._execution_engine.queue_callback,
    )
    if getattr(sys.modules.get("lockstep._trace"), "marks_steps", False):
        leave_steps()
    _modules.start_finding()
    loaders = importlib.import_module("torch.utils.data.dataloader")
    _wrap(loaders.DataLoader, "__iter__", _INPUT)  # Starts the workers.
    _wrap(loaders._BaseDataLoaderIter, "__next__", _INPUT)
    _wrap(torch, "save", _CHECKPOINT)
    c10d = getattr(torch._C, "_distributed_c10d", None)
    waiting = [(getattr(c10d, "Work", None), "wait", _WORK_WAIT), (_modules.ddp, "_sync_buffers", _BUFFER_WAIT)]
    groups = getattr(c10d, "ProcessGroup", None)
    waiting += [(groups, name, _ISSUE) for name in _COLLECTIVES]
    waiting += [(groups, name, _ISSUE_TO_ONE) for name in _ONE_TO_ONE]
    for owner, name, kind in waiting:
        if hasattr(owner, name):
            _wrap(owner, name, _COMM, kind)
    _boundaries.when_imported(_FUNCTIONAL, _guarded(_install_functional))
    gc.callbacks.append(_hooks.collects)
    _boundaries.watch(_listener(), _hooks)
    _is_compiling = _boundaries.is_compiling


def _install_shards(module: Any) -> None:
    """FSDP's second form: its gathers of parameters, for which a device's stream waits; on the CPU it is a Work that is waited for."""
    _wrap(module.FSDPParamGroup, "wait_for_unshard", _COMM, _SHARD_WAIT)


def _install_functional(module: Any) -> None:
    find_group = "_resolve_group" if hasattr(module, "_resolve_group") else "_resolve_group_name"  # An older PyTorch's.
    for name, kind in ((find_group, _GROUP_OF_TENSOR), ("_maybe_wrap_tensor", _ISSUE_TENSOR), ("wait_tensor", _TENSOR_WAIT)):
        if hasattr(module, name):
            _wrap(module, name, _COMM, kind)


def _install_checkpoints(module: Any) -> None:
    for name in ("save", "async_save"):
        if hasattr(module, name):
            _wrap(module, name, _CHECKPOINT)


def _install_safetensors(module: Any) -> None:
    if hasattr(module, "serialize_file"):  # Which all ways to a file come to, under whatever name they were imported.
        _wrap(module, "serialize_file", _CHECKPOINT)
