"""A job that was read: its ranks, its raw events, and the answers of the passes."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

from . import _native
from ._errors import InvalidArgumentError, PartialWarning, in_words_of_python
from ._progress import ProgressOption, Reporter
from ._table import Table

PathOption = Union[str, "os.PathLike[str]"]


class Job(NamedTuple):
    """The job as a whole; None: not known.

    Attributes:
        rank_count: distinct ranks that were read.
        world_size: largest world size that a file or file name states.
        missing_rank_count: ranks below ``world_size`` without a trace.
        missing_ranks: those ranks, the first 1,000 of them.
        window_count: distinct windows.
        host_count: distinct hosts.
        backend: ``"nccl"``, ``"gloo"``, ...
        step_count: most steps that any rank has; 0 when no file marks steps.
        span_ns: first start to last end over all ranks of the first window, aligned clock.
        event_count: elements of all files' ``traceEvents``.
        passes: passes that ran, in order.
    """

    rank_count: int
    world_size: int | None
    missing_rank_count: int | None
    missing_ranks: tuple[int, ...]
    window_count: int
    host_count: int | None
    backend: str | None
    step_count: int
    span_ns: int
    event_count: int
    passes: tuple[str, ...]


class Track:
    """A lane of one CPU thread or device stream.

    Attributes:
        index: place in ``run.tracks(rank)``, and the value of ``track`` in ``run.events(rank)``.
        lane: ``"operators"``, ``"python"``, ``"runtime"`` (calls of the device runtime), ``"device"`` (kernels, copies,
            sets), ``"device_annotation"`` or ``"other"``.
        process_id, thread_id: as the file writes them; on device lanes device ordinal and stream.
        thread_name: as the file names it, or empty.
        device, stream: on device lanes; else None.
    """

    def __init__(self, run: _native.Run, rank: int, window: int, index: int, facts: dict[str, Any]) -> None:
        self._run = run
        self.rank = rank
        self.window = window
        self.index = index
        self.lane: str = facts["lane"]
        self.process_id: int = facts["process_id"]
        self.thread_id: int = facts["thread_id"]
        self.thread_name: str = facts["thread_name"]
        self.device: int | None = facts["device"]
        self.stream: int | None = facts["stream"]
        self._event_count: int = facts["event_count"]

    def __len__(self) -> int:
        return self._event_count

    @property
    def events(self) -> Table:
        """The track's events, not copied: start_ns (the rank's own clock), duration_ns, name, category and, on runtime and
        device lanes, correlation (0 = none). Sorted by start, longer first."""
        return Table([self._run.track_events(self.rank, self.window, self.index)])

    def __repr__(self) -> str:
        where = f"device {self.device} stream {self.stream}" if self.device is not None else f"thread {self.thread_id}"
        return f"<lockstep.Track {self.index}: {self.lane}, {where}, {len(self)} events>"


class Run:
    """A job's traces and what the passes make of them. Made by ``lockstep.load``.

    The passes run once, at the first question that needs them, on all threads and without the interpreter's lock; tracks
    and events need none. A run never changes, may be used by several threads, and stays in memory as long as anything that
    it handed out.

    Every table is a ``Table``: rows and columns as in docs/json.md.

    Attributes:
        paths: what it was loaded from.
    """

    def __init__(self, native: _native.Run, paths: tuple[str, ...] = ()) -> None:
        self._native = native
        self.paths = paths

    def _table(self, name: str) -> Table:
        return Table([self._native.table(name)])

    # The job.

    @property
    def job(self) -> Job:
        """Facts of the job as a whole."""
        return Job(**self._native.job())

    @property
    def ranks(self) -> Table:
        """A row for each trace file: rank, window, host, device, source, event_count, first_ns, last_ns, ..."""
        return self._table("ranks")

    @property
    def ledger(self) -> Table:
        """Everything that was repaired, skipped, guessed or refused, with file, rank, byte offset and advice."""
        return self._table("ledger")

    @property
    def partial(self) -> bool:
        """Whether ranks or parts of files are missing (exit status 4 of the command)."""
        return self._native.partial()

    def clocks(self) -> Table:
        """How each rank's clock was put on the common one: basis, offset_ns, uncertainty_ns, drift_ppm, ..."""
        return self._table("clocks")

    # The passes.

    def analyze(self) -> dict[str, Table]:
        """Runs the passes now, unless they have run, and returns the tables of all that ran, by name."""
        self._native.analyze()
        ran = set(self.job.passes)
        return {name: self._table(name) for name in _native.table_names() if _native.pass_of_table(name) in ran | {""}}

    def breakdown(self) -> Table:
        """Where each rank's time went over its window: a row per rank; span, busy, compute, communication (exposed and
        overlapped), copies, idle, in ns."""
        return self._table("breakdown")

    def steps(self) -> Table:
        """The same for each step of each rank; no rows when the files mark no steps (see ``step_name`` of load)."""
        return self._table("steps")

    def idle(self) -> Table:
        """Idle time between a stream's events by cause, in ns: a row per rank, device and stream."""
        return self._table("idle")

    def idle_host(self) -> Table:
        """What the host was doing while the whole device was idle, in ns: a row per rank."""
        return self._table("idle_host")

    def kernels(self) -> Table:
        """Kernels, copies and sets by name and rank: count, total, mean, min, max, stddev in ns; largest total first."""
        return self._table("kernels")

    def operators(self) -> Table:
        """Operators by name and rank: count and self and total time on CPU and device, in ns."""
        return self._table("operators")

    def collectives(self) -> Table:
        """A row for each collective over all ranks. ``ranks``, ``arrival_ns``, ``end_ns``, ``wait_ns`` and ``duration_ns``
        hold an array a row, parallel to each other; times are on the aligned clock."""
        return self._table("collectives")

    def collective_members(self) -> Table:
        """The same as plain columns: a row for each rank of each collective."""
        return self._table("collective_members")

    def stragglers(self) -> Table:
        """Each rank's part in waiting, most waiting given first; ``activities`` says what it did before it arrived."""
        return self._table("stragglers")

    def imbalance(self) -> Table:
        """Spread over the ranks: a row per quantity, in that quantity's unit; none for a single rank."""
        return self._table("imbalance")

    def memory(self) -> Table:
        """The caching allocator's peaks and counts, in bytes: a row per rank and device; none where not recorded."""
        return self._table("memory")

    def launch(self) -> Table:
        """Delays from launch call to device, in ns: a row per rank with device events."""
        return self._table("launch")

    def queues(self) -> Table:
        """Lengths of launch queues: a row per rank, device and stream."""
        return self._table("queues")

    def groups(self) -> Table:
        """Process groups: what each is for, how sure that is, and what it costs."""
        return self._table("groups")

    def group_operations(self) -> Table:
        """Collectives of each group by operation."""
        return self._table("group_operations")

    def ddp(self) -> Table:
        """Gradient buckets of each rank: how much of their exchange is hidden behind the backward pass."""
        return self._table("ddp")

    def ddp_buckets(self) -> Table:
        """The same by bucket."""
        return self._table("ddp_buckets")

    def fsdp(self) -> Table:
        """Gathers of sharded weights and scattered gradients, by rank and group."""
        return self._table("fsdp")

    def pipeline(self) -> Table:
        """Bubbles, micro-batches and schedule of each pipeline stage's ranks."""
        return self._table("pipeline")

    def moe(self) -> Table:
        """Exchanges of experts by group: how even the bytes of their all_to_alls are."""
        return self._table("moe")

    def moe_ranks(self) -> Table:
        """The same by rank."""
        return self._table("moe_ranks")

    def inference(self) -> Table:
        """Marked prefill and decode phases by rank: times and tails, tokens per second, device use."""
        return self._table("inference")

    def inference_requests(self) -> Table:
        """Marked requests by rank: latency and time to the first token."""
        return self._table("inference_requests")

    def regions(self) -> Table:
        """Ranges that the program marks (record_function, NVTX) by rank and name: CPU, device, pace."""
        return self._table("regions")

    def region_balance(self) -> Table:
        """The same names over all ranks: means, and the rank with most."""
        return self._table("region_balance")

    def counters(self) -> Table:
        """Hardware metrics of devices and what the program counts, by rank and name: mean over time, quantiles."""
        return self._table("counters")

    def counter_balance(self) -> Table:
        """The same names over all ranks: means, and who has least and most."""
        return self._table("counter_balance")

    def flops(self) -> Table:
        """Matrix operators of each rank and its use of the device."""
        return self._table("flops")

    def flops_by_operator(self) -> Table:
        """The same by operator and shape."""
        return self._table("flops_by_operator")

    def kernel_launches(self) -> Table:
        """Launches that Nsight Compute measured, of tables beside the traces: what bounds each."""
        return self._table("kernel_launches")

    def kernel_rooflines(self) -> Table:
        """The same launches under the roofline of each kind of arithmetic that they did."""
        return self._table("kernel_rooflines")

    def kernel_sums(self) -> Table:
        """Names that `nsys stats` sums up, over all reports beside the traces."""
        return self._table("kernel_sums")

    def stage_scopes(self) -> Table:
        """What `lockstep run --stages` recorded beside the traces: over all steps, and over those that are traced."""
        return self._table("stage_scopes")

    def stage_shares(self) -> Table:
        """What each stage adds to a step."""
        return self._table("stage_shares")

    def stage_agreement(self) -> Table:
        """What both the stages and the traces answer, and why they differ."""
        return self._table("stage_agreement")

    def wait_states(self) -> dict[str, Any]:
        """Who waited for whom, and the first causes, as ``data.wait_states`` of docs/json.md: it nests too deep for a table."""
        answer: dict[str, Any] = json.loads(self.to_json())["data"]["wait_states"]
        return answer

    def critical_path(self) -> dict[str, Any]:
        """The chain of work that fixes each step's time, as ``data.critical_path`` of docs/json.md."""
        answer: dict[str, Any] = json.loads(self.to_json())["data"]["critical_path"]
        return answer

    def findings(self) -> Table:
        """What is wrong, for whom, how that is known and what to do; largest gain (``gain_ns_per_step``) first."""
        return self._table("findings")

    # The raw events.

    def tracks(self, rank: int, window: int = 0) -> list[Track]:
        """The tracks of a rank's trace, by lane, process and thread. InvalidArgumentError: no such rank or window."""
        return [
            Track(self._native, rank, window, index, facts)
            for index, facts in enumerate(self._native.tracks(rank, window))
        ]

    def events(self, rank: int, window: int = 0, lane: str | None = None) -> Table:
        """The events of a rank, track after track: track, start_ns (the rank's own clock), duration_ns, name, category,
        correlation (0 = none). ``lane`` picks the tracks of one lane, such as ``"device"``.

        An Arrow stream of it has a batch for each track and copies nothing but ``track``. NumPy and pandas want a column in
        one piece: with several tracks it is put together at first use. ``run.tracks(rank)[i].events`` copies nothing.
        InvalidArgumentError: no such rank, window or lane.
        """
        tracks = self._native.tracks(rank, window)
        if lane is not None and lane not in _LANES:
            raise InvalidArgumentError(f"no lane is named {lane!r}; there are {', '.join(_LANES)}", "invalid_argument")
        chosen = [index for index, facts in enumerate(tracks) if lane is None or facts["lane"] == lane]
        return Table(self._native.joined_events(rank, window, chosen))

    def memory_events(self, rank: int, window: int = 0) -> Table:
        """The allocator's counters as they were recorded, not copied: time_ns (the rank's own clock), change_bytes,
        allocated_bytes and reserved_bytes (-1: not recorded), device (-1 = CPU)."""
        return Table([self._native.memory_events(rank, window)])

    # As the command.

    def to_json(self) -> str:
        """Byte for byte what ``lockstep analyze --json`` prints for the same files and options (docs/json.md)."""
        return self._native.json()

    def to_text(
        self,
        sections: Sequence[str] = (),
        *,
        width: int = 80,
        top: int = 10,
        rank: int | None = None,
        step: int | None = None,
        ascii: bool = False,
    ) -> str:
        """What ``lockstep analyze`` prints: the first screen, then ``sections`` (``["all"]``: all of them)."""
        if not 40 <= width <= 1000:
            raise InvalidArgumentError(f"width {width} is not within 40 to 1000 columns", "invalid_argument")
        return self._native.text(
            width=width, unicode=not ascii, top=top, sections=list(sections), rank=rank, step=step
        )

    # Other ways to look.

    def query(self, sql: str, *, timeout_s: float | None = None, memory_bytes: int = 1 << 30) -> Table:
        """What one statement of SQLite's SQL answers, over the tables of docs/query.md.

        The SQL only reads: it can neither write nor open a file. A column is int64 where all its values are whole numbers,
        float64 where some are not, else text; units are taken from the ends of names (``_ns``, ``_bytes``, ...). Queries of a
        process run one after another; Control-C ends one.

        InvalidArgumentError: wrong SQL, with the place. LimitExceededError: longer than ``timeout_s`` seconds, or more than
        ``memory_bytes`` for sorting and grouping.
        """
        return Table([self._native.query(sql, timeout_s=timeout_s, memory_bytes=memory_bytes)])

    def save_report(self, path: PathOption, *, page_bytes: int = 64 << 20) -> None:
        """Writes the page of ``lockstep analyze -o``: one HTML file that needs no network, of at most ``page_bytes``.

        What does not fit is left out, and the page says so. The file appears whole or not at all.
        PermissionDeniedError, NotFoundError, ReadError: the file can not be written.
        """
        whole = os.path.realpath(os.fspath(path))
        if os.path.isdir(whole):
            raise InvalidArgumentError(f"{whole}: is a folder; name a file in it", "invalid_argument", whole)
        part = f"{whole}.part{os.getpid()}-{threading.get_ident()}"
        try:
            self._native.write_page(part, page_bytes=page_bytes)
            os.replace(part, whole)
        finally:
            if os.path.exists(part):
                os.unlink(part)

    def __repr__(self) -> str:
        from ._repr import run_text

        return run_text(self)

    def _repr_html_(self) -> str:
        from ._repr import run_html

        return run_html(self)


_LANES = ("operators", "python", "runtime", "device", "device_annotation", "other")


def passes() -> dict[str, str]:
    """The passes there are, and the question that each answers."""
    return dict(_native.passes())


def load(
    *paths: PathOption | Iterable[PathOption],
    step_name: str = "",
    threads: int = 0,
    progress: ProgressOption = None,
    passes: Sequence[str] = (),
    drop_last_step: bool = False,
    communication_kernels: Sequence[str] = (),
    kernel_wait_threshold_ns: int = 30_000,
    communication_threshold: float = 0.30,
    imbalance_threshold: float = 0.10,
    memory_imbalance_threshold: float = 0.20,
    max_json_bytes: int = 1 << 40,
    max_compression_ratio: int = 2000,
) -> Run:
    """Reads the traces of a job.

    Args:
        paths: trace files (.json, .json.gz, .json.zst), folders and archives of them, in any mix.
        step_name: steps are the annotations of this name; empty: ``ProfilerStep#N``.
        threads: threads to read and analyse with; 0: one per processor.
        progress: None: a bar in a notebook, a line on a terminal, nothing elsewhere, and nothing in the first second; True:
            elsewhere too, a line every ten seconds; False: never; a callable: it is called with a ``Progress`` about ten
            times a second, and what it raises ends the load.
        passes: run only these passes and what they need (all); see ``lockstep.passes()``.
        drop_last_step: leave the last step out, as Holistic Trace Analysis does.
        communication_kernels: kernels with one of these texts in their names count as communication.
        kernel_wait_threshold_ns: idle gaps below this are kernel wait.
        communication_threshold: finding: exposed communication over compute, as a ratio.
        imbalance_threshold, memory_imbalance_threshold: finding: max / mean - 1 over ranks.
        max_json_bytes: stop reading a file past this many bytes of JSON.
        max_compression_ratio: stop reading a file that unpacks to more than this many times its size.

    Returns:
        The run. The passes run at the first question.

    Raises:
        NotFoundError: a path does not exist, or nothing was found below it.
        CorruptDataError, UnsupportedError, PermissionDeniedError, ...: the one file that was asked for can not be read, or
            not one file is a trace. Where some can be read the run has those, and a ``PartialWarning`` names the others.
        KeyboardInterrupt: reading was interrupted; it ends within the time of one window.
    """
    wanted: list[str] = []
    for path in paths:
        if isinstance(path, (str, os.PathLike)):
            wanted.append(os.fspath(path))
        else:
            wanted.extend(os.fspath(each) for each in path)
    if not wanted:
        raise InvalidArgumentError("load() needs at least one path: a trace file, or a folder of them", "invalid_argument")
    if isinstance(passes, str) or isinstance(communication_kernels, str):
        raise InvalidArgumentError("passes and communication_kernels are lists of texts, not one text", "invalid_argument")
    with Reporter(progress) as reporter:
        native = _native.load(
            wanted,
            on_progress=reporter if reporter.wanted else None,
            threads=threads,
            passes=list(passes),
            step_name=step_name,
            drop_last_step=drop_last_step,
            communication_kernels=list(communication_kernels),
            kernel_wait_threshold_ns=kernel_wait_threshold_ns,
            communication_threshold=communication_threshold,
            imbalance_threshold=imbalance_threshold,
            memory_imbalance_threshold=memory_imbalance_threshold,
            max_json_bytes=max_json_bytes,
            max_compression_ratio=max_compression_ratio,
        )
    if native.partial_as_read():
        warnings.warn(partial_text(native.ledger_as_read()), PartialWarning, stacklevel=2)
    return Run(native, tuple(wanted))


def partial_text(ledger: list[dict[str, Any]], limit: int = 5) -> str:
    """What is missing from a run, and why, for the warning."""
    lines = []
    for entry in ledger:
        if entry["severity"] == "error" or entry["code"] == "missing_ranks":
            where = ": ".join(
                part for part in (entry["source"], f"rank {entry['rank']}" if entry["rank"] is not None else None) if part
            )
            advice = f"; {entry['advice']}" if entry["advice"] else ""
            lines.append(f"{where}: {entry['message']}{advice}" if where else f"{entry['message']}{advice}")
    if len(lines) > limit:
        lines[limit:] = [f"and {len(lines) - limit} more; see run.ledger"]
    return in_words_of_python("the run is partial: " + ("\n  ".join(lines) if lines else "see run.ledger"))
