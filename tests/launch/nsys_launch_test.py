"""`lockstep run --profile nsys`, alone and under real launchers. nsys itself is a stand-in here that records its calls."""

import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from launch_case import BINARY, DONE, FAILED, MISUSED, STAND_IN_NSYS, LaunchCase
from pytorch import python_with_torch
from waiting import PATIENCE_S, wait_until


class AloneTest(LaunchCase):
    def test_status_manifest_and_command(self):
        done = self.run_words(self.command() + ["sh", "-c", "exit 5"])
        self.assertEqual(5, done.returncode, done.stderr)
        (call,) = self.calls()
        self.assertEqual(["sh", "-c", "exit 5"], call["command"])
        self.assertIn("--trace=cuda,nvtx,osrt,cublas,cudnn", call["options"])
        (entry,) = self.manifests().values()
        self.assertEqual((0, 1, 5, "2023.4.4"), (entry["rank"], entry["world_size"], entry["exit_code"], entry["tool_version"]))
        self.assertEqual([f"nsys.rank0-of-1.{os.uname().nodename}.nsys-rep"], entry["files"])
        self.assertGreater(entry["end_unix_ns"], entry["start_unix_ns"])

    def test_secrets_stay_out_of_the_manifest(self):
        self.run_words(self.command() + ["true", "--api-key", "hunter2hunter2"])
        self.assertNotIn("hunter2", next(self.out.glob("*.launch")).read_text())

    def test_signals_go_through_and_the_report_is_written(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(number):
                script = f"trap 'exit {10 + number}' {int(number)}; echo up; while :; do sleep 0.05; done"
                process = subprocess.Popen(self.command("--force") + ["sh", "-c", script], env=self.environment,
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self.addCleanup(process.kill)
                self.assertEqual("up\n", process.stdout.readline())
                process.send_signal(number)
                self.assertEqual(10 + number, process.wait(PATIENCE_S))
                process.stdout.close()
                (entry,) = self.manifests().values()
                self.assertEqual((10 + number, 1), (entry["exit_code"], len(entry["files"])))

    def test_a_run_that_is_killed_leaves_its_manifest(self):
        process = subprocess.Popen(self.command() + ["sh", "-c", "echo $$; exec sleep 600"], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        job = int(process.stdout.readline())
        self.addCleanup(os.kill, job, signal.SIGKILL)  # The stand-in does not take it along.
        process.kill()
        process.wait(PATIENCE_S)
        process.stdout.close()
        (entry,) = self.manifests().values()
        self.assertEqual((None, None, []), (entry["end_unix_ns"], entry["exit_code"], entry["files"]))

    def test_a_job_that_outlives_nsys_is_waited_for(self):
        done = self.run_words(self.command("--duration", "1s") + ["sh", "-c", "sleep 0.5; exit 6"], STAND_IN_LEAVES="1")
        self.assertEqual(6, done.returncode, done.stderr)
        self.assertIn("--kill=none", self.calls()[0]["options"])
        script = "trap 'exit 9' TERM; sleep 0.5; echo up; while :; do sleep 0.05; done"
        process = subprocess.Popen(self.command("--duration", "1s", "--force") + ["sh", "-c", script], stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL, env={**self.environment, "STAND_IN_LEAVES": "1"})
        self.assertEqual("up\n", process.stdout.readline())

        def is_alone():  # nsys has ended, and its helper is ours.
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
            return [pathlib.Path(f"/proc/{child}/comm").read_text(encoding="ascii") for child in children] == ["nsys-launcher\n"]
        wait_until(is_alone, "nsys to end", process)
        process.terminate()
        self.assertEqual(9, process.wait(PATIENCE_S))
        process.stdout.close()

    def test_a_report_that_is_there_is_kept(self):
        self.assertEqual(DONE, self.run_words(self.command() + ["true"]).returncode)
        done = self.run_words(self.command() + ["touch", "ran"])
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("--force", done.stderr)
        self.assertFalse((self.folder / "ran").exists())
        self.assertEqual(DONE, self.run_words(self.command("--force") + ["touch", "ran"]).returncode)

    def test_a_variable_that_is_not_set_is_refused_before_anything_runs(self):
        done = self.run_words(self.command("--name", "x_%q{NOPE}") + ["touch", "ran"])
        self.assertEqual(MISUSED, done.returncode)
        self.assertIn("NOPE", done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_a_range_that_never_opens_is_told(self):
        done = self.run_words(self.command("--capture-range", "nvtx:step 5") + ["sh", "-c", "exit 3"], STAND_IN_WRITES="nothing")
        self.assertEqual(3, done.returncode)
        self.assertIn("no NVTX range 'step 5' was opened", done.stderr)
        (call,) = self.calls()
        for option in ("--capture-range=nvtx", "--nvtx-capture=step 5@*", "--capture-range-end=stop", "--kill=none"):
            self.assertIn(option, call["options"])
        self.assertEqual("0", call["environment"]["NSYS_NVTX_PROFILER_REGISTER_ONLY"])

    def test_a_missing_host_part_is_told(self):
        done = self.run_words(self.command() + ["true"], STAND_IN_WRITES="raw")
        self.assertEqual(DONE, done.returncode)
        self.assertIn("QdstrmImporter -i nsys.rank0-of-1.", done.stderr)
        self.assertTrue(next(iter(self.manifests().values()))["files"][0].endswith(".qdstrm"))

    def test_kineto_is_kept_away_from_what_nsys_profiles(self):
        done = self.run_words(self.command() + ["true"], KINETO_USE_DAEMON="1")
        self.assertNotIn("KINETO_USE_DAEMON", self.calls()[0]["environment"])
        self.assertIn("KINETO_USE_DAEMON is removed", done.stderr)

    def test_what_a_version_lacks_is_refused(self):
        command = self.command("--trace", "cuda-sw,nvtx") + ["true"]
        self.assertEqual(MISUSED, self.run_words(command, STAND_IN_VERSION="2023.4.4").returncode)
        self.assertEqual(DONE, self.run_words(command, STAND_IN_VERSION="2026.1.1").returncode)

    def test_a_dry_run_prints_the_plan_and_runs_nothing(self):
        done = self.run_words(self.command("--dry-run", "--stats", "--nsys-opt=--python-sampling=true") + ["touch", "a b"])
        self.assertEqual((DONE, []), (done.returncode, self.calls()), done.stderr)
        self.assertFalse(self.out.exists() or (self.folder / "a b").exists())
        for line in (f"report    {self.out}/nsys.rank0-of-1.{os.uname().nodename}.nsys-rep", "--stats=true", "--python-sampling=true",
                     "touch 'a b'"):
            self.assertIn(line, done.stdout)

    def test_what_makes_no_sense_is_refused(self):
        for flags in (["--ranks", "x"], ["--ranks", "0,"], ["--delay", "1m"], ["--capture-range", "step"], ["--ranges", "2"],
                      ["--capture-range", "cuda", "--duration", "5s"], ["--nsys-opt=-ox"], ["--with-daemon"], ["--hang-dumps"]):
            with self.subTest(flags):
                done = self.run_words(self.command(*flags) + ["touch", "ran"])
                self.assertEqual(MISUSED, done.returncode, done.stderr)
        for flags in (["--profile", "nsyss"], ["--out", "x"], ["--profile", "none", "--ranks", "0"], ["--stats"]):
            with self.subTest(flags):
                self.assertEqual(MISUSED, self.run_words([BINARY, "run", *flags, "--", "touch", "ran"]).returncode)
        done = self.run_words(self.command() + ["mpirun", "--host", "a,b", "touch", "ran"])
        self.assertEqual(MISUSED, done.returncode, done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_without_nsys_nothing_runs(self):
        done = self.run_words([BINARY, "run", "--profile", "nsys", "--tool", "/nonexistent/nsys", "--", "touch", "ran"])
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("/nonexistent/nsys", done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_without_a_profiler_the_command_takes_our_place(self):
        process = subprocess.Popen([BINARY, "run", "--profile", "none", "--", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.pid, int(process.communicate(timeout=PATIENCE_S)[0]))

    def test_a_debug_run_has_files_for_each_rank(self):
        show = ["sh", "-c", 'echo "$NCCL_DEBUG $NCCL_DEBUG_FILE $TORCH_FR_DUMP_TEMP_FILE"']
        folder = self.folder / "debug"
        rank = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "NCCL_DEBUG": "WARN"}
        expected = f"WARN {folder}/nccl.rank1.{os.uname().nodename}.log {folder}/nccl_trace_rank_\n"
        for flags in (["--profile", "none"], [], ["--profile", "nsys", "--tool", STAND_IN_NSYS, "--out", self.out]):
            done = self.run_words([BINARY, "run", "-q", "--debug", "debug", *flags, "--", *show], **rank)
            self.assertEqual((DONE, expected), (done.returncode, done.stdout), done.stderr)
        self.assertTrue(folder.is_dir())

    def test_some_ranks_are_prepared_for_captures(self):
        show = ["sh", "-c", "echo ${LOCKSTEP_RUN_CAPTURES:-none}"]
        for ranks, expected in (("1", "1"), ("0", "none")):
            done = self.run_words([BINARY, "run", "-q", "--ranks", ranks, "--", *show], RANK="1", LOCAL_RANK="1", WORLD_SIZE="2")
            self.assertEqual((DONE, expected), (done.returncode, done.stdout.strip()), done.stderr)


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun: Debian's openmpi-bin has it")
class MpirunTest(LaunchCase):
    def mpirun(self, ranks, count, *flags, **variables):
        return self.run_words(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", count,
                               *self.command("--ranks", ranks, *flags), *self.rank_command("OMPI_COMM_WORLD_RANK")], **variables)

    def test_just_the_ranks_that_are_asked_for(self):
        done = self.mpirun("0,2-3", 5, KINETO_USE_DAEMON="1")
        self.assertEqual(DONE, done.returncode, done.stderr)
        manifests = self.check_ranks("Open MPI", 5, {0, 2, 3})
        self.assertEqual([2], [entry["local_rank"] for rank, entry in manifests.items() if rank == 2])
        for rank, note in self.notes().items():
            self.assertEqual(None if rank in manifests else "1", note["daemon"])
        for call in self.calls():
            self.assertEqual("1", call["environment"]["NSYS_MPI_STORE_TEAMS_PER_RANK"])
            self.assertIn("--mpi-impl=openmpi", call["options"])
            self.assertTrue(any(option.startswith("--trace=") and ",mpi," in option for option in call["options"]))

    def test_a_rank_that_fails_is_seen_by_mpirun(self):
        for failing in (0, 1):  # Profiled, and not.
            with self.subTest(failing):
                done = self.mpirun("0", 2, "--force", **{f"FAILS{failing}": "7"})
                self.assertEqual(7, done.returncode, done.stderr)

    def test_a_name_that_ranks_share_is_refused(self):
        done = self.mpirun("all", 2, "--name", "train.%h")
        self.assertEqual(MISUSED, done.returncode, done.stderr)
        self.assertIn("put %r (the rank) into it", done.stderr)
        self.assertEqual({}, self.notes())


class TorchrunTest(LaunchCase):
    @classmethod
    def setUpClass(cls):
        cls.torchrun = [python_with_torch(), "-m", "torch.distributed.run", "--standalone"]

    def test_the_wrapper_is_the_entry(self):
        done = self.run_words([*self.torchrun, "--nproc-per-node", 3, "--no-python", *self.command("--ranks", "local:1"),
                               *self.rank_command("RANK")])
        self.assertEqual(DONE, done.returncode, done.stderr)
        entry = self.check_ranks("torchrun", 3, {1})[1]
        self.assertEqual((1, 3, 0), (entry["local_rank"], entry["local_size"], entry["node"]))

    def test_a_restarted_rank_keeps_its_first_report(self):
        fails_once = 'test -e ran || { touch ran; exit 1; }'
        done = self.run_words([*self.torchrun, "--nproc-per-node", 1, "--max-restarts", 1, "--monitor-interval", "0.1", "--no-python",
                               *self.command(), "sh", "-c", fails_once])
        self.assertEqual(DONE, done.returncode, done.stderr)
        names = sorted(path.name for path in self.out.glob("*.nsys-rep"))
        self.assertEqual(2, len(names), names)
        self.assertTrue(names[1].endswith(".restart1.nsys-rep") or names[0].endswith(".restart1.nsys-rep"), names)

    def test_in_front_of_torchrun_one_report_is_said_to_come(self):
        done = self.run_words([*self.command("--dry-run"), "torchrun", "--nproc-per-node", "2", "train.py"])
        self.assertEqual(DONE, done.returncode, done.stderr)
        self.assertIn("one report of all ranks of this node", done.stdout)


if __name__ == "__main__":
    unittest.main()
