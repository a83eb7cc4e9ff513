"""`lockstep.trace` and its like in a Python program, with and without LOCKSTEP_TRACE."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from span_files import counts, query

JOB = pathlib.Path(__file__).with_name("python_job.py")


class PythonTest(unittest.TestCase):
    def launch(self, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_TRACE")}
        environment["PYTHONPATH"] = os.path.join(os.environ["LOCKSTEP_BUILD"], "python")
        done = subprocess.run([os.environ["LOCKSTEP_PYTHON_BASE"], JOB], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**environment, **variables})
        self.assertEqual((0, "done\n"), (done.returncode, done.stdout), done.stderr)

    def test_marks_cost_nothing_to_understand_when_they_are_off(self):
        self.launch()

    def test_every_mark_is_in_the_file(self):
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            self.launch(LOCKSTEP_TRACE=folder, RANK="0")
            [path] = pathlib.Path(folder).iterdir()
            self.assertEqual({"first": 1, "function": 1, "coroutine": 2, "generator": 1, "raises": 1, "again": 2, "größer": 1,
                              "threaded": 4000, "prefill": 20, "ProfilerStep#100": 1,
                              **{f"ProfilerStep#{i}": 1 for i in range(4)}}, counts(path))
            self.assertEqual([{"n": 4, "least": 0.25, "most": 1.0}],
                             query(path, "select sample_count as n, min as least, max as most from counters where name = 'loss'"))
            [requests] = query(path, "select * from inference_requests")
            self.assertEqual(("generate", 20, 2, 0, 108, 18), tuple(requests[name] for name in (
                "kind", "request_count", "failed_count", "unfinished_count", "output_count", "first_token_count")))
            self.assertLess(requests["first_token_median_ns"], requests["median_ns"])
            [awaits] = query(path, "select min(duration_ns) as least from events where name = 'coroutine'")
            self.assertGreater(awaits["least"], 900_000)
            self.assertEqual([], query(path, "select * from ledger where severity <> 'info'"))

    def test_what_the_allocator_says_is_a_counter_of_each_step(self):
        # A stand-in for PyTorch, whose CUDA needs a GPU: set up after the first step, in trouble at the last.
        program = """
import sys, types
import lockstep
told = {"allocated_bytes.all.current": 100, "reserved_bytes.all.current": 300, "allocated_bytes.all.peak": 200, "num_alloc_retries": 1, "num_ooms": 0}
fake_torch = types.SimpleNamespace(cuda=types.SimpleNamespace(
    is_initialized=lambda: told["ready"], memory_stats=lambda device: told["answer"](), current_device=lambda: 1,
    get_device_properties=lambda device: types.SimpleNamespace(total_memory=800 * device)))
told["ready"] = False
told["answer"] = lambda: {name: value for name, value in told.items() if not name.isalpha()}
for number in lockstep.steps(range(6)):
    if number == 1:
        sys.modules["torch"] = fake_torch
    if number == 2:
        told["ready"] = True
    if number > 2:
        told["allocated_bytes.all.current"] += 50
    if number == 5:
        told["answer"] = lambda: 1 / 0
for _ in lockstep.steps(range(3), memory=False):
    pass
lockstep.torch_memory()
told["answer"] = lambda: {"num_ooms": 7}
seconds = []
sys.modules["lockstep._torch_memory"].tell(lambda *counted: seconds.append(counted))  # As `lockstep run --stages` has it.
assert seconds == [("torch_ooms", 7.0), ("torch_memory_total_bytes", 800.0)], seconds
"""
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            environment = {**os.environ, "PYTHONPATH": os.path.join(os.environ["LOCKSTEP_BUILD"], "python"), "RANK": "0"}
            subprocess.run([os.environ["LOCKSTEP_PYTHON_BASE"], "-c", program], check=True, env={**environment, "LOCKSTEP_TRACE": folder})
            [path] = pathlib.Path(folder).iterdir()
            told = query(path, "select name, sample_count as n, min as least, max as most from counters order by name")
            self.assertEqual([("torch_alloc_retries", 3, 1, 1), ("torch_memory_allocated_bytes", 3, 100, 200), ("torch_memory_peak_bytes", 3, 200, 200),
                              ("torch_memory_reserved_bytes", 3, 300, 300), ("torch_memory_total_bytes", 3, 800, 800), ("torch_ooms", 3, 0, 0)],
                             [(row["name"], row["n"], row["least"], row["most"]) for row in told])
            subprocess.run([os.environ["LOCKSTEP_PYTHON_BASE"], "-c", program], check=True, env=environment)


if __name__ == "__main__":
    unittest.main()
