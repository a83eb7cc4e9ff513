"""Loading: progress, interruption, several threads, paths of any kind."""

import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
import warnings
from unittest import mock

import lockstep
from lockstep import _progress
from samples import RECORDED, recorded, write_job
from waiting import PATIENCE_S


def many_copies(folder, count):
    """A job whose ranks are copies of a recorded one: enough to be in the middle of."""
    for rank in range(count):
        shutil.copy(RECORDED / "rank0.json.gz", pathlib.Path(folder) / f"copy{rank}.json.gz")
    return folder


class PathsTest(unittest.TestCase):
    def test_paths_lists_and_path_objects_are_taken(self):
        files = sorted(RECORDED.glob("*.gz"))
        expected = lockstep.load(RECORDED).job
        self.assertEqual(lockstep.load(*files).job, expected)
        self.assertEqual(lockstep.load([str(file) for file in files]).job, expected)
        self.assertEqual(lockstep.load(str(RECORDED) + "/").job, expected)


class ThreadsTest(unittest.TestCase):
    def test_many_threads_may_ask_one_run_at_once(self):
        expected = recorded().to_json()
        run = lockstep.load(RECORDED)
        questions = ("breakdown", "steps", "idle", "kernels", "operators", "collectives", "stragglers", "findings", "clocks")
        rows = {name: getattr(recorded(), name)().to_dicts() for name in questions}
        barrier = threading.Barrier(8)
        wrong = []

        def ask(first):
            barrier.wait()
            for turn in range(len(questions)):
                name = questions[(first + turn) % len(questions)]
                if getattr(run, name)().to_dicts() != rows[name]:
                    wrong.append(name)
                if len(run.events(turn % 4).to_pandas()) == 0 or run.partial:
                    wrong.append("events")
            if run.to_json() != expected:
                wrong.append("json")

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_the_interpreter_runs_on_while_a_run_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            many_copies(folder, 200)
            counted = 0
            warnings.simplefilter("ignore", lockstep.PartialWarning)  # One rank, two hundred times.
            self.addCleanup(warnings.resetwarnings)
            loader = threading.Thread(target=lambda: lockstep.load(folder, threads=1).analyze())
            loader.start()
            while loader.is_alive():
                counted += 1
                time.sleep(0.001)
            loader.join()
            self.assertGreater(counted, 10)


class InterruptionTest(unittest.TestCase):
    def test_control_c_ends_a_load(self):
        with tempfile.TemporaryDirectory() as folder:
            many_copies(folder, 400)
            script = textwrap.dedent("""
                import os, signal, sys, threading, lockstep
                timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
                def begin(_):  # Reading has begun, and is not near its end.
                    if not timer.is_alive():
                        timer.start()
                try:
                    lockstep.load(sys.argv[1], threads=1, progress=begin)
                    print("read")
                except KeyboardInterrupt:
                    print("interrupted")
                print(len(lockstep.load(sys.argv[2]).ranks))
            """)
            done = subprocess.run([sys.executable, "-c", script, folder, RECORDED], capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=False)
            self.assertEqual(done.stdout.split(), ["interrupted", "4"], done.stderr)

    def test_what_a_callback_raises_ends_the_load(self):
        class Enough(Exception):
            pass

        def stop(_):
            raise Enough

        with tempfile.TemporaryDirectory() as folder:
            many_copies(folder, 100)
            with self.assertRaises(Enough):
                lockstep.load(folder, progress=stop, threads=1)


class ProgressTest(unittest.TestCase):
    def test_a_callback_sees_how_far_it_is(self):
        seen = []
        with tempfile.TemporaryDirectory() as folder:
            write_job(folder, 40, names=[f"operator {i}" for i in range(2000)])
            run = lockstep.load(folder, progress=seen.append, threads=1)
        last = seen[-1]
        self.assertEqual((last.finished_file_count, last.file_count), (40, 40))
        self.assertEqual(last.consumed_bytes, last.total_bytes)
        self.assertEqual(last.ratio, 1)
        self.assertEqual(last.event_count, run.job.event_count)
        self.assertTrue(all(a.consumed_bytes <= b.consumed_bytes for a, b in zip(seen, seen[1:])))
        self.assertIn("40/40 files", str(last))

    def test_nothing_is_said_where_nobody_looks(self):
        with mock.patch.object(sys, "stderr", io.StringIO()) as stderr, mock.patch.object(_progress, "SILENT_S", 3600):
            self.assertIsNone(_progress.choose_display(None))
            self.assertIsNone(_progress.choose_display(False))
            self.assertIsInstance(_progress.choose_display(True), _progress.PlainLines)
            lockstep.load(RECORDED, progress=True)
            self.assertEqual(stderr.getvalue(), "")  # Over before anything is said.

    def test_a_terminal_gets_a_line_that_is_wiped(self):
        stream = io.StringIO()
        stream.isatty = lambda: True
        with mock.patch.object(sys, "stderr", stream), mock.patch.object(_progress, "SILENT_S", 0):
            with _progress.Reporter(None) as reporter:
                self.assertTrue(reporter.wanted)
                reporter(50, 100, 2_000_000, 1000, 1, 4)
        shown = stream.getvalue()
        self.assertIn("1/4 files", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"))

    def test_a_notebook_gets_a_bar_of_plain_html(self):
        shown = []
        handle = types.SimpleNamespace(update=shown.append)

        def display(html, display_id):
            self.assertTrue(display_id)
            shown.append(html)
            return handle

        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
        parts = types.ModuleType("IPython.display")
        parts.HTML = lambda text: text
        parts.display = display
        with mock.patch.dict(sys.modules, {"IPython": ipython, "IPython.display": parts}), \
                mock.patch.object(_progress, "SILENT_S", 0), mock.patch.object(_progress, "INTERVAL_S", 0):
            with _progress.Reporter(None) as reporter:
                reporter(25, 100, 2_000_000, 1000, 1, 4)
                reporter(50, 100, 4_000_000, 2000, 2, 4)
        self.assertEqual(len(shown), 3)
        self.assertIn('value="0.2500"', shown[0])
        self.assertIn("2/4 files", shown[1])
        self.assertEqual(shown[2], "")
        self.assertNotIn("<script", "".join(shown))


if __name__ == "__main__":
    unittest.main()
