"""Two real ranks over Gloo, one stuck in a collective, the other asleep: what is seen of them, and that they live on."""

import base64
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import tempfile
import unittest

from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
PROGRAM = os.environ["LOCKSTEP_PRINT_INSPECTION"]

JOB = """
import os, sys, time
if os.environ.get("HELPER"):
    sys.path.insert(0, os.environ["HELPER"])
    import _hang
    assert _hang.enable_hang_dumps()
import torch
import torch.distributed as dist

def step(tensor):
    dist.all_reduce(tensor)

def load_data():
    sys.stdin.readline()

dist.init_process_group("gloo", os.environ["MEET"], rank=int(os.environ["RANK"]), world_size=2)
if os.environ.get("SERVER"):
    from torch._C._distributed_c10d import _WorkerServer
    server = _WorkerServer("127.0.0.1", 0)
tensor = torch.ones(4)
step(tensor)
print("ready", flush=True)
if dist.get_rank() == 1:
    load_data()
step(tensor)
dist.monitored_barrier()  # Gloo lets go of the step's work before the end: pytorch/pytorch#190489.
dist.destroy_process_group()  # And its threads end: one that is late with that would abort the interpreter's end.
print("done", flush=True)
"""


class TorchJobTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = python_with_torch()
        scratch = tempfile.TemporaryDirectory(prefix="lkinsp-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        # The one file, as docs/python.md has it copied; the package's folder also holds a module named logging.
        helper = pathlib.Path(scratch.name, "helper")
        helper.mkdir()
        shutil.copy(SOURCE / "python/lockstep/_hang.py", helper)
        cls.ranks = []
        for rank, ways in enumerate(({"HELPER": str(helper)}, {"SERVER": "1"})):
            environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                           "OMP_NUM_THREADS": "1", "MEET": f"file://{scratch.name}/meet",
                           "GLOO_SOCKET_IFNAME": "lo", "TORCH_FR_BUFFER_SIZE": "100",
                           "LOCKSTEP_HANG_DIR": scratch.name + "/sockets", **ways}
            process = subprocess.Popen([cls.python, "-W", "ignore", "-c", JOB], env=environment, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for action in (process.stdin.close, process.stdout.close, process.wait, process.kill):
                cls.addClassCleanup(action)
            cls.ranks.append(process)
        for process in cls.ranks:
            assert process.stdout.readline() == "ready\n", process.poll()

        def both_wait():  # Each said that it is ready, and is on its way to where it waits.
            done = subprocess.run([PROGRAM, *(str(process.pid) for process in cls.ranks)], capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=True)
            cls.seen = [json.loads(line) for line in done.stdout.splitlines()]
            main = [next(thread for thread in seen["stacks"] if thread["is_main"]) for seen in cls.seen]
            return (any(frame.get("function") == "load_data" for frame in main[1]["python"])
                    and any("c10d::Work::wait" in frame.get("function", "") for frame in main[0]["native"]))
        wait_until(both_wait, "both ranks to wait")

    def main_thread(self, rank):
        return next(thread for thread in self.seen[rank]["stacks"] if thread["is_main"])

    def names(self, frames):
        return [frame.get("function", "") for frame in frames]

    def test_each_is_known_by_its_rank(self):
        for rank, seen in enumerate(self.seen):
            self.assertEqual((rank, 2, "running"), (seen["rank"], seen["world_size"], seen["liveness"]))
            self.assertTrue(seen["torch_version"].startswith("2."), seen["torch_version"])

    def test_python_and_native_frames_say_where_each_waits(self):
        waiting, loading = self.main_thread(0), self.main_thread(1)
        self.assertIn("step", self.names(waiting["python"]))
        self.assertIn("all_reduce", self.names(waiting["python"]))
        self.assertIn("load_data", self.names(loading["python"]))
        self.assertTrue(any("c10d::Work::wait" in name for name in self.names(waiting["native"])), waiting["native"])
        line = next(frame["line"] for frame in waiting["python"] if frame.get("function") == "step")
        self.assertEqual(JOB.split("\n").index("    dist.all_reduce(tensor)") + 1, line)

    def test_the_helper_gives_the_record_of_the_stuck_collective(self):
        self.assertEqual(("helper", "pickle"), (self.seen[0]["record_source"], self.seen[0]["record_format"]))
        entries = pickle.loads(base64.b64decode(self.seen[0]["record_base64"]))["entries"]
        self.assertEqual([True, False], [entry["retired"] for entry in entries if entry["profiling_name"] == "gloo:all_reduce"])

    def test_the_debug_server_gives_a_record_where_there_is_no_helper(self):
        self.assertEqual(("debug_server", "json"), (self.seen[1]["record_source"], self.seen[1]["record_format"]))
        self.assertIn("pg_config", json.loads(base64.b64decode(self.seen[1]["record_base64"])))

    def test_pauses_are_bounded(self):
        for seen in self.seen:
            self.assertLessEqual(seen["longest_pause_ns"], 10_000_000)

    def test_z_the_job_goes_on_afterwards(self):
        self.ranks[1].stdin.write("\n")
        self.ranks[1].stdin.flush()
        for process in self.ranks:
            self.assertEqual("done\n", process.stdout.readline())
            self.assertEqual(0, process.wait(PATIENCE_S))


if __name__ == "__main__":
    unittest.main()
