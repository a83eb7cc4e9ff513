"""DeepSpeed: ``lockstep.integrations.deepspeed.watch(engine)`` after deepspeed.initialize (docs/frameworks.md)."""

from __future__ import annotations

import atexit
import importlib
import os
from collections.abc import Iterable
from typing import Any

from ._job import StagesJob

__all__ = ["watch"]


def watch(engine: Any, folder: str | os.PathLike[str] | None = None, trackers: Iterable[Any] = ()) -> Any:
    """Marks the stages of this rank's steps; when the program ends, rank 0 says which rank and which stage cost the job time: on standard error,
    and to the engine's monitors as far as they are TensorBoard or W&B. Gives the engine back. ``folder``: that of
    lockstep.enable_stages. ``trackers``: others (trackers.log_stages)."""
    job = StagesJob(folder)
    given = list(trackers)

    if job.guard(lambda: engine.global_rank) == 0:
        # DeepSpeed has no end of training. What is registered last runs first: W&B's run is still open then.
        atexit.register(lambda: job.finish(given + (job.guard(lambda: _find_trackers(engine.monitor)) or [])))
    return engine


def _find_trackers(monitor: Any) -> list[Any]:
    found = [getattr(getattr(monitor, "tb_monitor", None), "summary_writer", None)]
    if getattr(getattr(monitor, "wandb_monitor", None), "enabled", False):
        found.append(importlib.import_module("wandb").run)
    return [target for target in found if target is not None]
