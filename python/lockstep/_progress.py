"""How far a load is: a line on a terminal, a bar in a notebook, silence elsewhere."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TextIO, Union

SILENT_S = 1.0
"""Nothing is shown of a load that is over sooner."""
INTERVAL_S = 0.1


class Progress(NamedTuple):
    """A moment of a load.

    Attributes:
        consumed_bytes, total_bytes: of the files as they lie on disk, compressed or not.
        json_bytes: unpacked so far.
        event_count: events read so far.
        finished_file_count, file_count: files.
        elapsed_s: seconds since the load began.
    """

    consumed_bytes: int
    total_bytes: int
    json_bytes: int
    event_count: int
    finished_file_count: int
    file_count: int
    elapsed_s: float

    @property
    def ratio(self) -> float | None:
        """Share of the bytes that has been read, 0..1; None while unknown."""
        return min(1.0, self.consumed_bytes / self.total_bytes) if self.total_bytes > 0 else None

    def __str__(self) -> str:
        text = f"reading  {self.finished_file_count}/{self.file_count} files"
        if self.elapsed_s > 0:
            rate = self.json_bytes / self.elapsed_s
            text += f"  {rate / 1e9:.2f} GB/s" if rate >= 1e9 else f"  {rate / 1e6:.0f} MB/s"
            text += f"  {self.event_count / self.elapsed_s / 1e6:.1f} M events/s"
        if self.ratio:
            text += f"  {self.elapsed_s * (1 / self.ratio - 1):.1f} s left"
        return text


ProgressOption = Union[bool, Callable[[Progress], object], None]


class Display(Protocol):
    """What shows progress."""

    def update(self, progress: Progress) -> None: ...

    def close(self) -> None: ...


class TerminalLine:
    """One line that is rewritten, and wiped at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False

    def update(self, progress: Progress) -> None:
        self._stream.write(f"\r{progress}\x1b[K")
        self._stream.flush()
        self._shown = True

    def close(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class PlainLines:
    """A line now and then, where lines can not be rewritten."""

    PERIOD_S = 10.0

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_s = 0.0

    def update(self, progress: Progress) -> None:
        if progress.elapsed_s >= self._next_s:
            self._stream.write(f"{progress}\n")
            self._stream.flush()
            self._next_s = progress.elapsed_s + self.PERIOD_S

    def close(self) -> None:
        pass


def progress_html(progress: Progress) -> str:
    """A bar of plain HTML: no widgets, no scripts."""
    import html

    share = progress.ratio or 0.0
    return (
        '<div style="font:13px system-ui,sans-serif;margin:4px 0">'
        f'<progress max="1" value="{share:.4f}" style="width:16em;vertical-align:middle"></progress> '
        f"{html.escape(str(progress))}</div>"
    )


class NotebookBar:
    """A bar in the cell's output, gone at the end."""

    def __init__(self, display: Callable[..., Any], make_html: Callable[[str], Any]) -> None:
        self._display = display
        self._make_html = make_html
        self._handle: Any = None

    def update(self, progress: Progress) -> None:
        shown = self._make_html(progress_html(progress))
        if self._handle is None:
            self._handle = self._display(shown, display_id=True)
        elif self._handle is not None:
            self._handle.update(shown)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update(self._make_html(""))


def notebook_bar() -> NotebookBar | None:
    """A bar, when this runs in a notebook's kernel; not in IPython's terminal, and not without IPython."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return None
    shell = ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    parts = importlib.import_module("IPython.display")
    return NotebookBar(parts.display, parts.HTML)


def choose_display(option: ProgressOption) -> Display | None:
    """What `option` of load() asks for; None: show nothing."""
    if option is False or callable(option):
        return None
    bar = notebook_bar()
    if bar is not None:
        return bar
    stream = sys.stderr
    if stream is not None and stream.isatty():
        return TerminalLine(stream)
    return PlainLines(stream) if option is True and stream is not None else None


class Reporter:
    """Takes what the reader says and passes it on, as a context manager that closes the display."""

    def __init__(self, option: ProgressOption) -> None:
        self._callback = option if callable(option) else None
        self._display = choose_display(option)
        self._start = time.monotonic()
        self._next = self._start + SILENT_S

    @property
    def wanted(self) -> bool:
        return self._callback is not None or self._display is not None

    def __call__(
        self,
        consumed_bytes: int,
        total_bytes: int,
        json_bytes: int,
        event_count: int,
        finished_file_count: int,
        file_count: int,
    ) -> None:
        now = time.monotonic()
        progress = Progress(
            consumed_bytes, total_bytes, json_bytes, event_count, finished_file_count, file_count, now - self._start
        )
        if self._callback is not None:
            self._callback(progress)
        elif self._display is not None and now >= self._next:
            self._display.update(progress)
            self._next = now + INTERVAL_S

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._display is not None:
            self._display.close()
