"""Lightning's Trainer: ``Trainer(..., callbacks=[lockstep.integrations.lightning.StagesCallback()])`` (docs/frameworks.md)."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterable
from typing import Any

from .._stages import enable_stages
from ._job import StagesJob
from .trackers import MlflowRun

__all__ = ["StagesCallback"]

# The package goes by two names, and neither takes a callback of the other's.
_lightning: Any = importlib.import_module("lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning")


class StagesCallback(_lightning.Callback):  # type: ignore[misc]
    """Marks the stages of each rank's steps, and says at the end of training which rank and which stage cost it time: on standard error, and
    to the Trainer's loggers as far as they are TensorBoard's, W&B's or MLflow's. ``folder``: that of lockstep.enable_stages. ``trackers``: others
    (trackers.log_stages)."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, trackers: Iterable[Any] = ()) -> None:
        self._folder = folder
        self._given = list(trackers)
        self._job = StagesJob(folder)
        self._validation: Any = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        enable_stages(self._folder)  # In a process that was started since.

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self._validation = self._job.guard(_enter_validation)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        validation, self._validation = self._validation, None
        if validation is not None:
            validation.__exit__(None, None, None)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self._job.finish(self._given + (self._job.guard(lambda: _find_trackers(trainer.loggers)) or []))


def _enter_validation() -> Any:
    from .._trace import stage

    span = stage("validation")
    span.__enter__()
    return span


def _find_trackers(loggers: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for logger in loggers:
        names = {kind.__name__ for kind in type(logger).__mro__}
        if names & {"TensorBoardLogger", "WandbLogger"}:
            found.append(logger.experiment)
        elif "MLFlowLogger" in names:
            found.append(MlflowRun(logger.run_id, logger.experiment))
    return found
