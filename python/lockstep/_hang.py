"""Lets a stuck training process be asked for its dump from outside: ``lockstep.enable_hang_dumps()``.

Needs nothing but Python's standard library, and works as a plain file of its own too. A daemon thread listens on a Unix
socket in a folder that only this user can enter and answers `lockstep hang` (docs/formats/hang-socket.md): what
PyTorch's flight recorder holds, and where every Python thread is. It works while the main thread waits in C, as in a
collective that never ends, and does not while something holds the interpreter's lock.

Why a socket and no signal: a signal's Python handler runs on the main thread only, which is the one that is stuck; one
caught in C or by a waiting thread has to be blocked in all others, which breaks jobs and libraries that use the same
signal. A socket also answers who asks, and carries the dump without a file.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from typing import Any

__all__ = ["enable_hang_dumps"]

_BUFFER_ENTRIES = "2000"
_REQUEST_LIMIT = 256
_TIMEOUT_S = 20.0
_FRAME_LIMIT = 256
_THREAD_LIMIT = 1024
_STALE_LIMIT = 64
_STARTING_S = 60.0

_listener: socket.socket | None = None
_path: str | None = None
_owner_pid = 0


def enable_hang_dumps(folder: str | None = None) -> bool:
    """Makes this process answer `lockstep hang`. Call it once, before process groups are made: it also gives PyTorch's
    flight recorder a buffer, unless TORCH_FR_BUFFER_SIZE says otherwise. Costs a sleeping thread. `folder`: where the
    socket goes, instead of LOCKSTEP_HANG_DIR, XDG_RUNTIME_DIR/lockstep-hang or /tmp/lockstep-hang-UID; it has to be
    this user's own and closed to others. False: it could not be done; a training job is never stopped by it."""
    try:
        _give_buffer()
        if _listener is not None and _owner_pid == os.getpid():
            return True
        if not _start(folder):
            return False
        if not getattr(enable_hang_dumps, "_forks", False):
            os.register_at_fork(after_in_child=lambda: _after_fork(folder))
            enable_hang_dumps._forks = True  # type: ignore[attr-defined]
        return True
    except Exception:  # Whatever it is, the job matters more.
        return False


def _give_buffer() -> None:
    """Some versions record nothing unless they are told how much. Newer ones warn of the old name."""
    if "TORCH_FR_BUFFER_SIZE" in os.environ or "TORCH_NCCL_TRACE_BUFFER_SIZE" in os.environ:
        return
    os.environ["TORCH_FR_BUFFER_SIZE"] = _BUFFER_ENTRIES
    version = getattr(sys.modules.get("torch"), "__version__", None)
    if version is None:
        import importlib.metadata

        try:
            version = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            return
    numbers = version.split("+")[0].split(".")
    if (int(numbers[0]), int(numbers[1])) < (2, 9):
        os.environ["TORCH_NCCL_TRACE_BUFFER_SIZE"] = _BUFFER_ENTRIES


def _folders(folder: str | None) -> list[str]:
    if folder is not None:
        return [folder]
    named = os.environ.get("LOCKSTEP_HANG_DIR")
    if named:
        return [named]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return ([os.path.join(runtime, "lockstep-hang")] if runtime else []) + [f"/tmp/lockstep-hang-{os.geteuid()}"]


def _own_folder(folder: str) -> bool:
    """Whether `folder` is there, this user's own and closed to others; it is made when missing."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return False
    status = os.lstat(folder)
    return (status.st_mode & 0o170077) == 0o040000 and status.st_uid == os.geteuid()


def _remove_stale(folder: str) -> None:
    """Sockets of processes that ended without removing theirs: nobody listens there. Nor does a process yet that is about to,
    another rank that starts at this moment, so that a new one stays."""
    names = sorted(name for name in os.listdir(folder) if name.startswith("hang-") and name.endswith(".sock"))
    for name in names[:_STALE_LIMIT]:
        path = os.path.join(folder, name)
        try:
            if time.time() - os.stat(path).st_mtime >= _STARTING_S and _is_refused(path):
                os.unlink(path)
        except OSError:
            pass  # Another rank was quicker.


def _is_refused(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            pass
    return False


def _start(folder: str | None) -> bool:
    global _listener, _path, _owner_pid
    for place in _folders(folder):
        listener = None
        try:
            if not _own_folder(place):
                continue
            _remove_stale(place)
            path = os.path.join(place, f"hang-{os.getpid()}-{os.urandom(4).hex()}.sock")
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            listener.bind(path)
            listener.listen(4)
        except OSError:
            if listener is not None:
                listener.close()
            continue
        _listener, _path, _owner_pid = listener, path, os.getpid()
        # A daemon thread: it never keeps the process from ending.
        threading.Thread(target=_serve, args=(listener,), name="lockstep-hang", daemon=True).start()
        import atexit

        atexit.register(_remove, path, os.getpid())
        return True
    return False


def _remove(path: str, pid: int) -> None:
    if os.getpid() == pid:
        try:
            os.unlink(path)
        except OSError:
            pass


def _after_fork(folder: str | None) -> None:
    """In a forked child: the parent's socket is not its own, the parent's thread is not there."""
    global _listener
    try:
        if _listener is not None:
            _listener.close()
        _listener = None
        _start(folder)
    except Exception:
        pass


def _serve(listener: socket.socket) -> None:
    failures = 0
    while failures < 100:
        try:
            connection, _ = listener.accept()
        except OSError:
            failures += 1
            time.sleep(0.1)
            continue
        try:
            with connection:
                connection.settimeout(_TIMEOUT_S)
                _answer(connection)
        except Exception:
            pass


def _answer(connection: socket.socket) -> None:
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid = struct.unpack("3i", peer)[1]
    if uid not in (0, os.geteuid()):
        return
    request = b""
    while not request.endswith(b"\n") and len(request) < _REQUEST_LIMIT:
        piece = connection.recv(_REQUEST_LIMIT - len(request))
        if not piece:
            return
        request += piece
    words = request.split()
    if not words or words[0] != b"dump":
        connection.sendall(b"lockstep.hang/1\nerror unknown request\nend\n")
        return
    connection.sendall(f"lockstep.hang/1\npid {os.getpid()}\n".encode())
    # What is cheap and always there comes first. The first dump with stacks looks into libraries of hundreds of
    # megabytes for them; whoever cannot wait for it has the one without.
    for section, make in (("facts", _facts), ("stacks", _stacks), ("record", lambda: _record(False)),
                          ("record", lambda: _record(True))):
        if section == "record":  # It shows the rank as it is from now on; other ranks write theirs at other moments.
            connection.sendall(f"time {time.time_ns()}\n".encode())
        try:
            content = make()
        except Exception as error:
            content = b""
            connection.sendall(_line(f"error {section}: {type(error).__name__}: {error}"))
        if content:
            connection.sendall(f"{section} {len(content)}\n".encode() + content)
    connection.sendall(b"end\n")


def _line(text: str) -> bytes:
    return text.replace("\n", " ")[:400].encode("utf-8", "replace") + b"\n"


def _facts() -> bytes:
    """Lines "name value". Nothing is imported for it: what the job has not loaded is not there."""
    facts: dict[str, Any] = {"python": sys.version.split()[0]}
    torch = sys.modules.get("torch")
    facts["torch"] = getattr(torch, "__version__", "")
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        facts["rank"] = distributed.get_rank()
        facts["world_size"] = distributed.get_world_size()
        facts["backend"] = distributed.get_backend()
    return b"".join(_line(f"{name} {value}") for name, value in facts.items() if value != "")


def _stacks() -> bytes:
    """A line "T tid name" for each thread, behind it its frames, innermost first: "F line file<tab>function"."""
    known = dict(threading._active)  # type: ignore[attr-defined]  # Its lock may be held by a thread that is stuck.
    lines = []
    for ident, frame in list(sys._current_frames().items())[:_THREAD_LIMIT]:
        thread = known.get(ident)
        if thread is not None and thread.name == "lockstep-hang":
            continue
        tid = getattr(thread, "native_id", None) or 0
        lines.append(_line(f"T {tid} {thread.name if thread is not None else f'{ident:#x}'}"))
        at: Any = frame
        for _ in range(_FRAME_LIMIT):
            if at is None:
                break
            code = at.f_code
            name = getattr(code, "co_qualname", code.co_name)
            lines.append(_line(f"F {at.f_lineno or 0} {code.co_filename}\t{name}"))
            at = at.f_back
    return b"".join(lines)


def _record(with_stacks: bool) -> bytes:
    """The flight recorder's pickle: NCCL's where it holds something, else the one that all backends share."""
    torch = sys.modules.get("torch")
    c10d = getattr(getattr(torch, "_C", None), "_distributed_c10d", None)
    dumps = [getattr(c10d, name) for name in ("_dump_nccl_trace", "_dump_fr_trace") if hasattr(c10d, name)]
    content = b""
    for position, dump in enumerate(dumps):
        content = dump(True, with_stacks, False)
        if position + 1 == len(dumps):
            break
        import pickle

        if pickle.loads(content).get("entries"):  # Made by this very process just now.
            break
    return content
