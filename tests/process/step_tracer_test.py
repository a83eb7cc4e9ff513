"""lockstep's own tracer in a training process (python/lockstep/_capture.py), with a real PyTorch and a daemon that the test plays: each case
is a process of step_tracer_job.py."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from pytorch import python_with_torch
from waiting import PATIENCE_S


class StepTracerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = python_with_torch()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkst-", dir="/tmp")  # Short: Unix sockets' paths are.
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_case(self, name):
        done = subprocess.run([self.python, pathlib.Path(__file__).with_name("step_tracer_job.py"), name, self.folder],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_a_count_of_steps_is_traced_from_a_multiple_on(self):
        said = self.run_case("by_steps")
        self.assertEqual(0, said["first"] % 50)
        self.assertEqual([f"ProfilerStep#{said['first'] + i}" for i in range(3)], said["steps"])
        self.assertEqual([], said["left"])

    def test_a_length_of_time_is_whole_steps_and_another_follows(self):
        said = self.run_case("by_time")
        self.assertGreaterEqual(said["length_ms"], 199)
        self.assertEqual(list(range(said["numbers"][0], said["numbers"][0] + len(said["numbers"]))), said["numbers"])
        self.assertEqual(1, len(said["second"]))

    def test_it_begins_no_sooner_than_asked(self):
        self.assertGreater(self.run_case("at_a_time")["late_s"], -0.02)  # The trace's clock is the kernel's coarse one at times.

    def test_options_are_what_was_asked_for(self):
        said = self.run_case("options")
        self.assertTrue(said["shapes"] and said["stacks"] and said["memory"], said)

    def test_a_profiler_of_the_job_that_runs_already_is_waited_for(self):
        said = self.run_case("own_profiler_before")
        self.assertGreater(said["own_events"], 0)
        self.assertEqual("a waits until the torch.profiler that the job itself has started ends", said["note"])

    def test_a_profiler_that_the_job_starts_meanwhile_goes_first(self):
        said = self.run_case("own_profiler_within")
        self.assertGreater(said["own_events"], 0)
        self.assertEqual("a refused the job started a torch.profiler of its own", said["note"])
        self.assertTrue(said["free"])
        self.assertEqual([], said["left"])

    def test_a_profiler_of_the_job_that_comes_again_and_again_loses_nothing(self):
        said = self.run_case("scheduled_profiler")
        self.assertGreater(said["least_events"], 100)
        self.assertIn(said["note"], ("", "a refused the job started a torch.profiler of its own"))

    def test_a_profiler_of_the_job_in_another_thread_is_waited_for(self):
        said = self.run_case("own_profiler_elsewhere_before")
        self.assertEqual("a waits until the torch.profiler that the job itself has started ends", said["note"])
        self.assertGreaterEqual(said["own_events"], 100)

    def test_a_profiler_that_the_job_starts_in_another_thread_waits_for_the_end_of_the_step(self):
        said = self.run_case("own_profiler_elsewhere_within")
        self.assertEqual("a refused the job started a torch.profiler of its own", said["note"])
        self.assertGreaterEqual(said["own_events"], 100)

    def test_scopes_that_outlive_a_trace_are_ended_with_it(self):
        self.assertEqual(0, self.run_case("scope_across_traces")["unfinished"])

    def test_a_process_that_may_have_no_more_threads_goes_on(self):
        self.assertFalse(self.run_case("no_thread")["on"])

    def test_an_evaluation_by_hand_does_not_fill_the_memory(self):
        said = self.run_case("evaluation_without_batches")
        self.assertTrue(said["paused"] and said["exists"], said)
        self.assertLess(said["grown_mib"], 30)
        self.assertGreater(said["operators"], 5)

    def test_what_is_taken_back_within_an_evaluation_does_not_fill_the_memory(self):
        said = self.run_case("evaluation_and_taken_back")
        self.assertTrue(said["paused"] and not said["exists"], said)
        self.assertLess(said["grown_mib"], 30)

    def test_a_worker_that_is_forked_within_a_trace_records_nothing(self):
        said = self.run_case("forked_worker")
        self.assertLess(said["grown_mib"], 30)
        self.assertTrue(said["socket"], "the parent's socket is the parent's")

    def test_optimizers_within_backward_are_left_to_kineto(self):
        said = self.run_case("optimizer_in_backward")
        self.assertEqual("a refused optimizers step within backward, where no trace can begin or end", said["note"])
        self.assertFalse(said["steps"])

    def test_a_profile_function_of_the_job_is_kept(self):
        said = self.run_case("own_profile_function")
        self.assertIn("a profile function of its own", said["note"])
        self.assertTrue(said["kept"] and said["kept_still"], said)

    def test_a_request_is_served_once(self):
        self.assertTrue(self.run_case("asked_again")["same"])

    def test_what_is_taken_back_ends_with_its_step(self):
        said = self.run_case("taken_back")
        self.assertEqual("a refused it was taken back", said["note"])
        self.assertEqual([], said["left"])

    def test_what_is_taken_back_before_a_step_ended_never_begins(self):
        self.assertEqual([], self.run_case("taken_back_while_no_step_ends")["left"])

    def test_a_folder_that_is_not_there_is_said(self):
        self.assertIn("gone/a refused FileNotFoundError", self.run_case("no_folder")["note"])

    def test_a_full_disk_is_said_and_nothing_is_left(self):
        said = self.run_case("full_disk")
        self.assertIn("the disk may be full", said["note"])
        self.assertEqual([], said["left"])

    def test_a_signals_handler_raises_into_the_job_and_no_profiler_is_left(self):
        self.assertEqual(8, self.run_case("signal_handler_raises")["raised"])

    def test_a_step_ends_with_its_last_optimizer(self):
        said = self.run_case("several_optimizers")
        self.assertEqual(2, said["steps"])
        self.assertEqual(4, said["optimizer"])

    def test_a_forked_child_leaves_it_alone(self):
        said = self.run_case("forked")
        self.assertEqual(0, said["child"])
        self.assertEqual(30, said["steps"])

    def test_a_job_that_ends_leaves_what_was_traced(self):
        said = self.run_case("exits")
        events = json.loads(pathlib.Path(said["trace"]).read_text(encoding="utf-8"))["traceEvents"]
        self.assertTrue(any(event.get("name", "").startswith("ProfilerStep#") for event in events))

    def test_a_window_that_no_step_ends_is_ended_by_a_batch(self):
        said = self.run_case("no_step_for_long")
        self.assertTrue(said["exists"] and said["restored"], said)

    def test_any_thread_may_train(self):
        said = self.run_case("other_thread")
        self.assertEqual([], said["failures"])
        self.assertGreaterEqual(said["steps"], 3)

    def test_compiled_code_is_left_as_it_is(self):
        self.assertTrue(self.run_case("compiled")["compiled"])

    def test_strangers_are_not_served(self):
        traces = self.run_case("strangers")["traces"]
        self.assertEqual(1, len(traces))
        self.assertTrue(traces[0].startswith("a_"))

    def test_a_process_whose_steps_stop_says_so(self):
        self.assertEqual([True, False], self.run_case("stale")["steps"])


if __name__ == "__main__":
    unittest.main()
