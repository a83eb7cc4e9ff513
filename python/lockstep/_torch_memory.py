"""What PyTorch's allocator says of a device's memory, as counters of the rank (docs/instrument.md)."""

import sys
from typing import Any

from . import _spans

# What torch.cuda.memory_stats() calls it, and the counter of that: docs/daemon-metrics.md.
_COUNTERS = (
    ("allocated_bytes.all.current", "torch_memory_allocated_bytes"),
    ("reserved_bytes.all.current", "torch_memory_reserved_bytes"),
    ("allocated_bytes.all.peak", "torch_memory_peak_bytes"),
    ("num_alloc_retries", "torch_alloc_retries"),
    ("num_ooms", "torch_ooms"),
)


def torch_memory(device: Any = None) -> None:
    """Records what PyTorch's allocator holds of ``device`` (the current one): allocated, reserved and peak bytes, retries and
    failures. Nothing where nothing is recorded, or the program has not used CUDA: it imports nothing and sets no device up."""
    torch = sys.modules.get("torch")
    if torch is None or not _spans.is_recording():
        return
    try:
        if not torch.cuda.is_initialized():
            return
        told = torch.cuda.memory_stats(device)
        for theirs, ours in _COUNTERS:
            if theirs in told:
                _spans.counter(ours, float(told[theirs]))
    except Exception:  # noqa: BLE001  (a build of PyTorch without it, a driver in trouble: the job's business, not this)
        return
