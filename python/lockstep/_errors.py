"""Errors of lockstep: every class says its code, and every error which file, rank and byte it is about."""

from __future__ import annotations

import errno
from typing import Any


class Error(Exception):
    """Something lockstep could not do.

    The text names file, byte and rank as far as they are known, what is wrong, and what to do about it.

    Attributes:
        code: stable name of the kind of error, such as ``"corrupt_data"``.
        file: path of the file concerned, with ``!member`` for a file inside an archive; None when it concerns none.
        rank: global rank concerned, or None.
        byte_offset: offset in the unpacked bytes of ``file``, or None.
    """

    code: str
    file: str | None
    rank: int | None
    byte_offset: int | None
    _errno: int | None = None

    def __init__(
        self,
        message: str,
        code: str = "failed",
        file: str | None = None,
        rank: int | None = None,
        byte_offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.file = file
        self.rank = rank
        self.byte_offset = byte_offset
        if isinstance(self, OSError):  # So that handlers of the built-in classes find what they look for.
            setattr(self, "errno", self._errno)
            setattr(self, "filename", file)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.code, self.file, self.rank, self.byte_offset)


class InvalidArgumentError(Error, ValueError):
    """The question makes no sense for this run: no such rank, no such pass."""


class NotFoundError(Error, FileNotFoundError):
    """A path does not exist, or nothing below it can be a trace."""

    _errno = errno.ENOENT


class PermissionDeniedError(Error, PermissionError):
    """A file may not be read."""

    _errno = errno.EACCES


class ReadError(Error, OSError):
    """The operating system failed a read or write."""

    _errno = errno.EIO


class CorruptDataError(Error, ValueError):
    """Bytes are damaged, or no PyTorch trace at all."""


class UnsupportedError(Error):
    """A format or version that is known and not read."""


class LimitExceededError(Error):
    """A limit on size or compression ratio was hit; ``load`` takes ``max_json_bytes`` and ``max_compression_ratio``."""


class FailedPreconditionError(Error):
    """The run lacks what the question needs, such as a pass that was left out."""


class CancelledError(Error):
    """Reading was stopped before its end."""


class PartialWarning(UserWarning):
    """Ranks or parts of files are missing; the text names them. What there is was read."""


_CLASSES: dict[str, type[Error]] = {
    "invalid_argument": InvalidArgumentError,
    "not_found": NotFoundError,
    "permission_denied": PermissionDeniedError,
    "io": ReadError,
    "corrupt_data": CorruptDataError,
    "unsupported": UnsupportedError,
    "limit_exceeded": LimitExceededError,
    "failed_precondition": FailedPreconditionError,
    "cancelled": CancelledError,
}


def make_error(code: str, message: str, file: str | None, rank: int | None, byte_offset: int | None) -> Error:
    """The exception for an error of the C++ side."""
    return _CLASSES.get(code, Error)(in_words_of_python(message), code, file, rank, byte_offset)


_FLAGS = {
    "--max-json-size": "max_json_bytes",
    "--max-compression-ratio": "max_compression_ratio",
    "--communication-kernel": "communication_kernels",
    "--step-name": "step_name",
    "--timeout": "timeout_s",
    "--max-memory": "memory_bytes",
}


def in_words_of_python(text: str) -> str:
    """Advice that names a flag of the command names the argument of load() instead."""
    for flag, argument in _FLAGS.items():
        text = text.replace(flag, argument)
    return text
