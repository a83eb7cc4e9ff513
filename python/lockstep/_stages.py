"""`lockstep run --stages` for jobs that are started without it (docs/instrument.md#jobs-that-mark-nothing)."""

from __future__ import annotations

import importlib
import os

__all__ = ["enable_stages"]

_FOLDER = "lockstep-stages"
_is_asked = False
_is_on = False


def enable_stages(folder: str | os.PathLike[str] | None = None) -> bool:
    """Marks the stages of this process's training steps, as `lockstep run --stages` does, for ``lockstep stages FOLDER`` and lockstepd.
    Call it once, before the first step; under `lockstep run --stages`, or with LOCKSTEP_STAGES=1 or =FOLDER in the environment, it has
    been called. ``folder``: else where LOCKSTEP_TRACE says, else ``lockstep-stages`` in the current directory. Each rank keeps the newest
    32 MiB there, unless LOCKSTEP_TRACE_RING and LOCKSTEP_TRACE_LIMIT_MIB say otherwise. False: it could not be done; a training job is
    never stopped by it."""
    global _is_asked, _is_on
    if os.environ.get("LOCKSTEP_RUN_STEPS"):
        return True
    if not _is_asked:
        _is_asked = True
        try:
            if folder is not None or not os.environ.get("LOCKSTEP_TRACE"):
                # Children and the library read it from here.
                os.environ["LOCKSTEP_TRACE"] = os.path.abspath(folder or _FOLDER)
                os.environ.setdefault("LOCKSTEP_TRACE_RING", "1")
                os.environ.setdefault("LOCKSTEP_TRACE_LIMIT_MIB", "32")
            _is_on = importlib.import_module("._steps", __package__).enable()
        except Exception:  # Whatever it is, the job matters more.
            _is_on = False
    return _is_on


def enable_from_environment() -> None:
    """LOCKSTEP_STAGES is set: called when Python starts, by lockstep_stages.pth."""
    wanted = os.environ.get("LOCKSTEP_STAGES", "0")
    if wanted != "0":
        enable_stages(None if wanted == "1" else wanted)
