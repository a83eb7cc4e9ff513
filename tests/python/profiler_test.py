"""`lockstep.profiler` in training jobs of real PyTorch: what it writes, when, on which ranks, and what it cannot break."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import analyze_program as program
import lockstep
from pytorch import python_with_torch, run_until_it_ends, torchrun
from samples import SOURCE
from waiting import PATIENCE_S

STEPS = """
import os, sys, warnings
warnings.filterwarnings("ignore", message=".*NumPy.*|.*Profiler clears events.*")
import lockstep
def job(steps, **options):
    with lockstep.profiler(**options) as profiler:
        import torch
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            profiler.step()
    return profiler
"""


class WithoutTorchTest(unittest.TestCase):
    """The interpreter of these tests has no PyTorch."""

    def test_importing_lockstep_for_it_is_cheap(self):
        code = ("import sys, lockstep; lockstep.profiler; "
                "print([name for name in sys.modules if name.split('.')[0] in ('numpy', 'torch') or name == 'lockstep._native'])")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual("[]\n", done.stdout)

    def test_a_rank_that_is_left_out_needs_no_pytorch(self):
        os.environ["RANK"] = "2"
        self.addCleanup(os.environ.pop, "RANK")
        with lockstep.profiler(schedule=dict(wait=1, warmup=1, active=1), ranks="0,3-7") as profiler:
            for _ in range(10):
                profiler.step()
        self.assertEqual((False, 2, [], None), (profiler.enabled, profiler.rank, profiler.files, profiler.profile))
        self.assertNotIn("torch", sys.modules)

    def test_the_innermost_launcher_says_the_rank(self):
        # As in a SLURM job of two tasks, where each started torchrun, mpirun or nothing.
        slurm = {"SLURM_PROCID": "1", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
        cases = (
            ({**slurm}, (1, 2)),
            ({**slurm, "RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
            ({**slurm, "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, (3, 4)),
            ({**slurm, "PMI_RANK": "3", "PMI_SIZE": "4"}, (3, 4)),
            ({"SLURM_PROCID": "0"}, (None, None)),
            ({"RANK": "x"}, (None, None)),
            ({}, (None, None)),
        )
        for variables, expected in cases:
            code = "import lockstep._profiler as p; print(p._rank_and_world())"
            kept = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH", "HOME")}
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**kept, **variables},
                                  check=True)
            self.assertEqual(f"{expected}\n", done.stdout, variables)

    def test_what_makes_no_sense_is_refused_at_once(self):
        for options in (dict(ranks="0,x"), dict(ranks="5-3"), dict(ranks=""), dict(ranks=[-1]), dict(schedule=dict(wait=1)),
                        dict(schedule=dict(wait=1, warmup=1, active=1, until=3)), dict(schedule="10"), dict(rank=-1)):
            with self.assertRaises(lockstep.InvalidArgumentError, msg=str(options)):
                lockstep.profiler(**options)


class JobTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = python_with_torch()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "traces"

    def run_job(self, code, **variables):
        # The package's source alone, as on a node where its compiled part was not built.
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python"), "KINETO_LOG_LEVEL": "5", "OMP_NUM_THREADS": "1",
                       "FOLDER": str(self.folder), **variables}
        done = subprocess.run([self.python, "-c", STEPS + code], capture_output=True, text=True, check=False, env=environment,
                              timeout=PATIENCE_S)
        self.assertEqual(0, done.returncode, done.stderr)
        return done

    def names(self):
        """Of all in the folder, hidden leftovers included."""
        return sorted(path.name for path in self.folder.iterdir())

    def test_each_cycle_is_a_window_in_order(self):
        self.run_job("job(14, schedule=dict(wait=1, warmup=1, active=2, repeat=3), folder=os.environ['FOLDER'])",
                     RANK="3", WORLD_SIZE="8")
        names = self.names()
        self.assertEqual(3, len(names))
        for window, name in enumerate(names):
            self.assertRegex(name, rf"^rank3-of-8_[A-Za-z0-9.-]+_[0-9]+_window{window}\.json\.gz$")
        run = lockstep.load(self.folder)
        rows = run.ranks.to_dicts()
        self.assertEqual([(3, 0, 8), (3, 1, 8), (3, 2, 8)], [(r["rank"], r["window"], r["world_size"]) for r in rows])
        self.assertEqual({"file_name"}, {r["rank_source"] for r in rows})
        self.assertEqual({2}, {len([s for s in run.steps().to_dicts() if s["window"] == w]) for w in range(3)})

    def test_a_lone_process_needs_no_rank(self):
        self.run_job("job(8, schedule=dict(wait=1, warmup=1, active=2), folder=os.environ['FOLDER'], compress=False)")
        names = self.names()
        self.assertEqual(2, len(names))
        self.assertTrue(all(name.endswith(".pt.trace.json") for name in names), names)
        self.assertEqual([(0, 0), (0, 1)], [(r["rank"], r["window"]) for r in lockstep.load(self.folder).ranks.to_dicts()])

    def test_without_a_schedule_all_is_one_window(self):
        self.run_job("job(3, folder=os.environ['FOLDER'], record_shapes=True)", RANK="0", WORLD_SIZE="1")
        (name,) = self.names()
        trace = json.loads(gzip.decompress((self.folder / name).read_bytes()))
        self.assertTrue(any("Input Dims" in event.get("args", {}) for event in trace["traceEvents"]))

    def test_nothing_is_overwritten(self):
        self.folder.mkdir()
        code = ("import socket\n"
                "taken = pathlib.Path(os.environ['FOLDER'], f'rank0-of-1_{socket.gethostname()}_{os.getpid()}_window0.json.gz')\n"
                "taken.write_text('mine')\n"
                "print(job(2, folder=os.environ['FOLDER']).files[0]); assert taken.read_text() == 'mine'")
        done = self.run_job("import pathlib\n" + code, RANK="0", WORLD_SIZE="1")
        self.assertRegex(done.stdout, r"window0-1\.json\.gz\n$")
        self.assertEqual(2, len(self.names()))

    def test_a_trace_that_cannot_be_written_does_not_end_the_job(self):
        self.folder.write_text("a file where the folder should be", encoding="utf-8")
        done = self.run_job("p = job(8, schedule=dict(wait=0, warmup=1, active=1, repeat=2), folder=os.environ['FOLDER'])\n"
                            "print(p.files, len(p.errors), 'trained')", RANK="0")
        self.assertEqual("[] 2 trained\n", done.stdout)
        self.assertIn("RuntimeWarning: lockstep.profiler: window 0 of rank 0 was not written", done.stderr)

    def test_the_users_handler_is_called_with_the_file_there(self):
        done = self.run_job("def ready(profile):\n"
                            "    print(len(profile.key_averages()) > 0, len(os.listdir(os.environ['FOLDER'])))\n"
                            "job(8, schedule=dict(wait=1, warmup=1, active=2), folder=os.environ['FOLDER'], on_trace_ready=ready)")
        self.assertEqual("True 1\nTrue 2\n", done.stdout)

    def test_an_error_of_the_job_leaves_the_begun_window(self):
        self.run_job("try:\n"
                     "    with lockstep.profiler(schedule=dict(wait=0, warmup=1, active=50), folder=os.environ['FOLDER']) as p:\n"
                     "        import torch\n"
                     "        for step in range(9):\n"
                     "            torch.ones(8).sum(); p.step()\n"
                     "        raise KeyError('of the job')\n"
                     "except KeyError as error: assert error.args == ('of the job',)")
        self.assertEqual(1, len(self.names()))
        self.assertGreater(lockstep.load(self.folder).job.event_count, 0)

    def test_the_example_profiles_the_ranks_that_were_asked_for(self):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python"), "KINETO_LOG_LEVEL": "5", "OMP_NUM_THREADS": "1",
                       "GLOO_SOCKET_IFNAME": "lo"}
        def clear():
            for name in self.names():
                os.remove(os.path.join(self.folder, name))
        job = torchrun(self.python, 4, SOURCE / "examples/profile_schedule.py", "--folder", self.folder, "--ranks", "0,2-3", "--steps", "20")
        done = run_until_it_ends(lambda: subprocess.run([job[0], "-W", "ignore", *job[1:]], capture_output=True, text=True, check=False,
                                                        env=environment, timeout=PATIENCE_S), clear)
        self.assertEqual(0, done.returncode, done.stderr)
        names = self.names()
        self.assertEqual([f"rank{rank}-of-4" for rank in (0, 0, 2, 2, 3, 3)], [name.split("_")[0] for name in names])
        status = program.run(["analyze", "--json", "--quiet", str(self.folder)])
        report = json.loads(status.stdout)
        self.assertEqual([1], report["data"]["job"]["missing_ranks"])
        self.assertEqual([0, 1], sorted({row["window"] for row in report["data"]["ranks"]}))
        steps = {}
        for row in report["data"]["steps"]:
            steps.setdefault((row["window"], row["step"]), set()).add(row["rank"])
        self.assertEqual([{0, 2, 3}] * len(steps), list(steps.values()))  # The same steps on all of them.


if __name__ == "__main__":
    unittest.main()
