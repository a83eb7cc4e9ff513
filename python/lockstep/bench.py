"""torch.distributed's collectives by size, as ``lockstep bench collectives`` measures MPI's and NCCL's (docs/bench.md):

    torchrun --nproc-per-node 4 -m lockstep.bench
    torchrun --nproc-per-node 8 -m lockstep.bench --backend nccl all_reduce -b 8 -e 8G --json
"""

from __future__ import annotations

import datetime
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

PROGRAM = "lockstep.bench"
FAILED, MISUSED = 1, 2
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Forms in which an operation is measured; NCCL documents more.
_OUT_OF_PLACE = ("all_gather", "reduce_scatter", "all_to_all", "send_recv")
_IN_PLACE = ("all_reduce", "broadcast", "reduce")
_IN_PLACE_WITH_NCCL = ("all_gather", "reduce_scatter")


class Misused(Exception):
    """What the person who started this has to change."""


class TorchBackend:
    """What carries collectives out for the C++ side, which times and checks them: memory is named by its address.

    Needs an initialized process group; ``device`` is where its backend's tensors are.
    """

    def __init__(self, torch: Any, backend: str, device: Any) -> None:
        self._torch = torch
        self._dist = torch.distributed
        self._backend = backend
        self._device = device
        self._memory: dict[int, Any] = {}  # Tensors of bytes, by address.
        self._refusals: dict[tuple[str, bool], str | None] = {}
        self.rank: int = self._dist.get_rank()
        self.world_size: int = self._dist.get_world_size()
        self.is_queued: bool = device.type == "cuda"
        self.name = f"PyTorch {torch.__version__} ({backend}{self._library_version()})"
        self.device_text = self._describe_device()

    def _library_version(self) -> str:
        return " " + ".".join(map(str, self._torch.cuda.nccl.version())) if self._backend == "nccl" else ""

    def _describe_device(self) -> str:
        if self._device.type != "cuda":
            return ""
        return f"device {self._device.index}, {self._torch.cuda.get_device_name(self._device)}"

    # Ranks among themselves. PyTorch's own collectives of objects need NumPy, which need not be there.

    def broadcast(self, data: bytes) -> bytes:
        """Rank 0's bytes."""
        length = self._lengths(len(data))[0]
        moved = self._tensor(data, length)
        self._dist.broadcast(moved, src=0)
        return self._bytes(moved, length)

    def gather(self, data: bytes) -> list[bytes]:
        """Every rank's bytes at rank 0, else none."""
        lengths = self._lengths(len(data))
        own = self._tensor(data, max(lengths))
        every = [self._torch.empty_like(own) for _ in lengths]
        self._dist.all_gather(every, own)
        return [self._bytes(moved, length) for moved, length in zip(every, lengths)] if self.rank == 0 else []

    def _lengths(self, own: int) -> list[int]:
        moved = [self._torch.zeros(1, dtype=self._torch.int64, device=self._device) for _ in range(self.world_size)]
        self._dist.all_gather(moved, self._torch.tensor([own], dtype=self._torch.int64, device=self._device))
        return [int(length.item()) for length in moved]

    def _tensor(self, data: bytes, size: int) -> Any:
        padded = bytearray(data[:size].ljust(max(size, 1), b"\0"))
        return self._torch.frombuffer(padded, dtype=self._torch.uint8).to(self._device)

    def _bytes(self, tensor: Any, size: int) -> bytes:
        data = bytearray(tensor.numel())
        self._torch.frombuffer(data, dtype=self._torch.uint8).copy_(tensor)
        return bytes(data[:size])

    def barrier(self) -> None:
        self._dist.barrier()
        self.wait()

    def leave(self) -> None:
        """Before the interpreter ends: threads of a group that is still there end it by an abort."""
        self._dist.destroy_process_group()

    def wait(self) -> None:
        """Until what was queued is done."""
        if self.is_queued:
            self._torch.cuda.synchronize(self._device)

    # Memory.

    def allocate(self, size: int) -> int:
        """Address of so many bytes; 0: there are not so many."""
        try:
            tensor = self._torch.empty(size, dtype=self._torch.uint8, device=self._device)
        except RuntimeError:  # CUDA's OutOfMemoryError is one, too.
            return 0
        self._memory[tensor.data_ptr()] = tensor
        return int(tensor.data_ptr())

    def free(self, address: int) -> None:
        del self._memory[address]

    def copy_in(self, to: int, source: memoryview) -> None:
        self._bytes_at(to, len(source)).copy_(self._torch.frombuffer(source, dtype=self._torch.uint8))

    def copy_out(self, target: memoryview, source: int) -> None:
        self._torch.frombuffer(target, dtype=self._torch.uint8).copy_(self._bytes_at(source, len(target)))

    def _bytes_at(self, address: int, size: int) -> Any:
        for base, tensor in self._memory.items():
            if base <= address and address + size <= base + tensor.numel():
                return tensor[address - base : address - base + size]
        raise ValueError(f"{size} bytes at {address:#x} were not allocated")

    # Operations.

    def has(self, operation: str, in_place: bool) -> bool:
        """Whether the backend carries the operation out so: tried once, by all ranks."""
        form = (operation, in_place)
        if form not in self._refusals:
            self._refusals[form] = self._try(operation, in_place)
        return self._refusals[form] is None

    def why_not(self, operation: str) -> str:
        reasons = [self._refusals.get((operation, in_place)) for in_place in (False, True)]
        return next((reason for reason in reasons if reason), "PyTorch has no such operation")

    def _try(self, operation: str, in_place: bool) -> str | None:
        """None, or why not; empty where the form is not one that PyTorch has."""
        forms = _IN_PLACE if in_place else _OUT_OF_PLACE
        if operation not in forms and not (in_place and self._backend == "nccl" and operation in _IN_PLACE_WITH_NCCL):
            return ""
        if operation == "send_recv" and self.world_size == 1:
            return "one rank has nobody to send to"
        count = 4
        size = count * self.world_size * 4
        receive = self.allocate(size)
        send = receive if in_place else self.allocate(size)
        try:
            self.prepare(operation, "float32", "sum", 0, count, in_place, send, receive)()
            self.wait()
            return None
        except (RuntimeError, ValueError, NotImplementedError) as error:
            return (str(error).splitlines() or [type(error).__name__])[0]
        finally:
            for address in {send, receive}:
                self.free(address)

    def prepare(self, operation: str, dtype: str, reduction: str, root: int, count: int, in_place: bool, send: int, receive: int) -> Callable[[], Any]:
        """A function that carries the operation out. ``count`` elements are a rank's chunk where there are chunks, else its buffer."""
        dist = self._dist
        element_type = getattr(self._torch, dtype)
        size = count * self._torch.empty(0, dtype=element_type).element_size()
        op = getattr(dist.ReduceOp, reduction.upper())

        def at(address: int, chunks: int = 1) -> Any:
            return self._bytes_at(address, chunks * size).view(element_type)

        every, own = self.world_size, self.rank * size if in_place else 0
        if operation == "all_reduce":
            return functools.partial(dist.all_reduce, at(receive), op=op)
        if operation == "broadcast":
            return functools.partial(dist.broadcast, at(receive), src=root)
        if operation == "reduce":
            return functools.partial(dist.reduce, at(receive), dst=root, op=op)
        if operation == "all_gather":
            gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # Its name before PyTorch 2.13.
            return functools.partial(gather, at(receive, every), at(send + own))
        if operation == "reduce_scatter":
            scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
            return functools.partial(scatter, at(receive + own), at(send, every), op=op)
        if operation == "all_to_all":
            return functools.partial(dist.all_to_all_single, at(receive, every), at(send, every))
        if operation != "send_recv":
            raise ValueError(f"PyTorch has no {operation}")
        to_and_from = [dist.P2POp(dist.isend, at(send), (self.rank + 1) % every), dist.P2POp(dist.irecv, at(receive), (self.rank - 1) % every)]

        def exchange() -> None:
            for work in dist.batch_isend_irecv(to_and_from):
                work.wait()

        return exchange

    def transfer(self, source: int, target: int, address: int, size: int) -> None:
        """One rank sends, another receives; the others do nothing."""
        if self.rank == source:
            self._dist.send(self._bytes_at(address, size), dst=target)
        elif self.rank == target:
            self._dist.recv(self._bytes_at(address, size), src=source)
        self.wait()


def _load_native() -> Any:
    try:
        from . import _native
    except ImportError as error:
        raise Misused(
            f"needs the compiled part of lockstep, which is not here for this Python: pip install . in the checkout, or PYTHONPATH=build/release/python ({error})"
        ) from error
    return _native


def _load_torch() -> Any:
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")  # Nothing here needs it.
    try:
        torch: Any = importlib.import_module("torch")
        dist: Any = importlib.import_module("torch.distributed")
    except ImportError as error:
        raise Misused(f"needs PyTorch in this Python, {sys.executable}: pip install torch ({error})") from error
    if not dist.is_available():
        raise Misused(f"PyTorch {torch.__version__} was built without torch.distributed: take another build")
    return torch


def _choose(torch: Any, asked: str) -> tuple[str, Any]:
    """Backend and the device of its tensors."""
    dist = torch.distributed
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    backend = asked or ("nccl" if count and dist.is_nccl_available() else "gloo")
    built = {"gloo": dist.is_gloo_available, "mpi": dist.is_mpi_available, "nccl": dist.is_nccl_available}
    if backend not in built:
        raise Misused(f"--backend {backend}: expected one of {', '.join(built)}")
    if not built[backend]():
        others = [name for name, is_built in built.items() if is_built()]
        remedy = {"mpi": "such a build is made from PyTorch's sources", "nccl": "PyPI's builds for CUDA have it"}.get(backend, "take another build")
        raise Misused(f"--backend {backend}: PyTorch {torch.__version__} was built without it; {remedy}; this one has {', '.join(others) or 'none'}")
    if backend != "nccl":
        return backend, torch.device("cpu")
    if count == 0:
        raise Misused("--backend nccl: PyTorch sees no CUDA device (CUDA_VISIBLE_DEVICES, nvidia-smi); --backend gloo runs on the host")
    local, local_count = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if local_count > count:
        raise Misused(f"--backend nccl: {local_count} ranks on this host and {count} devices; NCCL takes one rank a device")
    device = torch.device("cuda", local % count)
    torch.cuda.set_device(device)
    return backend, device


def _join(asked: str, timeout_s: int) -> TorchBackend:
    """This process as a rank of the job that its environment describes."""
    missing = [name for name in _NEEDED if not os.environ.get(name)]
    if missing:
        raise Misused(f"start it by torchrun, a rank each: torchrun --nproc-per-node 4 -m {PROGRAM} (not set: {', '.join(missing)})")
    torch = _load_torch()
    backend, device = _choose(torch, asked)
    torch.distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=timeout_s))
    return TorchBackend(torch, backend, device)


def main(arguments: list[str] | None = None) -> int:
    """Measures as one rank of a job; rank 0 prints. Returns the exit status: 0 done, 1 a result was wrong, 2 misused. Where the measurement
    fails it does not return: it says why and ends the process with status 1."""
    rank = os.environ.get("RANK", "0")
    try:
        joined: list[TorchBackend] = []

        def join(asked: str, timeout_s: int) -> TorchBackend:
            joined.append(_join(asked, timeout_s))
            return joined[0]

        status = int(_load_native().run_bench(sys.argv[1:] if arguments is None else arguments, rank == "0", join))
        for backend in joined:
            backend.leave()
        return status
    except Misused as error:
        if rank == "0":
            print(f"{PROGRAM}: {error}", file=sys.stderr, flush=True)
        return MISUSED
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # Whatever PyTorch raises: said in a line with the rank, which a traceback is not.
        from ._errors import Error

        if not isinstance(error, Error) or rank == "0" or error.rank is not None:
            print(f"{PROGRAM}: rank {rank}: {error}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(FAILED)  # Where it stands: what a backend's threads hold may never come to rest.


if __name__ == "__main__":
    sys.exit(main())
