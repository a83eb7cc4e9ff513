"""Where the steps of a training job end that says nothing itself, for marks (_steps.py) and captures (_capture.py).

A plain file of its own that needs Python's standard library alone. Nothing happens before the job imports torch; then PyTorch's own
global hooks of every torch.optim.Optimizer are used, and the step of DeepSpeed's engine. A step ends when the optimizer that comes last in a turn of the training loop
has stepped, or its GradScaler has left it out. Code that torch.compile traces is left as it is.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Listener", "is_compiling", "watch", "when_imported"]

# So many turns alike say in which order several optimizers step.
_SAME_TURNS = 3
_MOST_OPTIMIZERS = 4096
_MOST_OPEN = 16
# A step in which another optimizer has made so many of its own was left by an exception.
_MOST_INNER = 8


class Listener:
    """Is told from the thread that trains. What it raises goes to the job: it has to keep its own failures to itself."""

    def before_optimizer(self) -> None:
        """An optimizer begins to step, called by no other."""

    def after_optimizer(self) -> None:
        """It has stepped, or was left by an exception and the next one begins."""

    def step_ended(self) -> None:
        """After that of the last optimizer."""

    def optimizer_is_new(self) -> None:
        """One has stepped that had not before."""

    def lost(self, why: BaseException | str) -> None:
        """Nothing more will be told."""


_listeners: list[Listener] = []
# What one of the listeners wants done in its place while one optimizer alone steps, alike each time, in one thread: `before_only`
# and `after_only` of an optimizer say whether they did it, `settle_on` whether they will; `unsettle` ends that and says whether the
# optimizer still steps.
_short_cut: Any = None
_settled: Any = None  # A weak reference to that optimizer.
_listening: list[Listener] = []  # The others.
_is_on = True
_is_installed = False
_finder: _Finder | None = None
_has_engines = False  # DeepSpeed is imported.


def watch(listener: Listener, short_cut: Any = None) -> None:
    """Adds one, for good."""
    global _is_installed, _short_cut
    _listeners.append(listener)
    if short_cut is None:
        _listening.append(listener)
    else:
        _short_cut = short_cut
    if not _is_installed:
        _is_installed = True
        when_imported("torch", _install)


def _says_no() -> bool:
    return False


# torch.compile traces what runs just now. Once torch is imported: PyTorch's own function, which it knows when it traces.
is_compiling: Callable[[], bool] = _says_no


def when_imported(name: str, call_back: Callable[[Any], None]) -> None:
    """Calls back once the module has been imported: now, where it is there. What fails is every listener's loss."""
    global _finder
    module = sys.modules.get(name)
    if module is not None:
        _call(call_back, module)
        return
    if _finder is None:
        _finder = _Finder()
        sys.meta_path.insert(0, _finder)
    _finder.wanted.setdefault(name, []).append(call_back)


def _call(call_back: Callable[[Any], None], module: Any) -> None:
    try:
        call_back(module)
    except Exception as error:
        _switch_off(error)


def _switch_off(why: BaseException | str) -> None:
    """Never again in this process."""
    global _is_on
    if _is_on:
        _is_on = False
        for listener in _listeners:
            listener.lost(why)


class _Finder:
    """Calls back after modules have been imported. What finds and loads them stays whoever it was."""

    def __init__(self) -> None:
        self.wanted: dict[str, list[Callable[[Any], None]]] = {}
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
            for call_back in self.wanted.pop(name, []):
                _call(call_back, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # A loader without a dictionary: not PyTorch as anybody installs it.
            pass


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
        self.alone = 0  # Turns in which no other has stepped, up to now.

    def end(self, optimizer: Any) -> bool:
        """It has stepped. Whether the step ends with it."""
        last = self.last()
        if last is None or last is optimizer:
            if last is None:  # The first of all, or that one is gone.
                self.last, self.alone = weakref.ref(optimizer), 0
            if self.has_counted:
                self.has_counted = False
                self.others = []
                return False
            self.learn()
            return True
        number, self.alone = id(optimizer), 0
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
            self.alone += not others
            return
        self.same = self.same + 1 if others == self.before else 1
        self.before = others
        if self.same >= _SAME_TURNS and self.newest() is not None:
            self.last, self.before, self.has_counted, self.may_learn = self.newest, [], True, False


_turns = _Turns()
_stepped = 0
_known: weakref.WeakSet[Any] = weakref.WeakSet()  # Optimizers.


class _Open(threading.local):
    """Optimizers that step just now in this thread: one may call another."""

    def __init__(self) -> None:
        self.optimizers: list[int] = []
        self.inner: dict[int, int] = {}  # How often another has stepped within the first of them.
        self.is_in_engine = False


_open = _Open()


def _before(optimizer: Any, _arguments: Any, _options: Any) -> None:
    if is_compiling() or (_has_engines and _open.is_in_engine):
        return
    if _settled is not None:
        if _short_cut.before_only(optimizer):
            for listener in _listening:
                listener.before_optimizer()
            return
        _unsettle()
    if not _is_on:
        return
    number = id(optimizer)
    steps = _open.optimizers
    if steps and (len(steps) >= _MOST_OPEN or number in steps or _open.inner.get(number, 0) >= _MOST_INNER):
        _close_all(steps)  # A step that was left by an exception.
    steps.append(number)
    if len(steps) == 1:
        for listener in _listeners:
            listener.before_optimizer()


def _after(optimizer: Any, _arguments: Any, _options: Any) -> None:
    global _stepped
    if is_compiling() or (_has_engines and _open.is_in_engine):
        return
    if _settled is not None:
        if _short_cut.after_only(optimizer):
            for listener in _listening:
                listener.after_optimizer()
                listener.step_ended()
            return
        _unsettle()
    if not _is_on:
        return
    number = id(optimizer)
    steps = _open.optimizers
    if steps and steps[0] == number:
        _close_all(steps)
    elif number in steps:
        del steps[steps.index(number) :]
    if steps and len(_open.inner) < _MOST_OPTIMIZERS:
        _open.inner[number] = _open.inner.get(number, 0) + 1
    _stepped += 1
    if not steps:
        _end_turn(optimizer)


def _unsettle() -> None:
    global _settled
    optimizer, _settled, _turns.alone = _settled(), None, 0
    if _short_cut.unsettle() and optimizer is not None:
        _open.optimizers.append(id(optimizer))


def _close_all(steps: list[int]) -> None:
    steps.clear()
    _open.inner.clear()
    for listener in _listeners:
        listener.after_optimizer()


def _end_turn(optimizer: Any) -> None:
    global _settled
    try:
        is_new = optimizer not in _known
        if is_new:
            _known.add(optimizer)
        is_end = _turns.end(optimizer)
    except Exception as error:  # An optimizer that no weak reference can be had of, say.
        _switch_off(error)
        return
    if is_new:
        for listener in _listeners:
            listener.optimizer_is_new()
    if not is_end:
        return
    for listener in _listeners:
        listener.step_ended()
    if _turns.alone >= _SAME_TURNS and _short_cut is not None:
        reference = weakref.ref(optimizer)
        _settled = reference if _short_cut.settle_on(reference) else None


def _install(torch: Any) -> None:
    """`torch` has just been imported."""
    global is_compiling
    compiler = getattr(torch, "compiler", None)
    is_compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", None) or _says_no
    optimizers = importlib.import_module("torch.optim.optimizer")
    if not hasattr(optimizers, "register_optimizer_step_post_hook"):
        _switch_off(f"PyTorch {torch.__version__} has no hooks for optimizers; 2.0 and later have")
        return
    optimizers.register_optimizer_step_pre_hook(_before)
    optimizers.register_optimizer_step_post_hook(_after)
    _watch_scaler(torch)
    when_imported("deepspeed.runtime.engine", _watch_engine)


def _watch_scaler(torch: Any) -> None:
    """A GradScaler leaves an optimizer's step out when gradients have overflown: the turn ends all the same."""
    scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    original = scaler.step

    def step(self: Any, optimizer: Any, *arguments: Any, **options: Any) -> Any:
        if _settled is not None:
            _unsettle()
        _turns.alone, before = 0, _stepped
        result = original(self, optimizer, *arguments, **options)
        if _is_on and _stepped == before and not _open.optimizers:
            _end_turn(optimizer)
        return result

    scaler.step = functools.wraps(original)(step)


def _watch_engine(module: Any) -> None:
    """DeepSpeed's engine steps its optimizer once for each group of parameters, or leaves it out: all of that is one step."""
    global _has_engines
    engine = module.DeepSpeedEngine
    original = engine._take_model_step

    def take_model_step(self: Any, *arguments: Any, **options: Any) -> Any:
        if is_compiling() or _open.is_in_engine:
            return original(self, *arguments, **options)
        _before(self, None, None)
        _open.is_in_engine = True
        try:
            return original(self, *arguments, **options)
        finally:
            _open.is_in_engine = False
            _after(self, None, None)

    engine._take_model_step = functools.wraps(original)(take_model_step)
    _has_engines = True
