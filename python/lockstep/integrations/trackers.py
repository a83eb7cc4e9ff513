"""What ``lockstep stages`` says of a job, in the trackers of experiments:

    from lockstep.integrations.trackers import log_stages

    log_stages("stages/", wandb.run)                          # also SummaryWriter(...), mlflow, OTLPMetricExporter(...)

The names are the same everywhere (docs/frameworks.md#trackers).
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["MlflowRun", "Window", "log_stages", "summary_scalars", "summary_texts", "windows"]

_MOST_RANKS = 64  # Of those that cost most.
_MOST_RANKS_OVER_TIME = 8
_MLFLOW_BATCH = 1000  # Its servers take no more at once.


@dataclasses.dataclass(frozen=True)
class Window:
    """Steps one after another."""

    last_step: int
    duration_ns: int
    values: dict[str, float]


@dataclasses.dataclass(frozen=True)
class MlflowRun:
    """Where only the run's id is known, or its client is not the default one."""

    run_id: str
    client: Any = None


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _seen_stages(data: dict[str, Any]) -> list[tuple[int, str]]:
    """Place and name of those that took time at all: the others may not have been measured."""
    return [(place, row["stage"]) for place, row in enumerate(data["stages"]) if any(row["rank_ns"]) or row["frontier_ns"]]


def _costly_ranks(data: dict[str, Any], most: int) -> list[tuple[int, int, int]]:
    """Place, rank and cost of those that cost the job time, the one that costs most first."""
    costs = [(place, row["rank"], sum(stage["cost_ns"][place] for stage in data["stages"])) for place, row in enumerate(data["ranks"])]
    return sorted((row for row in costs if row[2] > 0), key=lambda row: -row[2])[:most]


def summary_scalars(summary: dict[str, Any]) -> dict[str, float]:
    """Of the whole job, by name. Shares are of the job's time, 0..1."""
    data = summary["data"]
    total_ns, step_count, verdict = data["total_ns"], data["step_count"], data["verdict"]
    scalars: dict[str, float] = {
        "lockstep/summary/step_count": step_count,
        "lockstep/summary/rank_count": len(data["ranks"]),
        "lockstep/summary/cost_share": verdict["cost_ratio"],
        "lockstep/summary/confidence": verdict["confidence"],
    }
    if verdict["rank"] is not None:
        scalars["lockstep/summary/straggler_rank"] = verdict["rank"]
    if step_count:
        scalars["lockstep/summary/step_ms"] = total_ns / step_count / 1e6
    for place, stage in _seen_stages(data):
        row = data["stages"][place]
        scalars[f"lockstep/summary/stage/{stage}_share"] = _share(row["frontier_ns"], total_ns)
        scalars[f"lockstep/summary/stage/{stage}_imbalance_share"] = _share(row["imbalance_ns"], total_ns)
    for _, rank, cost_ns in _costly_ranks(data, _MOST_RANKS):
        scalars[f"lockstep/summary/rank/{rank}/cost_share"] = _share(cost_ns, total_ns)
    return scalars


def summary_texts(summary: dict[str, Any]) -> dict[str, str]:
    """The verdict, and what else is said in sentences."""
    data = summary["data"]
    texts = {"lockstep/verdict": data["verdict"]["sentence"], "lockstep/answer": data["verdict"]["answer"]}
    if data["verdict"]["stage"] is not None:
        texts["lockstep/stage"] = data["verdict"]["stage"]
    for name, rows in (("changes", data["changes"]), ("memory", data["memory"]["findings"])):
        if rows:
            texts[f"lockstep/{name}"] = "\n".join(row["sentence"] for row in rows)
    return texts


def windows(summary: dict[str, Any]) -> Iterator[Window]:
    """The job's steps over time. Every window has the same names, but for `costly_rank`, where no rank costs anything."""
    data = summary["data"]
    stages, costly = _seen_stages(data), _costly_ranks(data, _MOST_RANKS_OVER_TIME)
    for row in data["windows"]:
        count = row["step_count"]
        values: dict[str, float] = {"lockstep/step_ms": row["ns"] / count / 1e6, "lockstep/cost_ms": row["cost_ns"] / count / 1e6}
        if row["rank"] is not None:
            values["lockstep/costly_rank"] = row["rank"]
        for place, stage in stages:
            values[f"lockstep/stage/{stage}_share"] = _share(row["frontier_ns"][place], row["ns"])
        for place, rank, _ in costly:
            values[f"lockstep/rank/{rank}/cost_ms"] = row["rank_cost_ns"][place] / count / 1e6
        yield Window(row["last_step"], row["ns"], values)


def log_stages(stages: dict[str, Any] | str | os.PathLike[str], *targets: Any, end_unix_ns: int | None = None) -> dict[str, Any]:
    """Logs what ``lockstep stages`` says to trackers, and gives it back. ``stages``: that, or a file of it, or the folder of what the
    ranks recorded. A target is a run of W&B, a SummaryWriter of TensorBoard, the module mlflow (its active run), a run of MLflow or an
    MlflowRun, or an exporter of OpenTelemetry's metrics. The last one wants to be told times, and no clock is recorded: training ended at
    ``end_unix_ns``, else now."""
    if not isinstance(stages, dict):
        if pathlib.Path(stages).is_file():
            stages = json.loads(pathlib.Path(stages).read_text(encoding="utf-8"))
        else:
            from ._job import read_stages

            stages = read_stages(stages)
    assert isinstance(stages, dict)
    for target in targets:
        if hasattr(target, "add_scalar"):
            _log_to_tensorboard(stages, target)
        elif hasattr(target, "define_metric"):
            _log_to_wandb(stages, target)
        elif isinstance(target, MlflowRun):
            _log_to_mlflow(stages, target)
        elif hasattr(target, "active_run"):
            run = target.active_run()
            if run is None:
                raise ValueError("MLflow has no active run")
            _log_to_mlflow(stages, MlflowRun(run.info.run_id))
        elif hasattr(target, "info") and hasattr(target.info, "run_id"):
            _log_to_mlflow(stages, MlflowRun(target.info.run_id))
        elif hasattr(target, "export"):
            _log_to_otlp(stages, target, time.time_ns() if end_unix_ns is None else end_unix_ns)
        else:
            raise TypeError(f"{type(target).__name__} is no tracker that lockstep knows")
    return stages


def _last_step(summary: dict[str, Any]) -> int:
    return int(max((row["last_step"] for row in summary["data"]["windows"]), default=0))


def _log_to_tensorboard(summary: dict[str, Any], writer: Any) -> None:
    for window in windows(summary):
        for name, value in window.values.items():
            writer.add_scalar(name, value, window.last_step)
    last_step = _last_step(summary)
    for name, value in summary_scalars(summary).items():
        writer.add_scalar(name, value, last_step)
    for name, text in summary_texts(summary).items():
        writer.add_text(name, text, last_step)
    writer.flush()


def _log_to_wandb(summary: dict[str, Any], run: Any) -> None:
    # Its own step only grows, and has come to the end of the training.
    run.define_metric("lockstep/step")
    run.define_metric("lockstep/*", step_metric="lockstep/step")
    for window in windows(summary):
        run.log({"lockstep/step": window.last_step, **window.values})
    run.summary.update({**summary_scalars(summary), **summary_texts(summary)})


def _log_to_mlflow(summary: dict[str, Any], run: MlflowRun) -> None:
    client = run.client or importlib.import_module("mlflow").MlflowClient()
    entities = importlib.import_module("mlflow.entities")
    now_ms = time.time_ns() // 1_000_000
    rows = [(summary_scalars(summary), _last_step(summary))] + [(window.values, window.last_step) for window in windows(summary)]
    metrics = [entities.Metric(name, float(value), now_ms, step) for values, step in rows for name, value in values.items()]
    for first in range(0, len(metrics), _MLFLOW_BATCH):
        client.log_batch(run.run_id, metrics=metrics[first : first + _MLFLOW_BATCH])
    for name, text in summary_texts(summary).items():
        client.set_tag(run.run_id, name.replace("/", "."), text)


def _log_to_otlp(summary: dict[str, Any], exporter: Any, end_unix_ns: int) -> None:
    """Gauges: a point each window, at the time of its end."""
    metrics = importlib.import_module("opentelemetry.sdk.metrics.export")
    resources = importlib.import_module("opentelemetry.sdk.resources")
    scopes = importlib.import_module("opentelemetry.sdk.util.instrumentation")
    points: dict[str, list[Any]] = {}

    def add(name: str, time_ns: int, value: float, attributes: dict[str, str] | None = None) -> None:
        points.setdefault(name, []).append(metrics.NumberDataPoint(attributes or {}, None, time_ns, value))

    at_ns = end_unix_ns - sum(row["ns"] for row in summary["data"]["windows"])
    for window in windows(summary):
        at_ns += window.duration_ns
        add("lockstep/step", at_ns, window.last_step)
        for name, value in window.values.items():
            add(name, at_ns, value)
    for name, value in summary_scalars(summary).items():
        add(name, end_unix_ns, value)
    add("lockstep/verdict", end_unix_ns, 1, {name.rpartition("/")[2]: text for name, text in summary_texts(summary).items()})
    gauges = [metrics.Metric(name, "", "ms" if name.endswith("_ms") else "1", metrics.Gauge(data)) for name, data in points.items()]
    scope = metrics.ScopeMetrics(scopes.InstrumentationScope("lockstep"), gauges, "")
    result = exporter.export(metrics.MetricsData([metrics.ResourceMetrics(resources.Resource.create(), [scope], "")]))
    if result is not metrics.MetricExportResult.SUCCESS:
        raise RuntimeError("the collector of OpenTelemetry's metrics did not take them")
