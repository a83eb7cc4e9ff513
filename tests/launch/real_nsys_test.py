"""`lockstep run --profile nsys` with the real nsys ($LOCKSTEP_NSYS, or the one in PATH; any version from 2022.4 on), without a GPU:
options, statuses, signals, and from a job of MPI to the rank that was slow. Skipped where there is none: nothing needs it."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import unittest

from launch_case import BINARY, DONE, SOURCE, LaunchCase
from waiting import PATIENCE_S

NSYS = os.environ.get("LOCKSTEP_NSYS") or shutil.which("nsys")
NCU = os.environ.get("LOCKSTEP_NCU") or shutil.which("ncu")


class RealCase(LaunchCase):
    def nsys(self, *flags):
        return [BINARY, "run", "--profile", "nsys", "--tool", NSYS, "--trace", "nvtx,osrt,mpi", "--out", str(self.out), *map(str, flags), "--"]

    def options_of(self, plan):
        return set(re.findall(r"^(?:options)?\s+(--[a-z-]+)", plan, re.MULTILINE))


@unittest.skipUnless(NSYS, "there is no nsys in PATH or LOCKSTEP_NSYS: Debian's non-free nsight-systems has it, under NVIDIA's licence")
class RealNsysTest(RealCase):
    def test_every_option_is_one_of_this_nsys(self):
        known = set(re.findall(r"(--[a-z-]+)", subprocess.run([NSYS, "profile", "--help"], capture_output=True, text=True, check=True).stdout))
        sets = ([], ["--capture-range", "nvtx:x", "--ranges", "2", "--stats", "--export", "--force"], ["--delay", "1s", "--duration", "60s"])
        for flags in sets:
            done = self.run_words([BINARY, "run", "--profile", "nsys", "--tool", NSYS, "--dry-run", "--ranks", "0", *flags, "--", "true"],
                                  OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
            self.assertEqual(DONE, done.returncode, done.stderr)
            options = self.options_of(done.stdout)
            self.assertTrue({"--trace", "--output"} < options, done.stdout)
            self.assertEqual(set(), options - known)

    def test_the_default_options_are_taken(self):
        done = self.run_words([BINARY, "run", "--profile", "nsys", "--tool", NSYS, "--out", self.out, "--", "sh", "-c", "exit 7"])
        self.assertEqual(7, done.returncode, done.stdout + done.stderr)
        (entry,) = self.manifests().values()
        self.assertEqual(1, len([name for name in entry["files"] if name.endswith((".nsys-rep", ".qdstrm"))]), entry)

    def test_a_signal_ends_the_program_and_leaves_a_report(self):
        version = subprocess.run([NSYS, "--version"], capture_output=True, text=True, check=True).stdout
        if "version 2022" in version:
            self.skipTest("nsys 2022.4.2 itself, signalled just after it has started, ends with status 1 or not at all")
        process = subprocess.Popen(self.nsys() + ["sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual("up\n", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(9, process.returncode, output)
        self.assertTrue(next(iter(self.manifests().values()))["files"], output)

    def test_a_program_that_outlives_the_duration_is_waited_for(self):
        done = self.run_words(self.nsys("--duration", "1s") + ["sh", "-c", "sleep 3; exit 6"])
        self.assertEqual(6, done.returncode, done.stdout + done.stderr)

    def test_a_range_that_never_opens_is_told(self):
        done = self.run_words(self.nsys("--capture-range", "nvtx:never") + ["sh", "-c", "exit 3"])
        self.assertEqual(3, done.returncode, done.stdout + done.stderr)
        self.assertIn("no NVTX range 'never' was opened", done.stderr)

    @unittest.skipUnless(shutil.which("mpirun") and shutil.which("mpicc"), "there is no mpicc or mpirun: Debian's libopenmpi-dev and openmpi-bin have them")
    def test_from_a_job_to_its_slow_rank(self):
        program = self.folder / "slow_rank"
        subprocess.run(["mpicc", "-o", program, SOURCE / "tests/launch/slow_rank.c"], check=True)
        done = self.run_words(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", 4, *self.nsys("--export"), program])
        self.assertEqual(DONE, done.returncode, done.stdout + done.stderr)
        manifests = self.manifests()
        self.assertEqual({0, 1, 2, 3}, set(manifests))
        if any(name.endswith(".qdstrm") for entry in manifests.values() for name in entry["files"]):
            self.skipTest(f"{NSYS} has no host part: nothing can be exported")
        for rank, entry in manifests.items():
            self.assertEqual([f"nsys.rank{rank}-of-4.{entry['host']}.{ending}" for ending in ("nsys-rep", "sqlite")], entry["files"])
            with sqlite3.connect(f"file:{self.out / entry['files'][1]}?immutable=1", uri=True) as export:
                tables = {row[0] for row in export.execute("SELECT name FROM sqlite_master")}
                table = "MPI_COLLECTIVES_EVENTS" if "MPI_COLLECTIVES_EVENTS" in tables else "NVTX_EVENTS"  # Before 2023.
                text = "s.value" if table == "MPI_COLLECTIVES_EVENTS" else "coalesce(e.text, s.value)"
                calls = f"SELECT count(*) FROM {table} AS e LEFT JOIN StringIds AS s ON s.id = e.textId WHERE {text} = 'MPI_Allreduce'"
                self.assertEqual(20, export.execute(calls).fetchone()[0])
                environment = export.execute("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'DeviceEnvironment'").fetchone()[0]
                self.assertTrue(re.search(f"OMPI_COMM_WORLD_RANK={rank}[;\0]", environment), f"rank {rank}")
        analysed = self.run_words([BINARY, "analyze", "--json", self.out])
        self.assertEqual(DONE, analysed.returncode, analysed.stderr)
        data = json.loads(analysed.stdout)["data"]
        self.assertEqual([0, 1, 2, 3], sorted(row["rank"] for row in data["ranks"]))
        straggler = next(row for row in data["findings"] if row["id"] == "straggler")
        self.assertEqual(2, straggler["ranks"][0], straggler)


@unittest.skipUnless(NCU, "there is no ncu in PATH or LOCKSTEP_NCU: Debian's non-free nsight-compute has it, under NVIDIA's licence")
class RealNcuTest(RealCase):
    def test_every_option_is_one_of_this_ncu(self):
        known = set(re.findall(r"(--[a-z-]+)", subprocess.run([NCU, "--help"], capture_output=True, text=True, check=True).stdout))
        for flags in (["--kernel", "gemm", "--skip", "3", "--force", "--capture-range", "nvtx:step"], ["--kernel", "a", "--capture-range", "cuda"]):
            done = self.run_words([BINARY, "run", "--profile", "ncu", "--tool", NCU, "--dry-run", *flags, "--", "true"])
            self.assertEqual(DONE, done.returncode, done.stderr)
            options = self.options_of(done.stdout)
            self.assertTrue({"--kernel-name", "--export"} < options, done.stdout)
            self.assertEqual(set(), {option for option in options if option not in known})


if __name__ == "__main__":
    unittest.main()
