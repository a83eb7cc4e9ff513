#!/usr/bin/env python3
"""Flight-recorder dumps that Python read and wrote again, in any protocol and with those of all ranks in one file: `lockstep hang` says what it
says of the dumps as PyTorch wrote them."""

import json
import os
import pathlib
import pickle
import shutil
import tempfile
import unittest

import analyze_program as lockstep

SETS = ("gloo_torch_2_14/wrong_order_4", "gloo_torch_2_14/rank0_in_checkpoint_4", "gloo_torch_2_14/healthy_4", "nvrx_megatron_16rank/gpu_error_1st")


class RewrittenDumpsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkfr-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "job"

    def verdict(self):
        done = lockstep.run(["hang", "--json", self.folder])
        self.assertIn(done.returncode, (lockstep.DONE, lockstep.PARTIAL), done.stderr)
        return json.loads(done.stdout)

    def each_set(self):
        """Yields {path: dump} of each set, copied with all that lies beside it, and what is said of it as it stands."""
        for name in SETS:
            with self.subTest(name):
                shutil.copytree(lockstep.data_path("flight_recorder", *name.split("/")), self.folder)
                for path in self.folder.glob("trace_*.json"):
                    path.unlink()  # The same dumps once more, without stacks.
                dumps = {path: pickle.loads(path.read_bytes()) for path in self.folder.iterdir() if path.read_bytes()[:2] == b"\x80\x02"}
                self.assertGreater(len(dumps), 1)
                yield dumps, self.verdict()
                shutil.rmtree(self.folder)

    def test_every_protocol_says_the_same(self):
        for dumps, original in self.each_set():
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                for path, dump in dumps.items():
                    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
                    path.write_bytes(pickle.dumps(dump, protocol))
                    os.utime(path, ns=times)
                self.assertEqual(original, self.verdict(), protocol)

    def test_all_ranks_in_one_file_say_the_same(self):
        for dumps, original in self.each_set():
            ranks = {int(path.name.rpartition("_")[2]): dump for path, dump in dumps.items()}
            written_ns = max(path.stat().st_mtime_ns for path in dumps)
            for path in dumps:
                path.unlink()
            everything = self.folder / "collected"
            for write in (lambda: json.dumps({str(rank): dump for rank, dump in ranks.items()}).encode(),
                          lambda: json.dumps([{"rank": rank, **dump} for rank, dump in ranks.items()]).encode(),
                          lambda: pickle.dumps({"job": "17", "dumps": ranks})):
                everything.write_bytes(write())
                os.utime(everything, ns=(written_ns, written_ns))
                said = self.verdict()["data"]
                for key in ("kind", "confidence", "culprit_ranks", "victim_ranks", "operation", "sequence"):
                    self.assertEqual(original["data"]["verdict"][key], said["verdict"][key])
                self.assertEqual([rank["rank"] for rank in original["data"]["ranks"]], [rank["rank"] for rank in said["ranks"]])


if __name__ == "__main__":
    unittest.main()
