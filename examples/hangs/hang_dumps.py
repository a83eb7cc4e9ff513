"""Flight records and stacks of a rank, on request, even while its main thread is stuck. Needs nothing but PyTorch.

    hang_dumps.enable(folder)

When FOLDER/request appears, each rank writes FOLDER/trace_RANK (what its flight recorder remembers, as a pickle) and
FOLDER/stacks_RANK.txt (the Python stacks of its threads). `lockstep hang FOLDER` reads them.
"""

import faulthandler
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
    _write_whole(folder / f"stacks_{rank}.txt", lambda file: faulthandler.dump_traceback(file, all_threads=True))
    try:
        from torch._C._distributed_c10d import _dump_fr_trace
    except ImportError:
        return  # PyTorch before 2.8 has a recorder for NCCL only.
    _write_whole(folder / f"trace_{rank}", lambda file: file.write(_dump_fr_trace()))


def _write_whole(path, write):
    """Whoever waits for the file finds it complete."""
    unfinished = path.with_name(f".{path.name}")
    with open(unfinished, "wb") as file:
        write(file)
    unfinished.rename(path)
