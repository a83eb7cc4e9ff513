"""Seeds of what the daemon and its clients read."""
import json
import struct

from corpus import write

# --- hostlist -------------------------------------------------------------------------------------------------

for name, text in {
    "plain": "n1,n2,n1",
    "groups": "n[001-003,007],gpu-[1-2]-[1-2]",
    "suffix": "gpu[1-2].cluster.local",
    "padded": "n[08-11],n[001-3]",
    "adjacent": "x[1-2][3-4]",
    "reversed": "n[3-1]",
    "open": "n[1-",
    "limit": "n[1-65536]",
    "over": "n[1-65536],m",
    "wide": "n[0-999999999999999999]",
    "letters": "n[a-c]",
    "close": "n]",
    "commas": ",a,,b,",
    "three": "r[1-2]c[01-02]n[1-2]",
    "braces": "n{1-3}",
}.items():
    write("hostlist", name, text.encode())

# --- trace_window ---------------------------------------------------------------------------------------------

# The first byte is the size of pieces, less one.
WINDOW = b''' {"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "ts": 4419348313950.000, "dur": 5.000},
{"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "", "ts": 4419348313913.417},
{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 4419348942710.670}
],"traceName": "/tmp/x.json" }'''
for name, text in {
    "whole": WINDOW,
    "cut": WINDOW[:300],
    "base_last": b'{"traceEvents":[{"name":"Record Window End","ts":5.5}],"baseTimeNanoseconds": 1000}',
    "overflow": b'{"traceEvents":[{"name":"Record Window End","ts":99999999999999999999.9}],"baseTimeNanoseconds": 99999999999999999999}',
    "sum_overflow": b'{"traceEvents":[{"name":"Iteration Start: PyTorch Profiler","ts":9223372036854774}],"baseTimeNanoseconds": 9223372036854775807}',
    "no_value": b'{"traceEvents":[{"name":"Record Window End","ts"',
    "empty": b"",
}.items():
    write("trace_window", name, b"\x05" + text)

# --- daemon_json ----------------------------------------------------------------------------------------------

def body(name, value):
    write("daemon_json", name, value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode())


PROCESS = {"id": "4242-991", "pid": 4242, "start_ticks": 991, "uid": 1000, "client_pids": [17, 1], "user": "alice", "host": "n001", "role": "trainer", "state": "idle", "rank": 3, "local_rank": 1, "world_size": 8, "job_kind": "slurm", "job_id": "12_3", "job_step": "0", "command": "python3 train.py --token ***", "device": "cuda", "torch_version": "2.13.0+cpu", "socket": "abstract", "counts_iterations": True, "first_poll_unix_ns": 1700000000000000001, "last_poll_unix_ns": 1700000000000000002, "poll_period_ns": 1000000000}
SPEC = {"group": "a_1-b", "selector": {"job_id": "12_3", "pids": [5], "process_ids": ["4242-991"], "ranks": [[0, 3], [8, 15]], "uid": 1000, "include_launchers": True}, "window": {"mode": "iterations", "duration_ns": 250000000, "start_unix_ns": 1700000000123000000, "warmup_ns": 2000000000, "iterations": 5, "roundup": 50, "start_iteration": 2000, "warmup_iterations": 2, "deliver_from_unix_ns": 1700000000000000007}, "options": {"record_shapes": True, "memory": False, "stacks": False, "flops": False, "modules": False, "activities": ["cpu_op"]}, "wait_ns": 1, "timeout_ns": 60000000000, "process_limit": 7}
TARGET = {"process": PROCESS, "state": "done", "reason": None, "delivered_unix_ns": 11, "begun_unix_ns": 12, "finished_unix_ns": 13, "trace_name": "n001_rank3.json", "trace_bytes": 99}
CAPTURE = {"id": "abcdefgh01234567", "spec": SPEC, "state": "partial", "reason": "rank 1 died", "requested_by": "alice", "created_unix_ns": 10, "finished_unix_ns": None, "targets": [TARGET]}
body("status", {"host": "n1", "version": "0.1.0", "daemon_pid": 9, "daemon_uid": 5, "started_unix_ns": 1, "now_unix_ns": 2, "kineto_sockets": ["abstract:dynolog"], "base_config": None, "process_count": 3, "running_capture_count": 4, "problems": ["full"]})
body("processes", {"processes": [PROCESS, {"id": "1-1"}]})
body("spec", SPEC)
body("spec_duration", {"window": {"mode": "duration", "duration_ns": 500000000}, "later": [1.5, {"x": None}]})
body("spec_empty", {})
body("capture", CAPTURE)
body("captures", {"captures": [CAPTURE]})
body("error", {"error": {"code": "not_found", "message": "no process"}})
body("bad_range", {"selector": {"ranks": [[3, 1]]}, "window": {"duration_ns": 1}})
body("bad_names", {"id": "../../../../../x", "targets": [{"process": PROCESS, "trace_name": "../x.json"}]})
body("deep", b'{"x":' + b"[" * 200)
body("surrogate", b'{"processes":[{"id":"1-1","command":"\\udc00\\u0000"}]}')
body("numbers", b'{"window":{"duration_ns":1e9,"roundup":-0,"start_iteration":18446744073709551616}}')
body("zero_byte", b"{}\0{}")
body("stages", {"host": "n1", "now_unix_ns": 30, "ranks": [{"job_id": "4711", "user": "ada", "rank": 3, "world_size": 8, "pid": 42, "seen_step_count": 900, "kept_step_count": 512, "lost_record_count": 2, "ended_in_order": False, "hides_communication": True, "steps": "Dgq5YAQQMkU="}, {"rank": 0, "steps": None}]})
body("stages_query", b"job=12%203&last=128")
body("packed_steps", b"\x0e\x14\x03\x10\x32\x45\x10\x16\x00")

# --- kineto_datagram ------------------------------------------------------------------------------------------

def message(tag, payload, size=None):
    return struct.pack("<Q32s", len(payload) if size is None else size, tag) + payload


def poll(mask=3, job=0, pids=(4242, 4000), count=None):
    return message(b"req", struct.pack("<iiq", mask, len(pids) if count is None else count, job) + struct.pack(f"<{len(pids)}i", *pids))


def arrivals(*datagrams):
    """Each: sender, age in ms, what else happens, bytes."""
    return b"".join(struct.pack("<BBBH", who, age, action, len(data)) + data for who, age, action, data in datagrams)


write("kineto_datagram", "one_poll", arrivals((1, 2, 0, poll())))
write("kineto_datagram", "eleven_pids", arrivals((1, 2, 0, poll(2, 99, tuple(range(11, 0, -1))))))
write("kineto_datagram", "trace", arrivals(*[(1, 2, 10, poll(mask)) for mask in (3, 3, 1, 1, 3, 3)]))
write("kineto_datagram", "context", arrivals((2, 2, 0, message(b"ctxt", struct.pack("<iiq", 1, 4242, 9))), (2, 2, 1, poll())))
write("kineto_datagram", "late", arrivals((1, 2, 0, poll()), (1, 200, 0, poll()), (1, 2, 0, poll()), (1, 39, 0, poll()), (1, 0, 0, poll())))
write("kineto_datagram", "lies", arrivals((1, 2, 0, poll(count=5)), (1, 2, 0, poll(count=-1)), (1, 2, 0, message(b"req", b"", 1 << 40)), (1, 2, 0, b"\1\2\3"), (1, 2, 0, message(b"x" * 32, b""))))
write("kineto_datagram", "gone_and_full", arrivals(*[(who, 2, (who % 3) << 4 | 1, poll()) for who in range(40)]))
write("kineto_datagram", "silence", arrivals((5, 2, 0, poll()), *[(6, 2, 0x4F, poll()) for _ in range(60)]))

# --- kineto_config --------------------------------------------------------------------------------------------

write("kineto_config", "dyno_duration", b"PROFILE_START_TIME=0\nACTIVITIES_LOG_FILE=/tmp/trace.json\nACTIVITIES_DURATION_MSECS=500\nPROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_PROFILE_MEMORY=false\nPROFILE_WITH_STACK=false\nPROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false\n")
write("kineto_config", "dyno_iterations", b"ACTIVITIES_LOG_FILE=/tmp/trace.json\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1000\nACTIVITIES_ITERATIONS=3\n")
write("kineto_config", "everything", b"# all\nPROFILE_START_TIME=1700000000123\nACTIVITIES_DURATION_SECS = 2 # s\nACTIVITIES_WARMUP_PERIOD_SECS=0\nACTIVITIES_WARMUP_ITERATIONS=1\nACTIVITY_TYPES=CPU_OP, kernel\nPYTHON_STACK_TRACE=Y\nREQUEST_TRACE_ID=1\nNEW=1\n")
write("kineto_config", "two_equals", b"ACTIVITIES_LOG_FILE=/tmp/a=b.json\n")
write("kineto_config", "snapshot", b"PROFILE_MEMORY=true\nPROFILE_MEMORY_DURATION_MSECS=1000\n")
write("kineto_config", "big_numbers", b"PROFILE_START_TIME=9223372036854775807\nACTIVITIES_DURATION_MSECS=2147483648\n")

# --- exposition -----------------------------------------------------------------------------------------------

# The first byte says where the second look begins.
RANK = 'job_id="j",rank="%d",host="n"'
STEPS = "".join(
    f'lockstep_rank_info{{{RANK % rank},pid="{100 + rank}",local_rank="{rank}",device="cuda"}} 1\n'
    f"lockstep_steps_total{{{RANK % rank}}} {10 + rank}\nlockstep_step_seconds_total{{{RANK % rank}}} 1.25\n"
    f'lockstep_step_phase_seconds_total{{{RANK % rank},phase="comm_exposed"}} 0.{rank}\n'
    f"lockstep_rank_last_progress_timestamp_seconds{{{RANK % rank}}} 1700000000.5\n" for rank in range(3))
for name, text in {
    "steps": "# HELP lockstep_steps_total x\n" + STEPS,
    "escapes": 'lockstep_user_value{job_id="j",rank="0",name="a\\\\\\"\\n\x1b[31m\xff\u202e"} 1\n',
    "numbers": "a +Inf\nb -Inf 17\nc NaN\nlockstep_steps_total{" + RANK % 0 + "} 1e308\n",
    "gpu": 'lockstep_gpu_energy_joules_total{gpu="0"} 5\nlockstep_gpu_xid_events_total{gpu="0",xid="79"} 1\n'
           'lockstep_gpu_temperature_celsius{gpu="0",sensor="core"} 91\nlockstep_collector_success{collector="gpu"} 0\n',
    "serving": 'lockstep_serving_requests_total{job_id="j",model="m",engine="e"} 7\n'
               'lockstep_serving_recent_request_duration_seconds{job_id="j",model="m",engine="e",quantile="0.99"} 0.5\n',
    "groups": 'lockstep_collective_enqueued_total{job_id="j",rank="0",pg="p"} 3\n'
              'lockstep_collective_enqueued_total{job_id="j",rank="1",pg="p"} 2\n'
              'lockstep_collective_oldest_inflight_seconds{job_id="j",rank="0",pg="p"} 70\n',
    "ports": 'lockstep_ib_port_active{host="n",device="mlx5_0",port="1"} 0\nlockstep_ib_port_receive_bytes_total{device="mlx5_0",port="1"} 1e9\n'
             'lockstep_ib_port_errors_total{device="mlx5_0",port="1",error="\x1b"} 3\nlockstep_host_network_transmit_bytes_total{device="eth0"} -1\n',
    "broken": 'a{\na{b\na{b="\na{b="c\na{b="c"}\na{b="c"} x\n{} 1\n',
    "world": 'lockstep_job_world_size{job_id="j"} 18446744073709551615\nlockstep_rank_up{job_id="j",rank="-1"} 1\n',
}.items():
    write("exposition", name, b"\x80" + text.encode("latin-1", "replace"))
