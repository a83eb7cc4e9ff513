"""What PyTorch's allocator says of a device's memory, as counters of the rank (docs/instrument.md).

A plain file: `lockstep run` hands it to jobs beside _steps.py, without the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

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
    from . import _spans

    if _spans.is_recording():
        tell(_spans.counter, device)


def tell(count: Callable[[str, float], None], device: Any = None) -> None:
    """Gives `count` the names and values of a device, the current one."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return
        told = torch.cuda.memory_stats(device)
        for theirs, ours in _COUNTERS:
            if theirs in told:
                count(ours, float(told[theirs]))
        device = torch.cuda.current_device() if device is None else device
        count("torch_memory_total_bytes", float(torch.cuda.get_device_properties(device).total_memory))
    except Exception:  # noqa: BLE001  (a build of PyTorch without it, a driver in trouble: the job's business, not this)
        return
