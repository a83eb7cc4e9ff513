"""Report pages of real runs, opened from file:// in Chromium: every view by keyboard, tables, addresses, print, both themes
without a violation that axe-core finds, no message on the console, no request; and the summary without a script."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from analyze_program import GENERATOR, PROGRAM, SOURCE_ROOT, data_path  # noqa: E402
from measured_fabric import measured_fabric  # noqa: E402

COUNTING_JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counting_job.py")
HOSTILE = "</script><script>window.bad=1</script><img src=x onerror=window.bad=1>&amp;\u2028'\"`${window.bad=1}"


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        web_packages.browser()
        web_packages.packages()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-pages-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_program(self, *command, statuses=(0,)):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=SOURCE_ROOT)
        self.assertIn(done.returncode, statuses, done.stderr.decode())
        return done.stdout

    def page_of(self, *paths, flags=()):
        page = os.path.join(self.folder, "report.html")
        answer = os.path.join(self.folder, "answer.json")
        self.run_program(PROGRAM, "analyze", *paths, *flags, "-q", "-o", page, statuses=(0, 4))
        with open(answer, "wb") as file:
            file.write(self.run_program(PROGRAM, "analyze", *paths, *flags, "-q", "--json", statuses=(0, 4)))
        return page, answer

    def generate(self, *options):
        out = os.path.join(self.folder, "traces")
        self.run_program(GENERATOR, "--out", out, "--gz", "1", *options)
        return out

    def exercise(self, *paths, flags=()):
        print(web_packages.run_node("page.mjs", *self.page_of(*paths, flags=flags)))

    def test_recorded_job_without_a_device(self):
        self.exercise(os.path.join(SOURCE_ROOT, "examples", "recorded"))

    def test_eight_ranks_with_devices(self):
        self.exercise(data_path("traces", "param_dlrm_8rank_v100", "kineto"), flags=["--what-if"])

    def test_tables_of_kernels_beside_traces(self):
        tables = [data_path("nsight", "ncu", name) for name in ("esmm2.raw.csv", "mistic1024.raw.csv", "mistic_higgs.raw.csv")]
        tables.append(data_path("nsight", "stats", "mfu_2gpu_before_cuda_gpu_kern_sum.csv.gz"))
        self.exercise(os.path.join(SOURCE_ROOT, "examples", "recorded"), *tables)

    def test_beside_what_the_fabric_can_do(self):
        recorded = os.path.join(SOURCE_ROOT, "examples", "recorded")
        fabric = measured_fabric(self.folder)
        page, answer = self.page_of(recorded, flags=["--fabric", fabric])
        print(web_packages.run_node("page.mjs", page, answer))
        with subprocess.Popen([PROGRAM, "serve", "-q", recorded, "--fabric", fabric], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True) as server:
            try:
                print(web_packages.run_node("page.mjs", server.stdout.readline().strip(), answer, PARTS="same as the answer"))
            finally:
                server.terminate()

    def test_operation_trace(self):
        self.exercise(data_path("traces", "bytedance_stragglers", "trace-ST.csv.gz"))

    def test_tensor_and_pipeline_parallel(self):
        self.exercise(self.generate("--ranks", "8", "--steps", "3", "--layers", "1", "--tensor-parallel", "2", "--pipeline-parallel", "2",
                                    "--micro-batches", "2", "--shapes", "--straggler", "3:2000:kernel"), flags=["--what-if"])

    def test_each_run_of_the_trace_diff(self):
        folder = data_path("traces", "hta_trace_diff")
        for name in ("control.json.gz", "test.json.gz"):
            with self.subTest(name):
                self.exercise(os.path.join(folder, name))

    def test_one_rank_with_memory(self):
        self.exercise(self.generate("--ranks", "1", "--steps", "3", "--layers", "2", "--memory"))

    def test_counters_of_three_ranks(self):
        python = os.environ.get("LOCKSTEP_PYTHON_BASE")
        if not python:
            self.skipTest("this build has no Python package that the job could count with")
        spans = os.path.join(self.folder, "spans")
        environment = {**os.environ, "PYTHONPATH": os.path.join(os.environ["LOCKSTEP_BUILD"], "python"), "LOCKSTEP_TRACE": spans, "WORLD_SIZE": "3"}
        ranks = [subprocess.Popen([python, COUNTING_JOB], stdin=subprocess.DEVNULL, env={**environment, "RANK": str(rank)}) for rank in range(3)]
        self.assertEqual([rank.wait() for rank in ranks], [0, 0, 0])
        self.exercise(spans)

    def test_missing_rank_and_shifted_clocks(self):
        self.exercise(self.generate("--ranks", "6", "--steps", "8", "--layers", "2", "--memory", "--missing", "4", "--ranks-per-host", "2",
                                    "--offset-us", "0", "--offset-us", "150", "--straggler", "2:3000:loader"))

    def test_many_ranks(self):
        self.exercise(self.generate("--ranks", "150", "--steps", "5", "--layers", "1", "--straggler", "77:1500:host"))

    def test_no_steps_and_names_that_are_markup(self):
        trace = os.path.join(self.folder, "hostile.json")
        events = [{"ph": "X", "cat": "kernel", "name": HOSTILE, "pid": 0, "tid": 7, "ts": 10 * at, "dur": 5,
                   "args": {"stream": 7, "device": 0, "correlation": at}} for at in range(1, 20)]
        events += [{"ph": "X", "cat": "cpu_op", "name": HOSTILE + "op", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 4} for at in range(1, 20)]
        with open(trace, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}, file)
        page, answer = self.page_of(trace)
        print(web_packages.run_node("page.mjs", page, answer))
        print(web_packages.run_node("unharmed.mjs", page))

    def test_served_page(self):
        run = os.path.join(SOURCE_ROOT, "examples", "recorded")
        _, answer = self.page_of(run)
        with subprocess.Popen([PROGRAM, "serve", "-q", run], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
            try:
                print(web_packages.run_node("page.mjs", server.stdout.readline().strip(), answer))
            finally:
                server.terminate()

    def test_page_without_data_says_so(self):
        print(web_packages.run_node("broken.mjs", os.path.join(web_packages.WEB, "dist", "page.html")))


if __name__ == "__main__":
    unittest.main()
