"""Ray Train: ``TorchTrainer(lockstep.integrations.ray.stages(train_loop), ...)`` (docs/frameworks.md)."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

from ._job import StagesJob
from .trackers import summary_scalars, summary_texts

__all__ = ["stages"]


def stages(train_loop_per_worker: Callable[..., Any], folder: str | os.PathLike[str] | None = None, *, report: bool = True) -> Callable[..., Any]:
    """Marks the stages of each worker's steps; when the loop has ended, rank 0 says which rank and which stage cost the job time, on standard
    error. ``report``: and all report once more, what they reported last and the summary, so that it is in the result's metrics.
    ``folder``: on each worker's node; else ``lockstep-stages`` where this is called."""
    where = os.path.abspath(folder or os.environ.get("LOCKSTEP_TRACE") or "lockstep-stages")

    @functools.wraps(train_loop_per_worker)
    def loop(*arguments: Any) -> Any:
        return importlib.import_module("lockstep.integrations.ray")._run(train_loop_per_worker, arguments, where, report)

    return loop


def _run(loop: Callable[..., Any], arguments: tuple[Any, ...], folder: str, wants_report: bool) -> Any:
    """In a worker."""
    train: Any = importlib.import_module("ray.train")
    job = StagesJob(folder)
    last: dict[str, Any] = {}
    original = train.report

    @functools.wraps(original)
    def report(metrics: dict[str, Any], *rest: Any, **options: Any) -> Any:
        last.clear()
        last.update(metrics)
        return original(metrics, *rest, **options)

    train.report = report
    try:
        result = loop(*arguments)
    finally:
        train.report = original
    summary = job.finish() if train.get_context().get_world_rank() == 0 else None
    if wants_report:
        job.guard(lambda: original({**last, **summary_scalars(summary), **summary_texts(summary)} if summary else last))
    return result
