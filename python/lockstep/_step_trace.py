"""One trace of the thread that trains, from the end of a step to the end of another, by torch.profiler: for _capture.py.

A plain file that needs Python's standard library and PyTorch. What PyTorch does not survive is kept from happening here:

- two profilers at a time, in whatever threads, counting one that is only prepared: `Profilers` knows who has the one;
- a record_function that is open when its profiler stops, and ends within the next one: the trace ends those before it stops.

Nothing of it may be called within an operator (`is_between_operators`).
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Profilers", "Request", "StepTrace", "is_between_operators", "unlink"]

_MOST_INTERRUPTIONS = 3
# So long another thread's profiler waits for ours to be stopped, where its step ends.
_GIVE_WAY_S = 120.0


class Request:
    """A configuration text, in the words of Kineto's that lockstepd writes. Raises ValueError."""

    def __init__(self, text: str) -> None:
        values = {}
        for line in text.splitlines():
            key, equals, value = line.partition("=")
            if equals:
                values[key.strip()] = value.strip()

        def number(name: str) -> int:
            value = int(values.get(name, "0"))
            if not 0 <= value < 1 << 62:
                raise ValueError(f"{name} is out of range")
            return value

        def truth(name: str) -> bool:
            return values.get(name, "false").lower() == "true"

        self.id = values.get("REQUEST_TRACE_ID", "")
        self.start_s = number("PROFILE_START_TIME") / 1e3  # 0: as soon as it can.
        self.duration_s = number("ACTIVITIES_DURATION_MSECS") / 1e3
        self.warmup_s = float(number("ACTIVITIES_WARMUP_PERIOD_SECS"))
        self.steps = number("ACTIVITIES_ITERATIONS")
        self.start_step = number("PROFILE_START_ITERATION")
        self.roundup = max(number("PROFILE_START_ITERATION_ROUNDUP"), 1)
        self.warmup_steps = max(number("ACTIVITIES_WARMUP_ITERATIONS"), 1)
        activities = values.get("ACTIVITY_TYPES", "").split(",")
        self.options = {"record_shapes": truth("PROFILE_REPORT_INPUT_SHAPES"), "profile_memory": truth("PROFILE_PROFILE_MEMORY"),
                        "with_stack": truth("PROFILE_WITH_STACK") or "python_function" in activities,
                        "with_flops": truth("PROFILE_WITH_FLOPS"), "with_modules": truth("PROFILE_WITH_MODULES")}
        log_file = values.get("ACTIVITIES_LOG_FILE", "")
        if not self.id or not log_file.startswith("/") or ".json" not in log_file:
            raise ValueError("a request without a name, or without an absolute path for its trace")
        if self.duration_s <= 0 and self.steps <= 0:
            raise ValueError("a request for no time and no step")
        ending = ".pt.trace.json" if ".pt.trace.json" in log_file else ".json"
        self.final = log_file.replace(ending, f"_{os.getpid()}{ending}", 1)  # As Kineto names it.

    def first_step(self, next_step: int) -> int:
        """The number of the step to begin with, where `next_step` is the first that could be."""
        if self.start_step >= next_step:
            return self.start_step
        return -(-next_step // self.roundup) * self.roundup


class Profilers:
    """PyTorch has one profiler in a process, whatever thread it is in, and does not survive two: who has it."""

    def __init__(self, give_way: Callable[[], threading.Event | None]) -> None:
        self.give_way = give_way  # Ends ours, or says what to wait for until it has ended.
        self.lock = threading.RLock()
        self.job: set[int] = set()  # Threads in which the job has prepared or started one.
        self.ours = False
        self.our_thread = 0  # While it calls PyTorch for us.

    def watch(self, torch: Any) -> None:
        """Before the job can have one."""
        module = importlib.import_module("torch.autograd.profiler")
        for name, is_begin in (("_prepare_profiler", True), ("_enable_profiler", True), ("_disable_profiler", False)):
            setattr(module, name, self._wrap(getattr(module, name), is_begin))

    def _wrap(self, original: Callable[..., Any], is_begin: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            me = threading.get_ident()
            if self.our_thread == me:
                return original(*arguments, **options)
            if is_begin:
                self._let_job(me)
            has_ended = not is_begin
            try:
                return original(*arguments, **options)
            except BaseException:
                has_ended = True
                raise
            finally:
                if has_ended:
                    with self.lock:
                        self.job.discard(me)

        return functools.wraps(original)(call)

    def _let_job(self, thread: int) -> None:
        """Once ours has ended."""
        end_s = time.monotonic() + _GIVE_WAY_S
        while True:
            with self.lock:
                if not self.ours or time.monotonic() >= end_s:
                    self.job.add(thread)
                    return
            ended = self.give_way()
            if ended is None:
                end_s = 0.0
            else:
                ended.wait(1.0)

    def take(self) -> bool:
        """For ours. False: the job has one."""
        with self.lock:
            if self.job:
                self.job &= set(sys._current_frames())  # A thread that has ended takes its own with it.
            self.ours = not self.job
            return self.ours

    def call(self, function: Callable[[], None]) -> None:
        """Of PyTorch's profiler, for us."""
        self.our_thread = threading.get_ident()
        try:
            function()
        finally:
            self.our_thread = 0


class StepTrace:
    """Of the thread that makes it, from `prepare` to `finish` or `break_off`, each of which may raise anything that a signal's handler does."""

    def __init__(self, request: Request, profilers: Profilers) -> None:
        """The profiler has been taken; it is given back with the end."""
        self.request = request
        self.profilers = profilers
        self.thread = threading.get_ident()
        self.profile: Any = None
        self.is_recording = False
        self.is_paused = False
        self.first_step = self.end_step = -1  # The first that is in it, and the first after it.
        self.annotation: Any = None
        self.open: list[Any] = []  # Scopes of record_function.
        self.undo: list[Callable[[], None]] = []

    @property
    def has_device(self) -> bool:
        return self.profile is not None and len(self.profile.activities) > 1

    def prepare(self) -> None:
        if self.request.options["with_stack"] and sys.getprofile() is not None:
            raise RuntimeError("Python stacks were asked for, and the program has a profile function of its own")
        # As Kineto does: lockstepd sees by it that the request is being served.
        sign = self.request.final + ".tmp"
        os.close(os.open(sign, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
        self.undo.append(functools.partial(unlink, sign))
        torch = sys.modules["torch"]
        profiler = importlib.import_module("torch.profiler")
        wanted = [profiler.ProfilerActivity.CPU]
        for name, device in (("CUDA", torch.cuda), ("XPU", getattr(torch, "xpu", None))):
            activity = getattr(profiler.ProfilerActivity, name, None)
            if activity is not None and device is not None and device.is_available() and device.is_initialized():
                wanted.append(activity)
        self.profile = profiler.profile(activities=wanted, **self.request.options)
        self.profilers.call(self.profile.prepare_trace)

    def begin(self, step: int) -> None:
        self.profilers.call(self.profile.start_trace)
        self.is_recording = True
        self.first_step = step
        self.profile.add_metadata_json("lockstep_first_step", str(step))
        self._watch_scopes()
        self.annotate(step)

    def _watch_scopes(self) -> None:
        """PyTorch writes the end of a scope into what the profiler has freed, where it has been stopped in between."""
        scope = importlib.import_module("torch.autograd.profiler").record_function
        enter, leave = scope.__enter__, scope.__exit__

        @functools.wraps(enter)
        def entered(owner: Any) -> Any:
            result = enter(owner)
            if threading.get_ident() == self.thread and self.is_recording:
                self.open.append(owner)
            return result

        @functools.wraps(leave)
        def left(owner: Any, *arguments: Any) -> Any:
            if self.open and threading.get_ident() == self.thread:
                for at in range(len(self.open) - 1, -1, -1):
                    if self.open[at] is owner:
                        del self.open[at]
                        break
            return leave(owner, *arguments)

        self.patch(scope, "__enter__", entered)
        self.patch(scope, "__exit__", left)

    def patch(self, owner: Any, name: str, value: Any) -> None:
        """Until the end."""
        self.undo.append(functools.partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def annotate(self, step: int) -> None:
        self._end_annotation()
        annotation = sys.modules["torch.profiler"].record_function(f"ProfilerStep#{step}")
        annotation.__enter__()
        self.annotation = annotation

    def _end_annotation(self) -> None:
        annotation, self.annotation = self.annotation, None
        if annotation is not None:
            annotation.__exit__(None, None, None)

    def _end_scopes(self) -> None:
        """Those of the job too. What ends one once more does nothing."""
        self._end_annotation()
        while self.open:
            scope = self.open.pop()
            scope.__exit__(None, None, None)
            scope.run_callbacks_on_exit = False

    def end(self, step: int) -> None:
        """Nothing of what follows is in the trace; the profiler goes on."""
        if self.end_step < 0:
            self.end_step = step
        self._end_scopes()
        self.pause()

    def pause(self) -> None:
        """Nothing more is recorded. This, and only this, may be called at any moment of the thread's."""
        if not self.is_paused:
            self.is_paused = True
            sys.modules["torch"].autograd._enable_record_function(False)

    def _resume(self) -> None:
        if self.is_paused:
            self.is_paused = False
            sys.modules["torch"].autograd._enable_record_function(True)

    def finish(self) -> None:
        """After `end`: the file is there, whole, under its final name. Raises OSError."""
        self.profile.add_metadata_json("lockstep_step_count", str(self.end_step - self.first_step))
        self.profilers.call(self.profile.stop_trace)
        self._resume()
        written = self.request.final + ".part"
        try:
            self.profile.export_chrome_trace(written)
            if not os.path.exists(written):
                raise OSError("PyTorch could not write its trace: the disk may be full")
            with open(written, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - 64, 0))
                if not file.read().rstrip().endswith(b"}"):
                    raise OSError(f"PyTorch wrote {size} bytes of its trace and no end: the disk may be full")
            os.rename(written, self.request.final)
        finally:
            unlink(written)
            unlink(written + ".tmp")  # Of Kineto's, where it could not write.
        self._let_go()

    def break_off(self) -> None:
        """Without a file. Whatever state it is in."""
        raised: BaseException | None = None
        for _ in range(_MOST_INTERRUPTIONS):
            try:
                self._stop()
                break
            except Exception:
                break
            except BaseException as error:  # A signal's handler: PyTorch must not be left with a profiler that runs.
                raised = error
        self._let_go()
        if raised is not None:
            raise raised

    def _stop(self) -> None:
        self._end_scopes()
        if self.profile is not None:
            is_enabled = sys.modules["torch"].autograd._profiler_enabled
            if not self.is_recording and not is_enabled():
                self.profilers.call(self.profile.start_trace)  # What is prepared has no other end.
            if is_enabled():
                self.profilers.call(self.profile.stop_trace)
        self._resume()

    def _let_go(self) -> None:
        self._resume()
        for undo in reversed(self.undo):
            undo()
        self.undo.clear()
        self.profilers.ours = False

    def abandon(self) -> None:
        """At the process's end, where a device would have to be waited for: a rank that fails would never end."""
        unlink(self.request.final + ".tmp")

    def forget(self) -> None:
        """In a forked child, where the profiler is on as in its parent, and nobody will stop it."""
        if self.is_recording and self.thread == threading.get_ident():
            sys.modules["torch"].autograd._enable_record_function(False)
            sys.setprofile(None)


def is_between_operators() -> bool:
    """Not within backward, which runs hooks and optimizers where the job wants it so, and not while a CUDA graph is captured."""
    torch = sys.modules["torch"]
    if torch._C._current_graph_task_id() != -1:
        return False
    return not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
