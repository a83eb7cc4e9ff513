"""Traces this process when `lockstep capture` asks, from the end of one training step to the end of another, in the thread that trains.

`lockstep run` enables it in every Python process of a job; ``lockstep.enable_captures()`` does the same. A plain file that needs Python's
standard library and, beside it, _boundaries.py and _step_trace.py; and PyTorch once a trace is asked for. From the first step on a daemon
thread asks the node's lockstepd for work each second, over the sockets that Kineto uses (docs/formats/kineto-ipc.md, "lockstep's own tracer").

Why not Kineto's own: it starts and stops a trace from a thread of its own while operators run in others, and PyTorch then uses
callbacks' state that has been freed (docs/capture.md). torch.profiler records the thread that starts and stops it, and that thread is
between two operators then.

The job comes first: whatever goes wrong here ends the trace and is told to lockstepd; a torch.profiler of the job's own goes before ours;
signals' handlers raise into the job as they would have.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import os
import socket
import struct
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

_tracer: _Tracer | None = None


def enable_captures() -> bool:
    """Lets ``lockstep capture`` trace this process by its steps. Call it once, before or after torch is imported; under `lockstep run` it
    has been called. Costs about a microsecond a step, and a thread that wakes each second once the first step has ended. False: it
    could not be done; a training job is never stopped by it.

    A step ends when the last optimizer has stepped. A process that steps no optimizer is traced by Kineto alone, as before."""
    global _tracer
    try:
        if _tracer is None:
            # By these names and not by `from`: under `lockstep run` they are there and the package is not.
            boundaries = importlib.import_module("._boundaries", __package__)
            _tracer = _Tracer(boundaries.is_compiling, importlib.import_module("._step_trace", __package__))
            boundaries.watch(_listener(boundaries, _tracer))
            boundaries.when_imported("torch", _tracer.profilers.watch)
            os.register_at_fork(after_in_child=_tracer.forget)
            atexit.register(_tracer.at_exit)
        return _tracer.is_on
    except Exception:  # Whatever it is, the job matters more.
        return False


def _listener(boundaries: Any, tracer: _Tracer) -> Any:
    class Steps(boundaries.Listener):  # type: ignore[misc]
        step_ended = staticmethod(tracer.step_ended)

        def lost(self, why: BaseException | str) -> None:
            tracer.is_on = False

    return Steps()


class _Job:
    """What was asked for last, on its way to its file."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.is_unwanted = ""  # Why it is to be broken off: set by any thread, under the tracer's lock.
        self.trace: Any = None  # A StepTrace, once something came of it: set under the tracer's lock. Of its thread alone, as what follows.
        self.start_step = -1  # By steps: the one to begin with, once that is known.
        self.prepared_s = 0.0  # Monotonic, as the next ones.
        self.begun_s = 0.0
        self.last_s = 0.0  # A step that ends later is not waited for.


class _Tracer:
    """Everything of this process. `step_ended` and what it calls run in the thread that trains, `_poll` in one of its own."""

    def __init__(self, is_compiling: Callable[[], bool], traces: Any) -> None:
        self.is_on = True  # Requests can be served.
        self.is_compiling = is_compiling
        self.traces = traces  # The module.
        self.profilers = traces.Profilers(self._give_way)
        self.steps = 0  # That have ended: the number of the one under way.
        self.step_s = 0.0  # What the last one took.
        self.ended_s = 0.0  # When it ended, monotonic.
        self.job: _Job | None = None
        self.job_ended = threading.Event()
        self.inside = 0  # Thread in code of ours, which a signal's handler or a profiler's start may call again.
        # Of `job`, its `trace` and `is_unwanted`, and `note`; held for assignments only, by a thread that a signal's handler may interrupt.
        self.lock = threading.RLock()
        self.note = ""  # For lockstepd: of which request, "waits" or "refused", why.
        self.served: list[str] = []  # Requests that were taken, the latest ones.
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
        if self.job is not None:
            self._advance(self._go_on)

    def _advance(self, move: Callable[[_Job], None]) -> None:
        me = threading.get_ident()
        with self.lock:
            job = self.job
            if self.inside or job is None or (job.trace is not None and job.trace.thread != me):
                return
            self.inside = me
        try:
            move(job)
        except BaseException as error:
            self._break_off(job, f"{type(error).__name__}: {error}")
            if not isinstance(error, Exception):  # A signal's handler, or the job's end: not ours to keep.
                raise
        finally:
            self.inside = 0

    def _go_on(self, job: _Job) -> None:
        """A step has just ended, and none of the next has been done."""
        trace = job.trace
        if not self.is_on:
            job.is_unwanted = job.is_unwanted or "the tracer was switched off"
        if not self.traces.is_between_operators():
            if trace is None:
                self.is_on = False
                self._break_off(job, "optimizers step within backward, where no trace can begin or end")
        elif job.is_unwanted:
            self._break_off(job, job.is_unwanted)
        elif trace is None:
            if self._is_time_to_prepare(job):
                self._prepare(job)
        elif not trace.is_recording:
            if self._is_time_to_begin(job):
                self._begin(job)
        elif trace.end_step >= 0:
            if self.steps >= trace.end_step + _QUIET_STEPS:
                self._finish(job)
        elif self._is_over(job):
            trace.end(self.steps)
            if job.request.steps:  # All ranks end with the same one.
                self._finish(job)
        else:
            trace.annotate(self.steps)

    def _is_time_to_prepare(self, job: _Job) -> bool:
        request = job.request
        if request.steps:
            if job.start_step < 0:
                job.start_step = request.first_step(self.steps + 1)
            return bool(self.steps + request.warmup_steps >= job.start_step)
        # The next look is a step away.
        return bool(time.time() + 2 * self.step_s >= request.start_s - request.warmup_s)

    def _is_time_to_begin(self, job: _Job) -> bool:
        request = job.request
        if request.steps:
            return self.steps >= job.start_step
        if request.start_s:
            return bool(time.time() >= request.start_s)
        # A device's tracing takes its time to be set up; on the CPU the step in between is enough.
        return bool(not job.trace.has_device or time.monotonic() - job.prepared_s >= request.warmup_s)

    def _is_over(self, job: _Job) -> bool:
        if job.request.steps:
            return bool(self.steps >= job.trace.first_step + job.request.steps)
        return bool(time.monotonic() - job.begun_s >= job.request.duration_s)

    def _prepare(self, job: _Job) -> None:
        with self.lock:
            if job.is_unwanted:  # In this moment.
                return
            if self.profilers.take():
                job.trace = self.traces.StepTrace(job.request, self.profilers)
        if job.trace is None:
            self._say(job, "waits", "until the torch.profiler that the job itself has started ends")
            return
        job.trace.prepare()
        job.prepared_s = time.monotonic()

    def _begin(self, job: _Job) -> None:
        job.trace.begin(self.steps)
        job.begun_s = time.monotonic()
        expected_s = job.request.duration_s or job.request.steps * self.step_s
        job.last_s = job.begun_s + 2 * expected_s + 3 * self.step_s + _GRACE_S
        self._watch_batches(job)

    def _watch_batches(self, job: _Job) -> None:
        """Where no step ends for long, the next batch that the thread fetches ends the trace."""
        iterator = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
        original = iterator.__next__

        @functools.wraps(original)
        def fetch(*arguments: Any) -> Any:
            if (time.monotonic() > job.last_s or job.is_unwanted) and self.job is job:
                self._advance(self._cut)
            return original(*arguments)

        job.trace.patch(iterator, "__next__", fetch)

    def _cut(self, job: _Job) -> None:
        if self.traces.is_between_operators():
            if job.is_unwanted:
                self._break_off(job, job.is_unwanted)
            else:
                self._finish(job)

    def _finish(self, job: _Job) -> None:
        job.trace.end(self.steps)
        job.trace.finish()
        self._let_go(job)

    def _break_off(self, job: _Job, why: str) -> None:
        self._say(job, "refused", why)
        try:
            if job.trace is not None:
                job.trace.break_off()
        finally:
            self._let_go(job)

    def _let_go(self, job: _Job) -> None:
        with self.lock:
            if self.job is job:
                self.job = None
        self.job_ended.set()

    def _say(self, job: _Job, state: str, why: str) -> None:
        with self.lock:
            self.note = f"{job.request.id} {state} {' '.join(why.split())[:_MOST_NOTE_CHARACTERS]}"

    def _give_way(self) -> threading.Event | None:
        """The job starts a profiler. None: ours has ended, or is just being called."""
        why = "the job started a torch.profiler of its own"
        job = self.job
        if job is not None and job.trace is not None and job.trace.thread == threading.get_ident():
            self._advance(lambda job: self._break_off(job, why))
            return None
        self._take_back(job, why)
        return self.job_ended

    def _take_back(self, job: _Job | None, why: str) -> None:
        with self.lock:
            if job is not None and not job.is_unwanted:
                job.is_unwanted = why

    def at_exit(self) -> None:
        """What is recorded is written; a request that nothing came of is not served any more."""
        self.is_on = False
        job = self.job
        trace = job.trace if job is not None else None
        if trace is None or trace.thread != threading.get_ident() or os.getpid() != self.pid:
            return
        if trace.has_device:
            trace.abandon()
        else:
            self._advance(self._finish if trace.is_recording else lambda job: self._break_off(job, "the process ends"))

    def forget(self) -> None:
        """In a forked child. The parent's trace is the parent's, and a child that trains has threads of its own."""
        job, self.job = self.job, None
        if job is not None and job.trace is not None:
            job.trace.forget()
        self.lock, self.job_ended, self.profilers.lock = threading.RLock(), threading.Event(), threading.RLock()
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
        while self.is_on or self.job is not None:
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
            self.traces.unlink(self.socket_path)

    def _ask(self, link: socket.socket, daemon: str | bytes, pids: list[int]) -> None:
        with self.lock:
            mask = _FREE if self._is_free() else 0
            note = self.note.encode(errors="replace")
        if self.is_on and (time.monotonic() - self.ended_s < max(_STALE_S, 3 * self.step_s) or not mask):
            mask |= _STEPS
        number = os.environ.get("SLURM_JOB_ID", "")
        body = _POLL.pack(mask, len(pids), int(number) if number.isdigit() and len(number) < 19 else 0)
        body += struct.pack(f"<{len(pids)}i", *pids) + note
        try:
            link.sendto(_HEADER.pack(len(body), _POLL_TAG) + body, socket.MSG_DONTWAIT, daemon)
        except OSError:
            pass  # No daemon, or one that is busy: at the next turn.

    def _is_free(self) -> bool:
        """Under the lock. A request that was taken back before anything came of it stands in nobody's way."""
        return self.job is None or (bool(self.job.is_unwanted) and self.job.trace is None)

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
            job = self.job
            if job is not None and job.request.id == text:
                self._take_back(job, "it was taken back")
        elif tag == _POLL_TAG and text:
            try:
                request = self.traces.Request(text)
            except ValueError:
                return
            with self.lock:
                # A daemon that was started anew may not know that it was served.
                if self._is_free() and request.id not in self.served:
                    self.served = [*self.served[1 - _MOST_SERVED:], request.id]
                    self.note = ""
                    self.job_ended.clear()
                    self.job = _Job(request)

    def _watch_silence(self) -> None:
        """Where neither a step ends nor a batch is fetched, as in an evaluation by hand, a trace that is over or was taken back fills the
        memory. To stop it, its thread would have to be between two operators, which cannot be seen from here; but nothing more is
        recorded if that thread is told so, between any two bytecodes. Of the main thread alone."""
        job = self.job
        trace = job.trace if job is not None else None
        if job is None or trace is None or not trace.is_recording or trace.is_paused or trace.thread != threading.main_thread().ident:
            return
        if time.monotonic() > job.last_s or job.is_unwanted:
            ctypes.pythonapi.Py_AddPendingCall(_PAUSE, None)


def _pause(_: Any) -> int:
    """Between two bytecodes of the main thread."""
    try:
        job = _tracer.job if _tracer is not None else None
        if job is not None and job.trace is not None and job.trace.is_recording and job.trace.thread == threading.get_ident():
            job.trace.pause()
    except Exception:
        pass
    return 0


_PAUSE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_pause)  # Kept: the interpreter holds no reference.


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
