#!/usr/bin/env python3
"""Stands in for a server of vLLM, SGLang or Triton, which this machine cannot have: answers /metrics with the names, labels and buckets that their
documents list, counts what it is told that it served, and misbehaves as it is told. As a program: serves one until it is killed."""

import http.server
import itertools
import sys
import threading
import time

REQUEST_BUCKETS = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)
FIRST_BUCKETS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)
TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
SGLANG_BUCKETS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)


class Histogram:
    def __init__(self, bounds):
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value, times=1):
        place = next((i for i, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[place] += times
        self.sum += value * times

    def lines(self, name, labels):
        yield f"# TYPE {name} histogram"
        for bound, count in zip([*map(float, self.bounds), "+Inf"], itertools.accumulate(self.counts)):
            yield f'{name}_bucket{{le="{bound}",{labels}}} {float(count)}'
        yield f"{name}_count{{{labels}}} {float(sum(self.counts))}"
        yield f"{name}_sum{{{labels}}} {self.sum}"


class Engine:
    """What an engine counts."""

    histograms, is_old = {}, False

    def __init__(self, model, is_old=False):
        self.model, self.is_old = model, is_old
        self.running, self.waiting, self.cache = 1, 2, 0.25
        self.ended = {"stop": 0, "length": 0, "abort": 0, "error": 0}
        self.tokens, self.preemptions = 0, 0
        self.observed = {name: Histogram(bounds) for name, bounds in self.histograms.items()}

    def observe(self, name, value, times=1):
        if name in self.observed:
            self.observed[name].observe(value, times)

    def serve(self, seconds, first_token_s=0.05, tokens=10, how="stop"):
        self.ended[how] += 1
        self.tokens += tokens
        if how in ("abort", "error"):
            return
        self.observe("e2e_request_latency_seconds", seconds)
        self.observe("time_to_first_token_seconds", first_token_s)
        between = (seconds - first_token_s) / max(tokens - 1, 1)
        for name in ("inter_token_latency_seconds", "time_per_output_token_seconds"):
            self.observe(name, between, tokens - 1)
        for name, value in (("request_time_per_output_token_seconds", between), ("request_queue_time_seconds", first_token_s / 2),
                            ("queue_time_seconds", first_token_s / 2), ("request_prefill_time_seconds", first_token_s / 2),
                            ("request_decode_time_seconds", seconds - first_token_s)):
            self.observe(name, value)

    def restart(self):
        self.__init__(self.model, self.is_old)

    def lines_of(self, prefix, labels, scalars):
        for kind, name, value in scalars:
            yield f"# TYPE {prefix}{name} {kind}"
            yield f"{prefix}{name}{{{labels}}} {value}"
        for name, histogram in self.observed.items():
            yield from histogram.lines(prefix + name, labels)


class Vllm(Engine):
    """0.13; `is_old`: 0.8. docs.vllm.ai, "Production metrics"."""

    kind = "vllm"
    histograms = {"e2e_request_latency_seconds": REQUEST_BUCKETS, "time_to_first_token_seconds": FIRST_BUCKETS,
                  "inter_token_latency_seconds": TOKEN_BUCKETS, "request_time_per_output_token_seconds": TOKEN_BUCKETS,
                  "request_queue_time_seconds": REQUEST_BUCKETS, "request_prefill_time_seconds": REQUEST_BUCKETS,
                  "request_decode_time_seconds": REQUEST_BUCKETS}

    def __init__(self, model, is_old=False):
        super().__init__(model, is_old)
        if is_old:
            self.observed.pop("request_time_per_output_token_seconds")
            self.observed["time_per_output_token_seconds"] = self.observed.pop("inter_token_latency_seconds")

    def text(self):
        labels = f'model_name="{self.model}"' if self.is_old else f'engine="0",model_name="{self.model}"'
        cache = "gpu_cache_usage_perc" if self.is_old else "kv_cache_usage_perc"
        lines = ["# HELP python_info Python platform information", 'python_info{implementation="CPython"} 1.0']
        lines += self.lines_of("vllm:", labels, [
            ("gauge", "num_requests_running", self.running), ("gauge", "num_requests_waiting", self.waiting), ("gauge", cache, self.cache),
            ("counter", "num_preemptions_total", self.preemptions), ("counter", "prompt_tokens_total", 5 * sum(self.ended.values())),
            ("counter", "generation_tokens_total", self.tokens)])
        lines += [f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(count)}' for reason, count in self.ended.items()
                  if not (self.is_old and reason == "error")]
        return "\n".join(lines) + "\n"


class Sglang(Engine):
    """docs.sglang.io, "Production metrics"."""

    kind = "sglang"
    histograms = {"e2e_request_latency_seconds": SGLANG_BUCKETS, "time_to_first_token_seconds": SGLANG_BUCKETS,
                  "inter_token_latency_seconds": TOKEN_BUCKETS, "queue_time_seconds": SGLANG_BUCKETS}

    def text(self):
        labels = f'engine_type="unified",model_name="{self.model}",pp_rank="0",tp_rank="0"'
        return "\n".join(self.lines_of("sglang:", labels, [
            ("gauge", "num_running_reqs", self.running), ("gauge", "num_queue_reqs", self.waiting), ("gauge", "token_usage", self.cache),
            ("gauge", "gen_throughput", 86.5), ("counter", "prompt_tokens_total", 5 * sum(self.ended.values())),
            ("counter", "generation_tokens_total", self.tokens), ("counter", "num_requests_total", self.ended["stop"] + self.ended["length"]),
            ("counter", "num_aborted_requests_total", self.ended["abort"])])) + "\n"


class Triton(Engine):
    """docs.nvidia.com, "Metrics" of the Triton Inference Server: as it is without --metrics-config, which has sums of times alone."""

    kind = "triton"

    def __init__(self, model, is_old=False):
        super().__init__(model, is_old)
        self.total_us, self.queue_us = 0, 0

    def serve(self, seconds, first_token_s=0.05, tokens=10, how="stop"):
        super().serve(seconds, first_token_s, tokens, how)
        if how not in ("abort", "error"):
            self.total_us += round(seconds * 1e6)
            self.queue_us += round(first_token_s * 1e6 / 2)

    def text(self):
        labels = f'model="{self.model}",version="1"'
        lines = self.lines_of("nv_inference_", labels, [
            ("counter", "request_success", self.ended["stop"] + self.ended["length"]), ("gauge", "pending_request_count", self.waiting),
            ("counter", "request_duration_us", self.total_us), ("counter", "queue_duration_us", self.queue_us)])
        failures = [f'nv_inference_request_failure{{{labels},reason="{reason}"}} {count}'
                    for reason, count in (("BACKEND", self.ended["error"]), ("CANCELED", self.ended["abort"]), ("REJECTED", 0), ("OTHER", 0))]
        return "\n".join([*lines, *failures]) + "\n"


class FakeEngine:
    """Serves one on the loopback. `behaviour`: "fine", "hang", "rubbish", "enormous", "slow" (never ends), "404"."""

    def __init__(self, engine, port=0, token=None):
        self.engine, self.behaviour, self.seen, self.ends = engine, "fine", [], threading.Event()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *words):
                pass

            def do_GET(self):
                fake.seen.append((self.path, self.headers.get("Authorization")))
                try:
                    fake.answer(self, token)
                except OSError:  # The asker went away.
                    pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def answer(self, handler, token):
        behaviour = self.behaviour
        if behaviour == "hang":
            self.ends.wait(60)
            return
        if behaviour == "404" or (token and handler.headers.get("Authorization") != f"Bearer {token}"):
            handler.send_error(404 if behaviour == "404" else 401)
            return
        handler.send_response(200)
        handler.end_headers()
        if behaviour == "rubbish":
            handler.wfile.write(bytes(range(256)) * 100)
        elif behaviour in ("enormous", "slow"):
            line = b'vllm:num_requests_running{model_name="m%d"} 1\n'
            for number in itertools.count():
                if self.ends.is_set() or number > 3_000_000:
                    return
                handler.wfile.write(line % number if behaviour == "slow" else b"".join(line % (number * 1000 + i) for i in range(1000)))
                if behaviour == "slow":
                    time.sleep(0.05)
        else:
            handler.wfile.write(self.engine.text().encode())

    def close(self):
        self.ends.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


if __name__ == "__main__":
    served = FakeEngine({"vllm": Vllm, "sglang": Sglang}[sys.argv[1]]("fake-model"), int(sys.argv[2]))
    print("ready", flush=True)
    while True:
        served.engine.serve(0.4)
        time.sleep(0.05)
