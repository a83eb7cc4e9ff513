"""Inference engines beside a real lockstepd: their metrics under our names, whatever they do, and `lockstep top` of them. The engines are
stand-ins (fake_engine): vLLM and SGLang need a GPU, and Triton comes as a container."""

import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fake_engine import FakeEngine, Sglang, Triton, Vllm
from monitored import DAEMON, Watched, parse
from waiting import PATIENCE_S

LOCKSTEP = DAEMON.with_name("lockstep")
TOTAL = "lockstep_serving_requests_total"


class EnginesTest(unittest.TestCase):
    def watch(self, settings, *engines):
        for engine in engines:
            self.addCleanup(engine.close)
        scratch = tempfile.TemporaryDirectory(prefix="lke-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        config = pathlib.Path(scratch.name) / "lockstep.toml"
        config.write_text(f"[sensors]\ngpu = false\nengine_period_seconds = 1\n{settings}")
        config.chmod(0o644)
        return Watched(self, "--config", config)

    def test_engines_are_told_under_our_names_and_none_takes_another_with_it(self):
        vllm, sglang, odd = FakeEngine(Vllm("llama"), token="s3cret"), FakeEngine(Sglang("qwen")), FakeEngine(Vllm("odd"))
        token = pathlib.Path(f"/tmp/lke-{secrets.token_hex(4)}.token")
        self.addCleanup(token.unlink)
        token.touch(mode=0o600)
        token.write_text("s3cret\n")
        for _ in range(10):
            vllm.engine.serve(0.4)
        daemon = self.watch(
            f'[[engines]]\nurl = "{vllm.url}"\nkind = "vllm"\njob = "chat"\ntoken_file = "{token}"\n'
            f'[[engines]]\nurl = "{sglang.url}"\nkind = "sglang"\njob = "search"\nmodel = "ours"\n'
            f'[[engines]]\nurl = "{odd.url}"\nkind = "vllm"\njob = "odd"\n'
            "[serving]\nslo_request_seconds = 2.5\nslo_first_token_seconds = 1\n", vllm, sglang, odd)
        chat = {"job_id": "chat", "model": "llama", "engine": "vllm"}
        ours = {"job_id": "search", "model": "ours", "engine": "sglang"}
        daemon.wait_for(lambda: daemon.value(TOTAL, **chat) == 10 and daemon.value(TOTAL, **ours) == 0, "both engines")
        self.assertEqual({("/metrics", "Bearer s3cret")}, set(vllm.seen))
        self.assertEqual({("/metrics", None)}, set(sglang.seen))

        # What the engine counted before is not of the last minute; what it serves from now on is.
        for seconds in [0.4] * 60 + [0.9] * 38 + [4.0] * 2:
            vllm.engine.serve(seconds, first_token_s=seconds / 10)
        vllm.engine.running, vllm.engine.waiting, vllm.engine.cache, vllm.engine.preemptions = 6, 3, 0.84, 5
        for how in ("abort", "error", "error"):
            vllm.engine.serve(9, how=how)
        sglang.engine.ended["abort"] += 3
        sglang.engine.serve(0.5)
        daemon.wait_for(lambda: daemon.value(TOTAL, **chat) == 113 and daemon.value(TOTAL, **ours) == 1, "what they served")
        samples = parse(daemon.metrics())

        def value(name, labels, **more):
            return samples.get((f"lockstep_serving_{name}", frozenset({**labels, **more}.items())))

        self.assertEqual((2, 1, 6, 3, 0.84, 1130, 5), tuple(value(name, chat) for name in (
            "request_failures_total", "requests_aborted_total", "requests_running", "requests_waiting", "kv_cache_usage_ratio",
            "generation_tokens_total", "preemptions_total")))
        self.assertEqual((3, None), (value("requests_aborted_total", ours), value("request_failures_total", ours)))
        for name in ("request_duration", "time_to_first_token", "time_per_output_token", "queue_time", "prefill_time", "decode_time"):
            self.assertEqual(110, value(f"{name}_seconds_count", chat), name)
            self.assertEqual(110, value(f"{name}_seconds_bucket", chat, le="+Inf"), name)
        self.assertEqual(70, value("request_duration_seconds_bucket", chat, le="0.5"))
        self.assertAlmostEqual(10 * 0.4 + 60 * 0.4 + 38 * 0.9 + 2 * 4, value("request_duration_seconds_sum", chat), 6)
        self.assertEqual(110, value("recent_request_duration_seconds_count", chat))  # Of all: it rises, for rate().
        self.assertEqual(990, value("recent_inter_token_latency_seconds_count", chat))
        # Estimates: linear within the bucket that holds the true quantile.
        for share, least, most in (("0.5", 0.3, 0.5), ("0.9", 0.8, 1.0), ("0.99", 2.5, 5.0)):
            said = value("recent_request_duration_seconds", chat, quantile=share)
            self.assertTrue(least <= said <= most, (share, said))
        self.assertEqual((2.5, 1, None), tuple(value(f"slo_{name}_seconds", chat) for name in (
            "request_duration", "time_to_first_token", "inter_token_latency")))

        done = subprocess.run([LOCKSTEP, "top", "--once", "--json", "--interval", "1s", "--socket", daemon.path], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(0, done.returncode, done.stderr)
        jobs = {job["job_id"]: job for job in json.loads(done.stdout)["data"]["jobs"]}
        [serving] = jobs["chat"]["serving"]
        self.assertEqual(("llama", "vllm", 113), (serving["model"], serving["engine"], serving["request_count"]))
        self.assertTrue(0.3e9 <= serving["request_ns"]["p50"] <= 0.5e9, serving)
        # Nine times between ten outputs: 40, 90 and 400 ms.
        for name, least, most in (("p50", 0.025e9, 0.05e9), ("p95", 0.075e9, 0.1e9), ("p99", 0.3e9, 0.5e9)):
            self.assertTrue(least <= serving["inter_token_ns"][name] <= most, (name, serving))
            self.assertAlmostEqual(value("recent_inter_token_latency_seconds", chat, quantile=f"0.{name[1:].rstrip('0')}") * 1e9, serving["inter_token_ns"][name], delta=2)
        self.assertEqual((6, 3, 0.84, 5), tuple(serving[name] for name in ("running_count", "waiting_count", "kv_cache_usage_ratio", "preemption_count")))
        [serving] = jobs["search"]["serving"]  # SGLang does not say how often it put requests back.
        self.assertEqual((1, 2, 0.25, None, None), tuple(serving[name] for name in (
            "running_count", "waiting_count", "kv_cache_usage_ratio", "preemption_count", "preemptions_per_s")))
        self.assertEqual([], jobs["chat"]["ranks"])
        text = subprocess.run([LOCKSTEP, "top", "--once", "--interval", "1s", "--socket", daemon.path], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        self.assertRegex(text, r"llama .* ~\d+")  # Said to be an estimate.
        self.assertRegex(text, r"(?m)^ *llama .* 3 +84 % .*~\d+.* ms$")

        # One that is started anew begins at 0, and its last minute with it.
        vllm.engine.restart()
        vllm.engine.serve(0.4)
        daemon.wait_for(lambda: daemon.value(TOTAL, **chat) == 1, "the engine that was started anew")
        self.assertIsNone(daemon.value("lockstep_serving_recent_request_duration_seconds_count", **chat))

        lines = []
        for behaviour, words in (("hang", "does not answer in time"), ("rubbish", "begins with vllm:"), ("enormous", "larger than 8 MiB"),
                                 ("slow", "does not answer in time"), ("404", "status 404")):
            odd.behaviour = behaviour
            daemon.wait_for(lambda: daemon.value("lockstep_serving_engine_up", job_id="odd") == 0, behaviour)
            lines.append(daemon.wait_for_line(odd.url))
            while words not in lines[-1]:  # It may have been too slow before.
                lines.append(daemon.wait_for_line(odd.url))
            self.assertIsNone(daemon.value(TOTAL, job_id="odd"))
            daemon.wait_for(lambda: daemon.value(TOTAL, **chat) == 1 and daemon.value("lockstep_collector_success", collector="engines") == 1,
                            f"the others beside one that is {behaviour}")
            odd.behaviour = "fine"
            daemon.wait_for(lambda: daemon.value(TOTAL, job_id="odd") == 0, "fine again")
        odd.close()
        daemon.wait_for(lambda: daemon.value("lockstep_serving_engine_up", job_id="odd") == 0 and daemon.value(TOTAL, job_id="odd") is None, "gone")
        self.assertLess(daemon.value("process_resident_memory_bytes"), 128 << 20)

    def test_an_engine_that_has_only_sums_of_times_has_means_and_no_quantiles(self):
        triton = FakeEngine(Triton("resnet"))
        daemon = self.watch(f'[[engines]]\nurl = "{triton.url}"\nkind = "triton"\njob = "images"\n', triton)
        labels = {"job_id": "images", "model": "resnet", "engine": "triton"}
        daemon.wait_for(lambda: daemon.value(TOTAL, **labels) == 0, "the engine")
        for how in ("stop", "stop", "error", "abort"):
            triton.engine.serve(0.25, how=how)
        daemon.wait_for(lambda: daemon.value(TOTAL, **labels) == 4, "what it served")
        for name, value in (("request_failures_total", 1), ("requests_aborted_total", 1), ("requests_waiting", 2), ("request_duration_seconds_count", 2),
                            ("request_duration_seconds_sum", 0.5), ("queue_time_seconds_sum", 0.05)):
            self.assertAlmostEqual(value, daemon.value(f"lockstep_serving_{name}", **labels), 6, name)
        self.assertEqual(2, daemon.value("lockstep_serving_recent_request_duration_seconds_count", **labels))
        self.assertIsNone(daemon.value("lockstep_serving_recent_request_duration_seconds", **labels))
        for command in (["--json"], []):
            done = subprocess.run([LOCKSTEP, "top", "--once", *command, "--interval", "1s", "--socket", daemon.path],
                                  capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertIn("resnet", done.stdout)

    def test_engines_are_found_by_their_command_where_that_is_wanted(self):
        # Named as vLLM's command is; it is the stand-in all the same.
        scratch = tempfile.TemporaryDirectory(prefix="lke-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        command = pathlib.Path(scratch.name) / "vllm"
        command.write_text("import runpy, sys\nsys.argv = ['fake_engine', 'vllm', sys.argv[3]]\n"
                           f"runpy.run_path({str(pathlib.Path(__file__).with_name('fake_engine.py'))!r}, run_name='__main__')\n")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        process = subprocess.Popen([sys.executable, command, "serve", "--port", port], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual("ready\n", process.stdout.readline())
        daemon = self.watch("find_engines = true\n")
        job = f"{os.uname().nodename}:{port}"
        daemon.wait_for(lambda: (daemon.value(TOTAL, job_id=job, model="fake-model") or 0) > 0, "the engine that was found")
        blind = self.watch("")
        blind.wait_for(lambda: blind.value("lockstep_collector_success", collector="processes") == 1, "a look")
        self.assertIsNone(blind.value("lockstep_collector_present", collector="engines"))


if __name__ == "__main__":
    unittest.main()
