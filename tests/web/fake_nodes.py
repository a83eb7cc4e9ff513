"""Nodes that there are not: ranks by the hundred need more machines than a test has. Each answers on 127.0.0.1 what `lockstep serve` asks of a
lockstepd, `/api/v1/status` and `/metrics`, of a job whose ranks take steps as the clock goes on."""

import http.server
import json
import threading
import time

STEP_S = 0.1
OWN_S = 0.05
SLOW_OWN_S = 0.095
JOB = "fake-job"
ENGINE_JOB = "fake-0:8000"


def exposition(ranks, slow, world_size, host, age_s):
    """Of ranks that began `age_s` ago: all steps take as long, and who is not slow waits for who is."""
    steps = int(age_s / STEP_S)
    lines = [f'lockstep_build_info{{version="0.0.0"}} 1', f'lockstep_job_world_size{{job_id="{JOB}"}} {world_size}',
             f'lockstep_job_step_median_seconds{{job_id="{JOB}"}} {STEP_S}']
    for rank in ranks:
        who = f'job_id="{JOB}",rank="{rank}",host="{host}"'
        own = SLOW_OWN_S if rank == slow else OWN_S + 0.004 * (rank * 7919 % 100) / 100
        lines += [f'lockstep_rank_info{{{who},pid="{1000 + rank}",local_rank="{rank % 64}",user="fake",device="cpu"}} 1', f"lockstep_rank_up{{{who}}} 1",
                  f"lockstep_steps_total{{{who}}} {steps}", f"lockstep_step_seconds_total{{{who}}} {steps * STEP_S:.6f}",
                  f"lockstep_rank_last_progress_timestamp_seconds{{{who}}} {time.time():.3f}", f"lockstep_tokens_total{{{who}}} {steps * 2048}"]
        lines += [f'lockstep_step_phase_seconds_total{{{who},phase="{phase}"}} {steps * seconds:.6f}'
                  for phase, seconds in (("forward", own * 0.4), ("backward", own * 0.5), ("input", own * 0.1), ("comm_exposed", STEP_S - own))]
    return "\n".join(lines) + "\n"


def engine_and_instances(host):
    """What an inference engine that is no rank's says, and a GPU that MIG divides beside one that is whole."""
    who = f'job_id="{ENGINE_JOB}",model="llama",engine="vllm"'
    lines = [f"lockstep_serving_{name}{{{who}}} {value}" for name, value in (
        ("requests_total", 1000), ("requests_running", 7), ("requests_waiting", 3), ("kv_cache_usage_ratio", 0.625), ("preemptions_total", 12))]
    lines += [f'lockstep_serving_recent_inter_token_latency_seconds{{{who},quantile="{share}"}} {seconds}'
              for share, seconds in ((0.5, 0.02), (0.95, 0.05), (0.99, 0.08))]
    for gpu in (0, 1):
        of = f'host="{host}",gpu="{gpu}"'
        lines += [f'lockstep_gpu_info{{{of},uuid="GPU-{gpu}",model="Fake H100"}} 1', f"lockstep_gpu_memory_total_bytes{{{of}}} {80 << 30}"]
    lines += [f'lockstep_gpu_sm_active_ratio{{host="{host}",gpu="0"}} 0.5', f'lockstep_gpu_utilization_ratio{{host="{host}",gpu="0"}} 0.75']
    for gi, used in (("10", 2), ("9", 1)):
        of = f'host="{host}",gpu="1",gi="{gi}"'
        lines += [f'lockstep_gpu_info{{{of},uuid="MIG-{gi}",mig_profile="1g.10gb"}} 1', f"lockstep_gpu_memory_used_bytes{{{of}}} {used << 30}",
                  f"lockstep_gpu_memory_total_bytes{{{of}}} {10 << 30}"]
    lines.append(f'lockstep_gpu_sm_active_ratio{{host="{host}",gpu="1",gi="9"}} 0.25')  # Of the other nobody says it.
    return "\n".join(lines) + "\n"


class FakeNodes:
    """`count` nodes of `each` ranks, one of them slow, until the test's end; the first also has an engine and GPUs."""

    def __init__(self, test, count, each, slow):
        self.began = time.monotonic() - 60
        self.hosts = []
        for node in range(count):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler(range(node * each, (node + 1) * each), slow, count * each, f"fake-{node}"))
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            test.addCleanup(server.server_close)
            test.addCleanup(thread.join)
            test.addCleanup(server.shutdown)
            self.hosts.append(f"127.0.0.1:{server.server_address[1]}")

    def handler(self, ranks, slow, world_size, host):
        began = self.began

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # noqa: N802
                if self.path == "/api/v1/status":
                    kind, text = "application/json", json.dumps({"host": host, "version": "0.0.0", "now_unix_ns": time.time_ns()})
                elif self.path == "/metrics":
                    kind, text = "text/plain; version=0.0.4", exposition(ranks, slow, world_size, host, time.monotonic() - began)
                    text += engine_and_instances(host) if 0 in ranks else ""
                else:
                    return self.send_error(404)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                return self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        return Handler
