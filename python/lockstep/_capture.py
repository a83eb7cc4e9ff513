"""Traces this process when `lockstep capture` asks, from the end of one training step to the end of another, in the thread that trains.

`lockstep run` enables it in every Python process of a job; ``lockstep.enable_captures()`` does the same. A plain file that needs Python's
standard library and _boundaries.py beside it, and PyTorch once a trace is asked for. From the first step on a daemon thread asks the
node's lockstepd for work each second, over the sockets that Kineto uses (docs/formats/kineto-ipc.md, "lockstep's own tracer").

Why not Kineto's own: it starts and stops a trace from a thread of its own while operators run in others, and PyTorch then uses
callbacks' state that has been freed (docs/capture.md). torch.profiler records the thread that starts and stops it, and that thread is
between two operators then. What else PyTorch does not survive is kept from happening here:

- two profilers at a time, in whatever threads, counting one that is only prepared: ours waits for the job's, and ends when that begins;
- a record_function that is open when its profiler stops, and ends within the next one: ours ends those before it stops;
- a stop within an operator: none where a graph runs backward or a stream is captured.

The job comes first: whatever goes wrong here ends the trace and is told to lockstepd; signals' handlers raise into the job as they would
have.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import importlib.util
import os
import socket
import struct
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

__all__ = ["enable_captures"]

_POLL_TAG = b"lsreq"
_STOP_TAG = b"lsstop"
_HEADER = struct.Struct("<Q32s")
_POLL = struct.Struct("<iiq")
_FREE, _STEPS = 2, 4  # Bits of a poll's mask: could begin now; steps are ending.
_PERIOD_S = 1.0
_LONE_PERIOD_S = 15.0  # Where nobody has answered for as long: Dynolog's daemon, or none.
_MOST_ANCESTORS = 10
_MOST_DATAGRAM_BYTES = 65_536
_MOST_NOTE_CHARACTERS = 400
_MOST_SERVED = 64
# Without a step for so long nothing could be traced; nor after three times what the last one took.
_STALE_S = 60.0
# What comes so long after a window's end without a step, such as an evaluation, is not recorded.
_GRACE_S = 10.0
# Ranks end a window of time at most a step apart. None of them writes while another may still wait for it in a step that is traced.
_QUIET_STEPS = 2
_MOST_INTERRUPTIONS = 3
# So long another thread's profiler waits for ours to be stopped, where its step ends.
_GIVE_WAY_S = 120.0

_tracer: _Tracer | None = None


def enable_captures() -> bool:
    """Lets ``lockstep capture`` trace this process by its steps. Call it once, before or after torch is imported; under `lockstep run` it
    has been called. Costs about a microsecond a step, and a thread that wakes each second once the first step has ended. False: it
    could not be done; a training job is never stopped by it.

    A step ends when the last optimizer has stepped. A process that steps no optimizer is traced by Kineto alone, as before."""
    global _tracer
    try:
        if _tracer is None:
            boundaries = _beside("_boundaries")
            _tracer = _Tracer(boundaries.is_compiling)
            boundaries.watch(_listener(boundaries, _tracer))
            boundaries.when_imported("torch", _tracer.profilers.watch)
            os.register_at_fork(after_in_child=_tracer.forget)
            atexit.register(_tracer.at_exit)
        return _tracer.is_on
    except Exception:  # Whatever it is, the job matters more.
        return False


def _beside(name: str) -> Any:
    """The module of the file beside this one, which may be no package's."""
    full = "lockstep." + name
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[full] = module
    return sys.modules[full]


def _listener(boundaries: Any, tracer: _Tracer) -> Any:
    class Steps(boundaries.Listener):  # type: ignore[misc]
        step_ended = staticmethod(tracer.step_ended)

        def lost(self, why: BaseException | str) -> None:
            tracer.is_on = False

    return Steps()


class _Request:
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


class _Trace:
    """What was asked for last, on its way to its file."""

    def __init__(self, request: _Request) -> None:
        self.request = request
        self.is_unwanted = ""  # Why it is to be broken off: set by any thread, under the tracer's lock.
        self.is_begun = False  # Something came of it. Under the tracer's lock, as the next.
        self.thread = 0  # That trains, once it has begun this. All that follows is that thread's.
        self.profile: Any = None  # Once it is being prepared.
        self.is_recording = False
        self.prepared_s = 0.0  # Monotonic, as all that follow.
        self.begun_s = 0.0
        self.last_s = 0.0  # A step that ends later is not waited for.
        self.first_step = -1  # By steps: the one to begin with, once that is known. By time: the one that it began with.
        self.end_step = -1  # The first that is not in it.
        self.is_paused = False
        self.annotation: Any = None
        self.open: list[Any] = []  # Scopes of record_function.
        self.undo: list[Callable[[], None]] = []


class _Profilers:
    """PyTorch has one profiler in a process, whatever thread it is in, and does not survive two: who has it."""

    def __init__(self, give_way: Callable[[], threading.Event | None]) -> None:
        self.give_way = give_way  # Ends ours, or says what to wait for until it has ended.
        self.lock = threading.Lock()
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


class _Tracer:
    """Everything of this process. `step_ended` and what it calls run in the thread that trains, `_poll` in one of its own."""

    def __init__(self, is_compiling: Callable[[], bool]) -> None:
        self.is_on = True  # Requests can be served.
        self.is_compiling = is_compiling
        self.steps = 0  # That have ended: the number of the one under way.
        self.step_s = 0.0  # What the last one took.
        self.ended_s = 0.0  # When it ended, monotonic.
        self.trace: _Trace | None = None
        self.ended = threading.Event()  # The trace that is under way has.
        self.inside = 0  # Thread in code of ours, which a signal's handler or a profiler's start may call again.
        self.lock = threading.Lock()  # Of `trace`, its `thread` and `is_unwanted`, and `note`; held for assignments only.
        self.note = ""  # For lockstepd: of which request, "waits" or "refused", why.
        self.served: list[str] = []  # Requests that were taken, the latest ones.
        self.profilers = _Profilers(self._give_way)
        self.socket: socket.socket | None = None
        self.socket_path = ""
        self.pid = os.getpid()

    # In the thread that trains.

    def step_ended(self) -> None:
        if self.is_compiling():
            return
        now_s = time.monotonic()
        if self.steps == 0 and self.is_on:
            self._start_polling()
        self.step_s = now_s - self.ended_s if self.steps else 0.0
        self.ended_s = now_s
        self.steps += 1
        if self.trace is not None:
            self._advance(self._go_on)

    def _advance(self, move: Callable[[_Trace], None]) -> None:
        me = threading.get_ident()
        with self.lock:
            trace = self.trace
            if self.inside or trace is None or trace.thread not in (0, me):
                return
            trace.thread = self.inside = me
        try:
            move(trace)
        except BaseException as error:
            self._break_off(trace, f"{type(error).__name__}: {error}")
            if not isinstance(error, Exception):  # A signal's handler, or the job's end: not ours to keep.
                raise
        finally:
            with self.lock:
                self.inside = 0
                if not trace.is_begun:
                    trace.thread = 0  # Another may be the one.

    def _go_on(self, trace: _Trace) -> None:
        """A step has just ended, and none of the next has been done."""
        request = trace.request
        torch = sys.modules["torch"]
        if not self.is_on:
            trace.is_unwanted = trace.is_unwanted or "the tracer was switched off"
        if not _is_between_operators(torch):
            if trace.profile is None:
                self.is_on = False
                self._break_off(trace, "optimizers step within backward, where no trace can begin or end")
            return
        if trace.is_unwanted:
            self._break_off(trace, trace.is_unwanted)
        elif trace.profile is None:
            if self._is_time_to_prepare(trace):
                self._prepare(trace, torch)
        elif not trace.is_recording:
            if self._is_time_to_begin(trace):
                self._begin(trace)
        elif trace.end_step >= 0:
            if self.steps >= trace.end_step + _QUIET_STEPS:
                self._finish(trace)
        elif self._is_over(trace):
            trace.end_step = self.steps
            self._pause(trace)
            if request.steps:  # All ranks end with the same one.
                self._finish(trace)
        else:
            self._annotate(trace)

    def _is_time_to_prepare(self, trace: _Trace) -> bool:
        request = trace.request
        if request.steps:
            if trace.first_step < 0:
                trace.first_step = request.first_step(self.steps + 1)
            return self.steps + request.warmup_steps >= trace.first_step
        # The next look is a step away.
        return time.time() + 2 * self.step_s >= request.start_s - request.warmup_s

    def _is_time_to_begin(self, trace: _Trace) -> bool:
        request = trace.request
        if request.steps:
            return self.steps >= trace.first_step
        if request.start_s:
            return time.time() >= request.start_s
        # A device's tracing takes its time to be set up; on the CPU the step in between is enough.
        return len(trace.profile.activities) == 1 or time.monotonic() - trace.prepared_s >= request.warmup_s

    def _is_over(self, trace: _Trace) -> bool:
        if trace.request.steps:
            return self.steps >= trace.first_step + trace.request.steps
        return time.monotonic() - trace.begun_s >= trace.request.duration_s

    def _prepare(self, trace: _Trace, torch: Any) -> None:
        if trace.request.options["with_stack"] and sys.getprofile() is not None:
            raise RuntimeError("Python stacks were asked for, and the program has a profile function of its own")
        with self.lock:
            if trace.is_unwanted:  # In this moment.
                return
            trace.is_begun = self.profilers.take()
        if not trace.is_begun:
            self._say(trace.request, "waits", "until the torch.profiler that the job itself has started ends")
            return
        trace.undo.append(self._give_profiler_back)
        # As Kineto does: lockstepd sees by it that the request is being served.
        os.close(os.open(trace.request.final + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
        trace.undo.append(functools.partial(_unlink, trace.request.final + ".tmp"))
        profiler = importlib.import_module("torch.profiler")
        wanted = [profiler.ProfilerActivity.CPU]
        for name, device in (("CUDA", torch.cuda), ("XPU", getattr(torch, "xpu", None))):
            activity = getattr(profiler.ProfilerActivity, name, None)
            if activity is not None and device is not None and device.is_available() and device.is_initialized():
                wanted.append(activity)
        trace.profile = profiler.profile(activities=wanted, **trace.request.options)
        self._call(trace.profile.prepare_trace)
        trace.prepared_s = time.monotonic()

    def _call(self, function: Callable[[], None]) -> None:
        """Of PyTorch's profiler, for us."""
        self.profilers.our_thread = threading.get_ident()
        try:
            function()
        finally:
            self.profilers.our_thread = 0

    def _give_profiler_back(self) -> None:
        self.profilers.ours = False
        self.ended.set()

    def _begin(self, trace: _Trace) -> None:
        self._call(trace.profile.start_trace)
        trace.is_recording = True
        trace.begun_s = time.monotonic()
        trace.first_step = self.steps
        request = trace.request
        trace.last_s = trace.begun_s + 2 * (request.duration_s or request.steps * self.step_s) + 3 * self.step_s + _GRACE_S
        trace.profile.add_metadata_json("lockstep_first_step", str(self.steps))
        self._watch_scopes(trace)
        self._watch_batches(trace)
        self._annotate(trace)

    def _watch_scopes(self, trace: _Trace) -> None:
        """PyTorch writes the end of a scope into what the profiler has freed, where it has been stopped in between."""
        scope = importlib.import_module("torch.autograd.profiler").record_function
        enter, leave = scope.__enter__, scope.__exit__

        @functools.wraps(enter)
        def entered(self: Any) -> Any:
            result = enter(self)
            if threading.get_ident() == trace.thread and trace.is_recording:
                trace.open.append(self)
            return result

        @functools.wraps(leave)
        def left(self: Any, *arguments: Any) -> Any:
            if trace.open and threading.get_ident() == trace.thread:
                for at in range(len(trace.open) - 1, -1, -1):
                    if trace.open[at] is self:
                        del trace.open[at]
                        break
            return leave(self, *arguments)

        self._patch(trace, scope, "__enter__", entered)
        self._patch(trace, scope, "__exit__", left)

    def _watch_batches(self, trace: _Trace) -> None:
        """Where no step ends for long, the next batch that the thread fetches ends the trace."""
        iterator = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
        original = iterator.__next__

        @functools.wraps(original)
        def fetch(*arguments: Any) -> Any:
            if (time.monotonic() > trace.last_s or trace.is_unwanted) and self.trace is trace:
                self._advance(self._cut)
            return original(*arguments)

        self._patch(trace, iterator, "__next__", fetch)

    @staticmethod
    def _patch(trace: _Trace, owner: Any, name: str, value: Any) -> None:
        trace.undo.append(functools.partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _cut(self, trace: _Trace) -> None:
        if not _is_between_operators(sys.modules["torch"]):
            return
        if trace.is_unwanted:
            self._break_off(trace, trace.is_unwanted)
        else:
            self._finish(trace)

    def _annotate(self, trace: _Trace) -> None:
        self._end_scope(trace)
        annotation = sys.modules["torch.profiler"].record_function(f"ProfilerStep#{self.steps}")
        annotation.__enter__()
        trace.annotation = annotation

    def _end_scope(self, trace: _Trace) -> None:
        annotation, trace.annotation = trace.annotation, None
        if annotation is not None:
            annotation.__exit__(None, None, None)

    def _end_scopes(self, trace: _Trace) -> None:
        """Those of the job too. What ends one once more does nothing."""
        self._end_scope(trace)
        while trace.open:
            scope = trace.open.pop()
            scope.__exit__(None, None, None)
            scope.run_callbacks_on_exit = False

    def _pause(self, trace: _Trace) -> None:
        """Nothing more is recorded, and the profiler goes on."""
        self._end_scopes(trace)
        if not trace.is_paused:
            trace.is_paused = True
            sys.modules["torch"].autograd._enable_record_function(False)

    def _resume(self, trace: _Trace) -> None:
        if trace.is_paused:
            trace.is_paused = False
            sys.modules["torch"].autograd._enable_record_function(True)

    def _finish(self, trace: _Trace) -> None:
        if trace.end_step < 0:
            trace.end_step = self.steps
        self._pause(trace)
        trace.profile.add_metadata_json("lockstep_step_count", str(trace.end_step - trace.first_step))
        self._call(trace.profile.stop_trace)
        self._resume(trace)
        written = trace.request.final + ".part"
        try:
            trace.profile.export_chrome_trace(written)
            if not os.path.exists(written):
                raise OSError("PyTorch could not write its trace: the disk may be full")
            with open(written, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - 64, 0))
                if not file.read().rstrip().endswith(b"}"):
                    raise OSError(f"PyTorch wrote {size} bytes of its trace and no end: the disk may be full")
            os.rename(written, trace.request.final)
        finally:
            _unlink(written)
            _unlink(written + ".tmp")  # Of Kineto's, where it could not write.
        self._let_go(trace)

    def _break_off(self, trace: _Trace, why: str) -> None:
        """Without a file. Whatever state it is in."""
        self._say(trace.request, "refused", why)
        raised: BaseException | None = None
        for _ in range(_MOST_INTERRUPTIONS):
            try:
                self._stop_profiler(trace)
                break
            except Exception:
                break
            except BaseException as error:  # A signal's handler: PyTorch must not be left with a profiler that runs.
                raised = error
        self._let_go(trace)
        if raised is not None:
            raise raised

    def _stop_profiler(self, trace: _Trace) -> None:
        self._end_scopes(trace)
        if trace.profile is not None:
            is_enabled = sys.modules["torch"].autograd._profiler_enabled
            if not trace.is_recording and not is_enabled():
                self._call(trace.profile.start_trace)  # What is prepared has no other end.
            if is_enabled():
                self._call(trace.profile.stop_trace)
        self._resume(trace)

    def _let_go(self, trace: _Trace) -> None:
        self._resume(trace)
        for undo in reversed(trace.undo):
            undo()
        trace.undo.clear()
        with self.lock:
            if self.trace is trace:
                self.trace = None

    def _say(self, request: _Request, state: str, why: str) -> None:
        with self.lock:
            self.note = f"{request.id} {state} {' '.join(why.split())[:_MOST_NOTE_CHARACTERS]}"

    def _give_way(self) -> threading.Event | None:
        """The job starts a profiler. None: ours has ended."""
        why = "the job started a torch.profiler of its own"
        trace = self.trace
        if trace is not None and trace.thread == threading.get_ident():  # In code of ours nothing can be done about it.
            self._advance(lambda trace: self._break_off(trace, why))
            return None
        self._take_back(trace, why)
        return self.ended

    def _take_back(self, trace: _Trace | None, why: str) -> None:
        with self.lock:
            if trace is not None and not trace.is_unwanted:
                trace.is_unwanted = why

    def at_exit(self) -> None:
        """What is recorded is written; a request that nothing came of is not served any more. A device is not waited for: a rank that
        fails would never end."""
        self.is_on = False
        trace = self.trace
        if trace is None or trace.thread != threading.get_ident() or os.getpid() != self.pid:
            return
        if trace.profile is None or len(trace.profile.activities) == 1:
            self._advance(self._finish if trace.is_recording else lambda trace: self._break_off(trace, "the process ends"))
        else:
            _unlink(trace.request.final + ".tmp")

    def forget(self) -> None:
        """In a forked child. The parent's trace is the parent's, and a child that trains has threads of its own."""
        trace, self.trace = self.trace, None
        if trace is not None and trace.is_recording and trace.thread == threading.get_ident():
            sys.modules["torch"].autograd._enable_record_function(False)  # The profiler is on in it, and nobody will stop it.
            sys.setprofile(None)
        self.lock, self.ended, self.profilers.lock = threading.Lock(), threading.Event(), threading.Lock()
        self.profilers.ours = False
        self.is_on = self.is_on and self.steps == 0
        self.inside = 0
        if self.socket is not None:
            self.socket.close()

    # In the thread that polls.

    def _start_polling(self) -> None:
        try:
            self.pid = os.getpid()
            threading.Thread(target=self._poll, name="lockstep-capture", daemon=True).start()
        except Exception:  # No more threads can be had.
            self.is_on = False

    def _poll(self) -> None:
        try:
            folder = os.environ.get("KINETO_IPC_SOCKET_DIR", "")
            own = f"dynoconfigclient{uuid.uuid4()}"
            daemon: str | bytes = f"{folder}/dynolog" if folder else b"\0dynolog\0"
            self.socket = link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            link.bind(f"{folder}/{own}" if folder else b"\0" + own.encode() + b"\0")
            if folder:
                self.socket_path = f"{folder}/{own}"
                os.chmod(self.socket_path, 0o666)
                atexit.register(self._remove_socket)
            pids = _own_pids()
        except Exception:
            self.is_on = False  # Nothing can be asked for.
            return
        heard_s = time.monotonic()
        while self.is_on or self.trace is not None:
            begin_s = time.monotonic()
            try:
                self._ask(link, daemon, pids)
                if self._listen(link, daemon, begin_s + (_PERIOD_S if begin_s - heard_s < _LONE_PERIOD_S else _LONE_PERIOD_S)):
                    heard_s = time.monotonic()
                self._watch_silence()
            except Exception:  # The next turn may be better.
                time.sleep(max(begin_s + _PERIOD_S - time.monotonic(), 0))
        self._ask(link, daemon, pids)  # What became of the last request.

    def _remove_socket(self) -> None:
        if os.getpid() == self.pid:
            _unlink(self.socket_path)

    def _ask(self, link: socket.socket, daemon: str | bytes, pids: list[int]) -> None:
        with self.lock:
            mask = _FREE if self._is_free() else 0
            note = self.note.encode(errors="replace")
        if self.is_on and (time.monotonic() - self.ended_s < max(_STALE_S, 3 * self.step_s) or not mask):
            mask |= _STEPS
        job = os.environ.get("SLURM_JOB_ID", "")
        body = _POLL.pack(mask, len(pids), int(job) if job.isdigit() and len(job) < 19 else 0)
        body += struct.pack(f"<{len(pids)}i", *pids) + note
        try:
            link.sendto(_HEADER.pack(len(body), _POLL_TAG) + body, socket.MSG_DONTWAIT, daemon)
        except OSError:
            pass  # No daemon, or one that is busy: at the next turn.

    def _is_free(self) -> bool:
        """Under the lock. A request that was taken back before anything came of it stands in nobody's way."""
        return self.trace is None or (bool(self.trace.is_unwanted) and not self.trace.is_begun)

    def _listen(self, link: socket.socket, daemon: str | bytes, until_s: float) -> bool:
        """Takes what comes until then. Whether lockstepd has said something."""
        has_heard = False
        while (left_s := until_s - time.monotonic()) > 0:
            link.settimeout(left_s)
            try:
                data, sender = link.recvfrom(_MOST_DATAGRAM_BYTES)
            except socket.timeout:
                break
            if sender != daemon or len(data) < _HEADER.size:
                continue
            size, tag = _HEADER.unpack_from(data)
            payload = data[_HEADER.size:]
            if size == len(payload):
                has_heard = True
                self._take(tag.rstrip(b"\0"), payload.decode(errors="replace"))
        return has_heard

    def _take(self, tag: bytes, text: str) -> None:
        if tag == _STOP_TAG:
            trace = self.trace
            if trace is not None and trace.request.id == text:
                self._take_back(trace, "it was taken back")
        elif tag == _POLL_TAG and text:
            try:
                request = _Request(text)
            except ValueError:
                return
            with self.lock:
                # A daemon that was started anew may not know that it was served.
                if self._is_free() and request.id not in self.served:
                    self.served = [*self.served[1 - _MOST_SERVED:], request.id]
                    self.note = ""
                    self.ended.clear()
                    self.trace = _Trace(request)

    def _watch_silence(self) -> None:
        """Where neither a step ends nor a batch is fetched, as in an evaluation by hand, a trace that is over or was taken back fills the
        memory. To stop it, its thread would have to be between two operators, which cannot be seen from here; but nothing more is
        recorded if that thread is told so, between any two bytecodes. Of the main thread alone."""
        trace = self.trace
        if (trace is None or not trace.is_recording or trace.is_paused or trace.thread != threading.main_thread().ident
                or (time.monotonic() <= trace.last_s and not trace.is_unwanted)):
            return
        ctypes.pythonapi.Py_AddPendingCall(_PAUSE, None)


def _pause(_: Any) -> int:
    """Between two bytecodes of the main thread."""
    try:
        tracer = _tracer
        trace = tracer.trace if tracer is not None else None
        if trace is not None and trace.is_recording and trace.thread == threading.get_ident() and not trace.is_paused:
            trace.is_paused = True
            sys.modules["torch"].autograd._enable_record_function(False)
    except Exception:
        pass
    return 0


_PAUSE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_pause)  # Kept: the interpreter holds no reference.


def _is_between_operators(torch: Any) -> bool:
    """Not within backward, which runs hooks and optimizers where the job wants it so, and not while a CUDA graph is captured."""
    if torch._C._current_graph_task_id() != -1:
        return False
    return not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _own_pids() -> list[int]:
    """Of this process and its ancestors, as it sees them."""
    pids = [os.getpid()]
    while len(pids) <= _MOST_ANCESTORS and pids[-1] > 1:
        try:
            with open(f"/proc/{pids[-1]}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
        if parent <= 0:
            break
        pids.append(parent)
    return pids


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
