"""Flight records and stacks of a rank, on request, even while its main thread is stuck. Needs nothing but PyTorch.

    hang_dumps.enable(folder)

When FOLDER/request appears, each rank writes FOLDER/trace_RANK (what its flight recorder remembers, as a pickle) and
FOLDER/stacks_RANK.txt (the Python stacks of its threads). A rank that is stopped or gone writes nothing: what the kernel
says of it, its neighbour of the same launcher on the node writes as FOLDER/process_RANK.json. `lockstep hang FOLDER`
reads them all.
"""

import faulthandler
import json
import os
import pathlib
import socket
import threading
import time

import torch.distributed as dist

POLL_S = 0.1


def enable(folder):
    """Starts the thread that waits for the request; after init_process_group. None: it is not wanted."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        threading.Thread(target=_wait_and_dump, args=(folder, dist.get_rank()), name="hang-dumps", daemon=True).start()


def _wait_and_dump(folder, rank):
    while not (folder / "request").exists():
        time.sleep(POLL_S)
    for pid, neighbour in _neighbours():
        _write_process(folder, pid, neighbour)
    _write_whole(folder / f"stacks_{rank}.txt", lambda file: faulthandler.dump_traceback(file, all_threads=True))
    try:
        from torch._C._distributed_c10d import _dump_fr_trace
    except ImportError:
        return  # PyTorch before 2.8 has a recorder for NCCL only.
    _write_whole(folder / f"trace_{rank}", lambda file: file.write(_dump_fr_trace()))


def _neighbours():
    """Process and rank of the others that this rank's launcher has started on this node."""
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold anything; behind it come state and parent.
            parent = int(status.read_text(errors="replace").rpartition(")")[2].split()[1])
            if parent != os.getppid() or status.parent.name == str(os.getpid()):
                continue
            settings = (status.parent / "environ").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            continue  # It ended just now, or is another user's.
        ranks = [word.removeprefix(b"RANK=") for word in settings if word.startswith(b"RANK=")]
        if ranks and ranks[0].isdigit():
            yield int(status.parent.name), int(ranks[0])


def _write_process(folder, pid, rank):
    """What `lockstep hang` reads of a process that it cannot ask: docs/formats/evidence-folder.md."""
    try:
        letter = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return
    process = {"schema": "lockstep.inspection/1", "pid": pid, "host": socket.gethostname(), "rank": rank,
               "liveness": "gone" if letter in "ZX" else "running", "collected_unix_ns": time.time_ns(),
               "state": {"state": letter}}
    _write_whole(folder / f"process_{rank}.json", lambda file: file.write(json.dumps(process).encode()))


def _write_whole(path, write):
    """Whoever waits for the file finds it complete."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with open(unfinished, "wb") as file:
        write(file)
    unfinished.rename(path)
