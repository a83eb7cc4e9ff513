"""What all frameworks share: stages are switched on before the first step, and told once training has ended."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .._stages import enable_stages
from . import trackers

__all__ = ["StagesJob", "read_stages"]

_PATIENCE_S = 300
_PARTIAL = 4  # Exit status: something is missing; what there is was told.


def _find_program() -> str:
    """LOCKSTEP_BINARY, the one that the build tree has beside the package, or the one in PATH."""
    beside = pathlib.Path(__file__).resolve().parents[3] / "bin" / "lockstep"
    found = os.environ.get("LOCKSTEP_BINARY") or (str(beside) if os.access(beside, os.X_OK) else shutil.which("lockstep"))
    if not found:
        raise FileNotFoundError("the program lockstep is not in PATH, nor does LOCKSTEP_BINARY name it")
    return found


def read_stages(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What ``lockstep stages --json FOLDER`` says: lockstep.stages/1 (docs/stages.md). The job may run."""
    done = subprocess.run([_find_program(), "stages", "--json", os.fspath(folder)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode not in (0, _PARTIAL):
        raise RuntimeError(done.stderr.strip().removeprefix("lockstep: ") or f"lockstep stages: status {done.returncode}")
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


class StagesJob:
    """One process of the job. Nothing here raises: what goes wrong is said, once."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._has_complained = False
        self.is_on = enable_stages(folder)
        if not self.is_on:
            self.complain("the stages of this process's steps cannot be marked: is the compiled part of lockstep there?")

    def complain(self, why: BaseException | str) -> None:
        if not self._has_complained:
            self._has_complained = True
            print(f"lockstep: {why if isinstance(why, str) else f'{type(why).__name__}: {why}'}", file=sys.stderr, flush=True)

    def guard(self, call: Callable[[], Any]) -> Any:
        """What it gives; None where it fails."""
        try:
            return call()
        except Exception as error:
            self.complain(error)
            return None

    def finish(self, targets: Iterable[Any] = ()) -> dict[str, Any] | None:
        """On one rank, when training has ended: prints the verdict and logs it to `targets` (trackers.log_stages). Under `lockstep run
        --stages` that prints it, once the job has ended."""
        return self.guard(lambda: self._finish(list(targets))) if self.is_on else None

    def _finish(self, targets: list[Any]) -> dict[str, Any]:
        folder = pathlib.Path(os.environ["LOCKSTEP_TRACE"])
        summary = read_stages(folder)
        if not os.environ.get("LOCKSTEP_RUN_STEPS"):
            (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
            data = summary["data"]
            lines = [row["sentence"] for row in (data["verdict"], *data["changes"], *data["memory"]["findings"])]
            lines += [f"{row['message']}: {row['advice']}" for row in summary["ledger"] if row.get("severity") != "info"]
            # Not by print, which Ray's workers have twice.
            sys.stderr.write("".join(f"lockstep: {line}\n" for line in (*lines, f"lockstep stages {folder}")))
            sys.stderr.flush()
        for target in targets:
            self.guard(functools.partial(trackers.log_stages, summary, target))
        return summary
