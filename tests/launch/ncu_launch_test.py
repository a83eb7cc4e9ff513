"""`lockstep run --profile ncu`: the heaviest kernels of an analysis, on one rank or shared among some. ncu itself is a stand-in
that records its calls; the analysis is a real one, of a public recording on GPUs."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from launch_case import BINARY, DONE, FAILED, MISUSED, SOURCE, LaunchCase

STAND_IN_NCU = SOURCE / "tests/launch/stand_in_ncu"
DATA = pathlib.Path(os.environ.get("LOCKSTEP_DATA", SOURCE.parent / "shared/data"))
TRACES = DATA / "traces/param_dlrm_8rank_v100"


class NcuTest(LaunchCase):
    def ncu(self, *flags):
        return [BINARY, "run", "--profile", "ncu", "--tool", str(STAND_IN_NCU), "--out", str(self.out), *map(str, flags), "--"]

    def pattern(self, call):
        return next(word.partition("=")[2] for word in call["options"] if word.startswith("--kernel-name="))

    def test_named_kernels(self):
        done = self.run_words(self.ncu("--kernel", "gemm", "--kernel", "triton_poi_fused_add_0", "--count", 2, "--skip", 4) + ["sh", "-c", "exit 3"])
        self.assertEqual(3, done.returncode, done.stderr)
        (call,) = self.calls()
        self.assertEqual(["sh", "-c", "exit 3"], call["command"])
        for option in ("--set=roofline", "--kernel-name=regex:^(gemm|triton_poi_fused_add_[0-9]+)$", "--launch-skip=4", "--launch-count=2"):
            self.assertIn(option, call["options"])
        self.assertTrue(call["environment"]["TMPDIR"].endswith(f"/lockstep-{os.geteuid()}") or "TMPDIR" in os.environ)
        entry = next(iter(self.manifests().values()))
        self.assertEqual(("ncu", "2024.1.1", 3), (entry["tool"], entry["tool_version"], entry["exit_code"]))
        self.assertEqual([f"ncu.rank0-of-1.{os.uname().nodename}.ncu-rep"], entry["files"])

    def test_what_would_hang_is_refused(self):
        torchrun = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}
        for flags in ([], ["--kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"]):
            done = self.run_words(self.ncu(*flags) + ["touch", "ran"], **torchrun)
            self.assertEqual(MISUSED, done.returncode, done.stderr)
            self.assertIn("wait forever", done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_one_rank_is_the_default(self):
        done = self.run_words(self.ncu("--kernel", "gemm") + ["true"], RANK="1", LOCAL_RANK="1", WORLD_SIZE="2")
        self.assertEqual((DONE, []), (done.returncode, self.calls()), done.stderr)

    def test_no_report_is_told(self):
        done = self.run_words(self.ncu("--kernel", "gemm") + ["true"], STAND_IN_WRITES="nothing")
        self.assertEqual(DONE, done.returncode)
        self.assertIn("none of the kernels was launched", done.stderr)

    def test_what_is_no_analysis_is_refused(self):
        (self.folder / "report.json").write_text("{}")
        for path, status in (("report.json", FAILED), ("absent.json", FAILED), (".", FAILED)):
            done = self.run_words(self.ncu("--kernels-from", path) + ["touch", "ran"])
            self.assertEqual(status, done.returncode, done.stderr)
            self.assertIn(path, done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    @unittest.skipUnless(TRACES.is_dir(), f"the shared traces ({TRACES}) are not there: LOCKSTEP_DATA names their folder")
    def test_kernels_of_an_analysis(self):
        analysed = subprocess.run([BINARY, "analyze", "--json", TRACES], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        report = self.folder / "report.json"
        report.write_text(analysed.stdout)
        done = self.run_words(self.ncu("--kernels-from", report, "--top", 5) + ["true"])
        self.assertEqual(DONE, done.returncode, done.stderr)
        names = self.pattern(self.calls()[0]).removeprefix("regex:^(").removesuffix(")$").split("|")
        self.assertTrue(1 <= len(names) <= 5, names)
        self.assertNotIn("nccl", " ".join(names).lower())
        # By hand: the function with most time over all ranks is among them.
        kernels = [row for row in json.loads(analysed.stdout)["data"]["kernels"] if row["kind"] == "compute" and "nccl" not in row["name"].lower()]
        totals = {}
        for row in kernels:
            for name in names:
                if name in row["name"]:
                    totals[name] = totals.get(name, 0) + row["total_ns"]
        self.assertEqual(set(names), set(totals))
        heaviest_left_out = max(row["total_ns"] for row in kernels if not any(name in row["name"] for name in names))
        self.assertLess(heaviest_left_out, max(totals.values()))

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun: Debian's openmpi-bin has it")
    def test_ranks_share_the_kernels(self):
        done = self.run_words(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", 3,
                               *self.ncu("--ranks", "0,2", "--kernel", "a", "--kernel", "b", "--kernel", "c"), *self.rank_command("OMPI_COMM_WORLD_RANK")])
        self.assertEqual(DONE, done.returncode, done.stderr)
        self.assertEqual({"regex:^(a|c)$", "regex:^(b)$"}, {self.pattern(call) for call in self.calls()})
        self.assertEqual({0, 2}, set(self.manifests()))
        self.assertEqual({0, 1, 2}, set(self.notes()))


if __name__ == "__main__":
    unittest.main()
