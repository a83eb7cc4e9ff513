"""Accelerate: ``lockstep.integrations.accelerate.watch(accelerator)`` after it was made (docs/frameworks.md)."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

from ._job import StagesJob

__all__ = ["watch"]

_KNOWN = ("tensorboard", "wandb", "mlflow")


def watch(accelerator: Any, folder: str | os.PathLike[str] | None = None, trackers: Iterable[Any] = ()) -> Any:
    """Marks the stages of this rank's steps; ``accelerator.end_training()`` says which rank and which stage cost the job time: on
    standard error, and to the accelerator's trackers as far as they are TensorBoard, W&B or MLflow. Gives the accelerator back. ``folder``: that of
    lockstep.enable_stages. ``trackers``: others (trackers.log_stages)."""
    job = StagesJob(folder)
    given = list(trackers)
    original = accelerator.end_training

    @functools.wraps(original)
    def end_training() -> Any:
        if job.guard(lambda: accelerator.is_main_process):
            found = job.guard(lambda: [each.tracker for each in accelerator.trackers if getattr(each, "name", "") in _KNOWN])
            job.finish(given + (found or []))
        return original()

    accelerator.end_training = end_training
    return accelerator
