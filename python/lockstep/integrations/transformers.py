"""Hugging Face's Trainer: ``Trainer(..., callbacks=[lockstep.integrations.transformers.StagesCallback()])`` (docs/frameworks.md)."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

from ._job import StagesJob
from .trackers import MlflowRun

__all__ = ["StagesCallback"]

_transformers: Any = importlib.import_module("transformers")


class StagesCallback(_transformers.TrainerCallback):  # type: ignore[misc]
    """Marks the stages of each rank's steps, and says at the end of training which rank and which stage cost it time: on standard error, and
    where the Trainer reports to (``report_to``) as far as that is TensorBoard, W&B or MLflow. ``folder``: that of
    lockstep.enable_stages. ``trackers``: others (trackers.log_stages). Make it before the first step, in every rank."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, trackers: Iterable[Any] = ()) -> None:
        self._job = StagesJob(folder)
        self._given = list(trackers)
        self._found: list[Any] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        if state.is_world_process_zero:
            # Now: the Trainer's own callbacks come before this one, and leave theirs when training ends.
            self._found = self._job.guard(lambda: _find_trackers(_callbacks_of_caller())) or []

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        if state.is_world_process_zero:
            self._job.finish(self._given + self._found)
            for target in self._found:
                if hasattr(target, "add_scalar"):  # Which the Trainer had closed.
                    self._job.guard(target.close)


def _callbacks_of_caller() -> list[Any]:
    """All of the Trainer's: a callback is not told of the others, nor of the Trainer."""
    frame = sys._getframe(1)
    while frame is not None:
        handler = frame.f_locals.get("self")
        if isinstance(handler, _transformers.trainer_callback.CallbackHandler):
            return list(handler.callbacks)
        frame = frame.f_back  # type: ignore[assignment]
    return []


def _find_trackers(callbacks: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for callback in callbacks:
        name = type(callback).__name__
        if name == "TensorBoardCallback":
            found.append(callback.tb_writer)
        elif name == "WandbCallback":
            found.append(importlib.import_module("wandb").run)
        elif name == "MLflowCallback":
            run = importlib.import_module("mlflow").active_run()
            found.append(MlflowRun(run.info.run_id) if run is not None else None)
    return [target for target in found if target is not None]
