"""Spans, steps, counters and requests of the training or serving process (docs/instrument.md).

Recorded when LOCKSTEP_TRACE=FOLDER is in the environment, else next to free. Needs neither NumPy nor PyTorch, and not the
analysis.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from . import _spans
from ._spans import counter, mark
from ._torch_memory import torch_memory

__all__ = ["Request", "counter", "linked_trace", "mark", "request", "stage", "step", "step_end", "steps", "torch_memory", "trace"]

# Of a step, as docs/stages.md has them; what is in none of them is `other`.
_STAGES = ("input", "h2d", "forward", "backward", "optimizer", "comm", "checkpoint", "validation", "gc")

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Item = TypeVar("_Item")


class trace(_spans.Scope):  # noqa: N801  (used like a function)
    """A span: ``with lockstep.trace("forward"):``, or ``@lockstep.trace("forward")`` over a function, coroutine or generator."""

    __slots__ = ()

    def __call__(self, function: _Function) -> _Function:
        number, begin, end = self.number, _spans.begin, _spans.end
        wrapper: Any

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*arguments: Any, **options: Any) -> Any:
                span = begin(number)
                try:
                    return await function(*arguments, **options)
                finally:
                    end(span)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*arguments: Any, **options: Any) -> Any:
                span = begin(number)
                try:
                    return (yield from function(*arguments, **options))
                finally:
                    end(span)

        else:

            @functools.wraps(function)
            def wrapper(*arguments: Any, **options: Any) -> Any:
                span = begin(number)
                try:
                    return function(*arguments, **options)
                finally:
                    end(span)

        return wrapper  # type: ignore[no-any-return]


def stage(name: str) -> trace:
    """A span that is a stage of the step: ``with lockstep.stage("h2d"):``. Within another stage its time counts for this one alone, also
    under `lockstep run --stages`. ``name``: input, h2d, forward, backward, optimizer, comm (waiting for a collective that all ranks end
    together), checkpoint, validation, gc; else ValueError."""
    if name not in _STAGES:
        raise ValueError(f"no stage is called {name!r}: {', '.join(_STAGES)}; trace() takes any name")
    return trace(name)


class linked_trace:  # noqa: N801
    """A span that is part of a trace over several processes. ``parent`` is a ``traceparent`` (W3C) that came with the work;
    ``.traceparent`` inside is what to send on."""

    __slots__ = ("_name", "_parent", "_span", "traceparent")

    def __init__(self, name: str, parent: str | None = None) -> None:
        self._name = name
        self._parent = parent
        self._span = 0
        self.traceparent = parent

    def __enter__(self) -> "linked_trace":
        self._span, self.traceparent = _spans.begin_linked(self._name, self._parent)
        return self

    def __exit__(self, *_: object) -> None:
        _spans.end(self._span)


class Request:
    """A request that is being served; see ``request``."""

    __slots__ = ("_ended", "_request", "traceparent")

    def __init__(self, kind: str, parent: str | None) -> None:
        self._ended = False
        self._request, self.traceparent = _spans.begin_request(kind, parent)

    def output(self, count: int = 1) -> None:
        """A piece of output (tokens) is there; the first tells the time to first output."""
        _spans.request_output(self._request, count)

    def end(self, failed: bool = False) -> None:
        """The request is done; once."""
        if not self._ended:
            self._ended = True
            _spans.request_end(self._request, failed)

    def __enter__(self) -> "Request":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end(failed=kind is not None)


def request(kind: str, parent: str | None = None) -> Request:
    """A request arrives: ``with lockstep.request("generate") as r: ... r.output()``; or keep it and call ``r.end()``. One that
    is left by an exception has failed."""
    return Request(kind, parent)


marks_steps = False


def _own_steps() -> None:
    """Those of `lockstep run --stages` end where the program marks its own."""
    global marks_steps
    marks_steps = True
    hooks = sys.modules.get("lockstep._steps")
    if hooks is not None:
        hooks.leave_steps()


def step(number: int | None = None) -> None:
    """A step begins here, and the one before it ends."""
    if not marks_steps:
        _own_steps()
    _spans.step(number)


def step_end() -> None:
    """The last step ends."""
    _spans.step_end()


def steps(batches: Iterable[_Item], *, memory: bool = True) -> Iterator[_Item]:
    """``for batch in lockstep.steps(loader):`` makes each turn of the loop a step, the wait for the next batch included. Where the
    program uses CUDA, the end of each has ``torch_memory()``, unless ``memory`` is false."""
    if not marks_steps:
        _own_steps()
    try:
        for batch in batches:
            _spans.step(None)
            yield batch
            if memory:
                torch_memory()
    finally:
        _spans.step_end()
