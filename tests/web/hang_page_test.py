"""Pages of `lockstep hang` in Chromium: every view of a real job's, and 1,024 ranks in 40 groups with hostile names."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from analyze_program import PROGRAM  # noqa: E402

RECORDED = os.path.join(web_packages.SOURCE_ROOT, "examples", "hangs", "recorded")
RANKS = 1024
CULPRIT = 611
LAST = 30  # Sequence number of the last collective of each group.
SECOND_NS = 10**9
START_NS = 1_790_000_000 * SECOND_NS
HOSTILE = "<img src=x onerror=window.bad=1>"


def groups():
    """The world, 32 groups of a replica each, and 7 over everybody: 40."""
    everybody = list(range(RANKS))
    yield HOSTILE, everybody
    for replica in range(32):
        yield f"</script><script>window.bad=1</script>{replica}", everybody[replica::32]
    for name in range(7):
        yield f"metrics {name}", everybody


def dump(rank):
    """A flight record as PyTorch writes it in JSON. The culprit has not called the last collective of the first group."""
    mine = [(name, description, ranks) for name, (description, ranks) in enumerate(groups()) if rank in ranks]
    entries, status = [], {}
    for name, description, ranks in mine:
        last = LAST - (name == 0 and rank == CULPRIT)
        status[str(name)] = {"last_enqueued_collective": str(last), "last_started_collective": str(last),
                             "last_completed_collective": str(LAST - 1 if name == 0 else LAST)}
        for sequence in range(LAST - 1, last + 1):
            is_open = name == 0 and sequence == LAST
            created = START_NS + sequence * SECOND_NS + rank * 1000 + name
            entries.append({
                "record_id": len(entries), "pg_id": name, "process_group": [str(name), description], "collective_seq_id": sequence,
                "p2p_seq_id": 0, "op_id": sequence, "profiling_name": "nccl:all_reduce", "time_created_ns": created,
                "input_sizes": [[4096]], "input_dtypes": ["Float"], "output_sizes": [[4096]], "output_dtypes": ["Float"],
                "state": "started" if is_open else "completed", "time_discovered_started_ns": created + 1000,
                "time_discovered_completed_ns": None if is_open else created + 2000, "retired": not is_open, "timeout_ms": 600000,
                "is_p2p": False, "duration_ms": 0.1})
    return {"version": "2.10", "comm_lib_version": "2.27.3", "pg_status": status, "nccl_comm_state": {}, "entries": entries,
            "pg_config": {str(name): {"name": str(name), "desc": description, "ranks": str(ranks)} for name, description, ranks in mine}}


class HangPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        web_packages.browser()
        web_packages.packages()
        cls.scratch = tempfile.TemporaryDirectory(prefix="lockstep-pages-")
        cls.addClassCleanup(cls.scratch.cleanup)

    def page(self, folder):
        page = os.path.join(self.scratch.name, f"{os.path.basename(folder)}.html")
        done = subprocess.run([PROGRAM, "hang", folder, "--quiet", "-o", page], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertIn(done.returncode, (0, 4), done.stdout)
        return page

    def test_every_view_of_a_deadlock(self):
        page = self.page(os.path.join(RECORDED, "crosswise_deadlock"))
        pictures = os.environ.get("LOCKSTEP_PICTURES")
        print(web_packages.run_node("answer_page.mjs", page, *([pictures] if pictures else [])))

    def test_many_ranks_with_hostile_names(self):
        folder = os.path.join(self.scratch.name, "many")
        os.mkdir(folder)
        for rank in range(RANKS):
            with open(os.path.join(folder, f"trace_{rank}"), "w", encoding="utf-8") as file:
                json.dump(dump(rank), file)
        with open(os.path.join(folder, f"stacks_{CULPRIT}.txt"), "w", encoding="utf-8") as file:
            file.write("Current thread 0x00007f0000000000 (most recent call first):\n"
                       f'  File "/job/{HOSTILE}.py", line 3 in <script>window.bad=1</script>\n'
                       '  File "/job/train.py", line 9 in <module>\n')
        print(web_packages.run_node("hang_page.mjs", self.page(folder), str(CULPRIT), HOSTILE))


if __name__ == "__main__":
    unittest.main()
