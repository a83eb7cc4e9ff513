"""Two runs held against each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import InvalidArgumentError
from ._run import PathOption, Run, load

if TYPE_CHECKING:
    import pandas as pd


class Comparison:
    """What differs from run ``a`` to run ``b``, and whether it is more than noise. Made by ``lockstep.compare``.

    ``data`` holds the tables of docs/json.md (``lockstep.compare/1``) as Python objects; ``frame(name)`` makes a pandas frame
    of one of them.
    """

    def __init__(self, native: _native.Comparison) -> None:
        self._native = native
        self._document: dict[str, Any] | None = None

    @property
    def document(self) -> dict[str, Any]:
        """All of it: schema, partial, data, ledger."""
        if self._document is None:
            self._document = json.loads(self._native.json())
        return self._document

    @property
    def data(self) -> dict[str, Any]:
        """The tables by name."""
        tables: dict[str, Any] = self.document["data"]
        return tables

    @property
    def change(self) -> str:
        """``"faster"``, ``"slower"``, ``"none"``, or ``"unknown"``: too few steps to tell."""
        return str(self.data["verdict"]["change"])

    @property
    def verdict(self) -> str:
        """One sentence."""
        return str(self.data["verdict"]["sentence"])

    def frame(self, name: str) -> pd.DataFrame:
        """A table of ``data`` that has rows, such as ``"names"``; nested objects become columns like ``step.a``."""
        import pandas as pd

        rows = self.data.get(name)
        if not isinstance(rows, list):
            tables = ", ".join(key for key, value in self.data.items() if isinstance(value, list))
            raise InvalidArgumentError(f"the comparison has no table {name!r}; it has {tables}", "invalid_argument")
        return pd.json_normalize(rows)

    def to_json(self) -> str:
        """Byte for byte what ``lockstep compare --json`` prints for the same paths and options."""
        return self._native.json()

    def to_text(self, *, width: int = 80, top: int = 5, ascii: bool = False) -> str:
        """What ``lockstep compare`` prints."""
        if not 40 <= width <= 1000:
            raise InvalidArgumentError(f"width {width} is not within 40 to 1000 columns", "invalid_argument")
        return self._native.text(width=width, unicode=not ascii, top=top)

    def __repr__(self) -> str:
        return f"<lockstep.Comparison: {self.verdict}>"

    def _repr_html_(self) -> str:
        from ._repr import text_html

        return text_html(self.to_text(width=110))


def compare(
    a: Run | PathOption,
    b: Run | PathOption,
    *,
    skip_steps: int = 1,
    steps: tuple[int, int] | int | None = None,
    confidence: float = 0.99,
    minimum_effect: float = 0.01,
    labels: Sequence[str] | None = None,
    threads: int = 0,
) -> Comparison:
    """Holds two runs against each other, step by step (docs/metrics.md#compare).

    Args:
        a, b: runs, or paths, which are read with the defaults of ``load``.
        skip_steps: steps left out at the start of each run, as warm-up.
        steps: only these, by their numbers in the traces: one, or (first, last).
        confidence: of the intervals and of the verdict, above 0.5 and below 1.
        minimum_effect: smaller differences of the step do not count, as a ratio.
        labels: what to call the two; else the paths they were loaded from.
        threads: for runs that are read here.

    Raises:
        FailedPreconditionError: a run was loaded with only some passes.
        InvalidArgumentError: a run has none of ``steps``; a number makes no sense.
        Errors of ``load``.
    """
    if skip_steps < 0 or not 0.5 <= confidence < 1 or not 0 <= minimum_effect <= 1:
        raise InvalidArgumentError("skip_steps is at least 0, confidence 0.5 to below 1, minimum_effect 0 to 1", "invalid_argument")
    if labels is not None and (isinstance(labels, str) or len(labels) != 2):
        raise InvalidArgumentError("labels are two texts", "invalid_argument")
    first, last = (steps, steps) if isinstance(steps, int) else steps if steps is not None else (None, None)
    runs = [each if isinstance(each, Run) else load(each, threads=threads) for each in (a, b)]
    names = list(labels) if labels is not None else [" ".join(run.paths) for run in runs]
    return Comparison(
        _native.compare(
            runs[0]._native,
            names[0],
            runs[1]._native,
            names[1],
            skip_steps=skip_steps,
            first_step=first,
            last_step=last,
            confidence=confidence,
            minimum_effect=minimum_effect,
        )
    )
