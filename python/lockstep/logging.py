"""Python's standard logging with a file a rank, for `lockstep logs`.

    import logging
    import lockstep.logging

    lockstep.logging.setup("logs")
    logging.getLogger("trainer").info("step %d", step)

Lines are those of docs/formats/rank-log.md, as `lockstep run --logs` writes them too. This file needs the standard library only.
"""

from __future__ import annotations

import json as _json
import logging
import os
import re
import socket
import struct
import sys
import threading
import time
import weakref
import zlib as _zlib
from typing import Any, TextIO, Union

from ._errors import InvalidArgumentError
from ._launchers import JOB_VARIABLES
from ._profiler import _rank_and_world

__all__ = ["ConsoleHandler", "RankFileHandler", "RankFormatter", "setup"]

FolderOption = Union[str, "os.PathLike[str]", None]

_COMPRESSED = ("", ".gz", ".zst", ".xz")
_TEMPORARY = ".gz.tmp"
_NEXT = ".new"  # Of no log: who reads the folder passes over it.
_RETRY_S = 1.0
_MARK = "_lockstep_handler"


def _word(text: str) -> str:
    return re.sub(r"[^0-9A-Za-z._-]", "_", text[:64]) or "-"


def _host() -> str:
    return _word(socket.gethostname().partition(".")[0])


def _level(number: int) -> str:
    for least, name in ((logging.CRITICAL, "fatal"), (logging.ERROR, "error"), (logging.WARNING, "warning"),
                        (logging.INFO, "info"), (logging.DEBUG, "debug")):
        if number >= least:
            return name
    return "trace"


class RankFormatter(logging.Formatter):
    """A record as one line of JSON, or as a line of text for each of its lines, with both clocks, rank and host."""

    def __init__(self, rank: int | None, json: bool = False) -> None:
        super().__init__()
        self._rank = rank
        self._json = json
        self._host = _host()

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)  # The message, and a traceback below it.
        # record.created is a double: of the times of our own it has no more than about 0.2 us.
        now_ns = time.time_ns()
        time_ns = now_ns - max(0, round((now_ns / 1e9 - record.created) * 1e9))
        mono_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        source = _word(record.name)
        if self._json:
            fields = {"time_ns": time_ns, "mono_ns": mono_ns, "level": _level(record.levelno), "rank": self._rank,
                      "host": self._host, "source": source, "text": text.rstrip("\r\n")}
            return _json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        seconds, rest_ns = divmod(time_ns, 1_000_000_000)
        date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        mono_s, mono_rest_ns = divmod(mono_ns, 1_000_000_000)
        rank = "-" if self._rank is None else str(self._rank)
        head = (f"{date}.{rest_ns:09d}Z {mono_s}.{mono_rest_ns:09d} {_level(record.levelno)[0].upper()} rank{rank} {self._host} "
                f"{source}: ")
        lines = text.rstrip("\r\n").split("\n")
        return "\n".join(head + line.rstrip("\r") for line in lines)


class ConsoleHandler(logging.StreamHandler[TextIO]):
    """Standard error, as it is when a record comes."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


class _Compression:
    """One rotated file on its way to gzip, in a thread. It has two open files and touches no name: nobody waits for it."""

    def __init__(self, path: str, temporary: str) -> None:
        self.is_cancelled = False
        self.is_good: bool | None = None  # None: it is under way.
        self.age = 1
        self._from = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.plain = os.fstat(self._from)
            try:
                os.unlink(temporary)
            except FileNotFoundError:
                pass
            self._to = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, self.plain.st_mode & 0o777)
        except OSError:
            os.close(self._from)
            raise
        # Of ordinary priority: it needs the interpreter between two blocks, and must not keep it from the job.
        try:
            threading.Thread(target=self._run, name="lockstep-log-gzip", daemon=True).start()
        except RuntimeError:
            os.close(self._from)
            os.close(self._to)
            os.unlink(temporary)
            raise

    def _run(self) -> None:
        is_good = False
        try:
            is_good = self._compress()
        except (OSError, _zlib.error):
            pass
        finally:
            os.close(self._from)
            os.close(self._to)
            self.is_good = is_good

    def _compress(self) -> bool:
        # RFC 1952, with a comment by which a reader of the plain file knows this one again (docs/formats/rank-log.md).
        comment = f"lockstep inode {self.plain.st_ino}".encode() + b"\0"
        self._put(b"\x1f\x8b\x08\x10" + struct.pack("<I", int(self.plain.st_mtime) & 0xFFFFFFFF) + b"\x04\x03" + comment)
        compressor = _zlib.compressobj(1, _zlib.DEFLATED, -_zlib.MAX_WBITS)
        size = checksum = 0
        while not self.is_cancelled:
            block = os.read(self._from, 1 << 20)
            if not block:
                self._put(compressor.flush() + struct.pack("<II", checksum, size & 0xFFFFFFFF))
                os.utime(self._to, ns=(self.plain.st_atime_ns, self.plain.st_mtime_ns))
                os.fdatasync(self._to)
                return size == self.plain.st_size
            size += len(block)
            checksum = _zlib.crc32(block, checksum)
            self._put(compressor.compress(block))
        return False

    def _put(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._to, data):]


class RankFileHandler(logging.Handler):
    """A file for each process, made with its first record and rotated by size.

    Nothing that goes wrong with it reaches who logs: it is said once on standard error, lines that are lost are counted, and
    the file says how many once it can be written again. Each record is with the system when emit returns. A child of a
    fork has a file of its own.
    """

    def __init__(self, folder: str | os.PathLike[str], rank: int | None = None, *, json: bool = False,
                 max_bytes: int = 100_000_000, files: int = 5, compress: bool = False) -> None:
        super().__init__()
        if max_bytes < 1 or not 1 <= files <= 999:
            raise InvalidArgumentError(f"max_bytes={max_bytes}, files={files}: expected a byte at least, and 1 to 999 files")
        self.rank = rank
        self.path: str | None = None  #: Of this process's file, once there is one.
        self.lost_count = 0  #: Lines that are lost, and not yet said in the file.
        self._folder = os.path.abspath(folder)
        self._json = json
        self._max_bytes = max_bytes
        self._files = files
        self._compresses = compress
        self._compression: _Compression | None = None
        self._descriptor = -1
        self._size = 0
        self._has_told = False
        self._next_try = 0.0
        self._why = ""
        self.setFormatter(RankFormatter(rank, json))
        _HANDLERS.add(self)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            lines = self.format(record) + "\n"
        except Exception:
            self.handleError(record)  # A format that does not fit its arguments: as logging has it.
            return
        self._write(lines.encode("utf-8", "replace"))

    def close(self) -> None:
        with _lock_of(self):
            self._compresses = False
            self._look()
            if self._compression is not None and self.path is not None:
                self._compression.is_cancelled = True
                try:
                    os.unlink(self.path + _TEMPORARY)
                except OSError:
                    pass
            self._forget()
        super().close()

    def _forget(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self.path = None
        self._size = 0
        self._compression = None

    def _look(self) -> None:
        """Gives a file that has been compressed meanwhile its name."""
        done, path = self._compression, self.path
        if done is None or done.is_good is None or path is None:
            return
        self._compression = None
        plain = f"{path}.{done.age}"
        try:
            is_there = done.age < self._files and os.stat(plain).st_ino == done.plain.st_ino
            if done.is_good and is_there:
                os.rename(path + _TEMPORARY, plain + ".gz")
                os.unlink(plain)
            else:
                os.unlink(path + _TEMPORARY)
        except OSError:
            self._compresses = False
        self._compresses = self._compresses and done.is_good
        self._compress_next()

    def _compress_next(self) -> None:
        if not self._compresses or self._compression is not None:
            return
        for age in range(self._files - 1, 0, -1):
            plain = f"{self.path}.{age}"
            if os.path.exists(plain) and not os.path.exists(plain + ".gz"):
                try:
                    self._compression = _Compression(plain, f"{self.path}{_TEMPORARY}")
                    self._compression.age = age
                except (OSError, RuntimeError):  # No room, no thread: it stays plain.
                    self._compresses = False
                return

    def _write(self, data: bytes) -> None:
        if self._why and time.monotonic() < self._next_try:
            self.lost_count += data.count(b"\n")
            return
        try:
            if self._compression is not None:
                self._look()
            if self._descriptor < 0:
                self._open()
            lost = self._lost_line() if self.lost_count else b""
            if self._size and self._size + len(lost) + len(data) > self._max_bytes:
                self._rotate()
            if lost:
                self._append(lost)
                self.lost_count = 0
            self._append(data)
            self._why = ""
        except OSError as error:
            self.lost_count += data.count(b"\n")
            self._why = str(error)
            self._next_try = time.monotonic() + _RETRY_S
            if not self._has_told:
                self._has_told = True
                try:
                    print(f"lockstep: lines of the log are lost: {error}; the job goes on", file=sys.stderr, flush=True)
                except OSError:
                    pass

    def _lost_line(self) -> bytes:
        record = logging.LogRecord("lockstep", logging.WARNING, __file__, 0, "%d lines were lost here: %s",
                                   (self.lost_count, self._why), None)
        return (RankFormatter(self.rank, self._json).format(record) + "\n").encode("utf-8", "replace")

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError:
            if written:
                os.ftruncate(self._descriptor, self._size)  # Half a line is taken back.
            raise
        self._size += written

    def _open(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        who = "all" if self.rank is None else f"rank{self.rank}"
        job = next((os.environ[name] for name in JOB_VARIABLES if os.environ.get(name)), "")
        stem = ".".join([who, _host(), *(["job" + _word(job)] if job else []), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
                         f"pid{os.getpid()}"])
        ending = ".jsonl" if self._json else ".log"
        for number in range(1, 1000):
            path = os.path.join(self._folder, stem + ("" if number == 1 else f"-{number}") + ending)
            try:
                self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
            except FileExistsError:
                continue
            self.path = path
            self._size = 0
            return
        raise FileExistsError(path)

    def _rotate(self) -> None:
        path = self.path
        assert path is not None
        # The new file is there before an old one moves: where there is none to be had, each is kept, however often it is tried.
        try:
            os.unlink(path + _NEXT)  # Of a process that was killed right here.
        except FileNotFoundError:
            pass
        descriptor = os.open(path + _NEXT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._make_way(path)
            os.rename(path + _NEXT, path)
        except OSError:
            os.close(descriptor)
            os.unlink(path + _NEXT)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._size = 0
        if self._compression is not None:
            self._compression.age += 1
        self._compress_next()

    def _make_way(self, path: str) -> None:
        """Every file becomes one older, this one PATH.1."""
        if not os.path.exists(path):
            return  # Taken away by somebody: a new one is begun, and the others stay as they are.
        oldest = self._files - 1
        for age in range(oldest, 0, -1):
            for ending in _COMPRESSED:
                try:
                    if age == oldest:
                        os.unlink(f"{path}.{age}{ending}")
                    else:
                        os.rename(f"{path}.{age}{ending}", f"{path}.{age + 1}{ending}")
                except FileNotFoundError:
                    pass
        if oldest:
            os.rename(path, f"{path}.1")

    def _become_child(self) -> None:
        self._compresses = False  # A fork is given no thread; its parent's is not here.
        self._forget()
        self.lost_count = 0
        self._why = ""


# Logging takes the locks of handlers around a fork itself; a child only has to leave its parent's file.
_HANDLERS: weakref.WeakSet[RankFileHandler] = weakref.WeakSet()


def _lock_of(handler: logging.Handler) -> Any:
    return handler.lock or threading.RLock()


def _after_fork() -> None:
    for handler in list(_HANDLERS):
        handler._become_child()


os.register_at_fork(after_in_child=_after_fork)


def setup(folder: FolderOption = None, *, level: int | str = logging.INFO, rank: int | None = None, json: bool = False,
          console: str = "rank0", max_bytes: int = 100_000_000, files: int = 5, compress: bool = False,
          logger: logging.Logger | None = None) -> RankFileHandler | None:
    """Lets everything that is logged go to a file of this rank, and rank 0's to standard error too.

    Args:
        folder: of the files. None: under `lockstep run --logs` all goes to standard error, whose log takes over the lines as
            they are; elsewhere there is no file.
        level: what is logged from, as logging.Logger.setLevel has it.
        rank: of this process; None: as torch.distributed or the launcher says.
        json: a line of JSON for each record in the file.
        console: "rank0", "all" or "none".
        max_bytes: a file that is so long becomes .log.1, that one .log.2.
        files: how many are kept, the one that is written among them.
        compress: rotated files become .log.1.gz, by a thread of the process. Off: the job's threads are the job's.
        logger: which gets the handlers; None: the root logger. Those of an earlier call are taken off it.

    Returns:
        The file's handler (its path, and what it has lost); None where there is no file.
    """
    if console not in ("rank0", "all", "none"):
        raise InvalidArgumentError(f"console={console!r}: expected 'rank0', 'all' or 'none'")
    if rank is None:
        rank = _rank_and_world()[0]
    target = logger if logger is not None else logging.getLogger()
    for handler in list(target.handlers):
        if getattr(handler, _MARK, False):
            target.removeHandler(handler)
            handler.close()
    is_captured = folder is None and bool(os.environ.get("LOCKSTEP_LOG_DIR"))
    handlers: list[logging.Handler] = []
    file_handler = None
    if folder is not None:
        file_handler = RankFileHandler(folder, rank, json=json, max_bytes=max_bytes, files=files, compress=compress)
        handlers.append(file_handler)
    if is_captured or console == "all" or (console == "rank0" and (rank or 0) == 0):
        on_console = ConsoleHandler()
        on_console.setFormatter(RankFormatter(rank))
        handlers.append(on_console)
    for handler in handlers:
        setattr(handler, _MARK, True)
        target.addHandler(handler)
    target.setLevel(level)
    return file_handler
