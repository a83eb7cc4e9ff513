"""Seeds of the readers of traces and of the names of files."""
import gzip
import json

from corpus import write
from kineto_text import BASE, DEVICES, INFO, NCCL, kernel, kineto, launch, memory, meta, op

# --- trace_reader ---------------------------------------------------------------------------------------------

def traces():
    mixed = [meta("process_name", 17, 0, '"name": "python"'), meta("thread_name", 17, 17, '"name": "thread 17 (python)"')]
    for i in range(12):
        mixed += [op(i), launch(i), kernel(i, extra=NCCL % i if i % 3 == 0 else "")]
    yield "kineto", kineto(mixed, INFO + DEVICES + BASE, ',\n  "traceName": "x.json"\n')
    yield "many_of_one_shape", kineto([op(i) for i in range(60)], BASE)
    yield "memory", kineto([memory(i) for i in range(20)], BASE)
    yield "old_categories", json.dumps(
        {
            "traceEvents": [
                {"ph": "X", "cat": c, "name": "n%d" % i, "pid": 0, "tid": "stream 7", "ts": 1000 + i, "dur": 2, "args": {"correlation": i}}
                for i, c in enumerate(["Kernel", "Memcpy", "Memset", "Runtime", "Operator", "Async", "Kernel", "Kernel"])
            ]
            + [{"ph": "X", "cat": "Trace", "name": "Record Window", "pid": "Traces", "tid": "PyTorch Profiler", "ts": 1, "dur": 9}]
        }
    )
    yield "categories", kineto(
        [
            op(i, cat=c, name="ProfilerStep#%d" % i)
            for i, c in enumerate(
                "user_annotation gpu_user_annotation gpu_memcpy gpu_memset cuda_driver cuda_sync overhead python_function "
                "mtia_runtime mtia_ccp_events xpu_runtime privateuse1_runtime hpu_op unknown_thing".split()
            )
        ]
    )
    yield "comms", kineto(
        [op(1, name="record_param_comms").replace('"Ev Idx": 1', '"Ev Idx": 1' + NCCL % 5), op(2, name="nccl:all_reduce", cat="user_annotation"), op(3, name="gloo:all_reduce", cat="cpu_op")]
        + [
            '{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 2, "ts": 5, "dur": 6, "args":'
            ' {"Input Dims": [[2, 3], [], [[4]]], "Input type": ["float", "", "double"], "Concrete Inputs": ["", "[1, 2]"]}}'
        ],
        INFO,
    )
    yield "one_line", json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(30)]}, separators=(",", ":"))
    yield "indented", json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.5 * i, "dur": 0.25, "args": {"x": [1, [2, {"y": None}]]}} for i in range(30)], "distributedInfo": {"rank": 0}}, indent=2)
    yield "bare_list", "[" + ",".join('{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":%d,"dur":1}' % i for i in range(9)) + "]"
    yield "numbers", kineto(
        [
            '{"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 1, "ts": %s, "dur": %s}' % pair
            for pair in [
                ("1694128201545123.456", "0.001"), ('"12.5"', '"3"'), ("-5", "1"), ("1e3", "2E-1"), ("9223372036854775807", "1"),
                ("9223372036854775808", "1"), ("99999999999999999999999999", "1"), ("NaN", "1"), ("1", "Infinity"), ("1", "-4"),
                ("null", "1"), ("[1]", "1"), ("true", "1"), ("0.0001", "0.9999"), ("1.", ".5"), ("01", "+1"),
            ]
        ]
    )
    yield "strings", kineto(
        [
            '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 1, "tid": 1, "ts": 1, "dur": 1}' % name
            for name in ["\\u00e9\\ud83d\\ude00", "\\ud800", "a\\qb", "tab\there", 'quo"te', "sla\\\\sh", "\\u12", "", "x" * 300, "\\n\\t\\b\\f\\/"]
        ]
    )
    yield "duplicate_and_missing_keys", kineto(
        ['{"ph": "X", "ph": "i", "name": "a", "name": "b", "pid": 1, "tid": 1, "ts": 1, "dur": 1}', '{"ph": "X"}', "{}", '{"ts": 1}', "[]", "7", '"x"', "null", '{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 2}']
    )
    yield "cut_in_event", kineto([op(i) for i in range(5)])[:-220]
    yield "cut_in_string", kineto([op(i) for i in range(5)])[:700]
    yield "garbage_between", kineto([op(1), "@@@@", op(2), '{"ph": "X", "name": }', op(3), '{"ph": "X", "na' + op(4)])
    yield "text_behind", kineto([op(1)]) + kineto([op(2)])
    yield "events_first", '{"traceEvents": [' + op(1) + '], "baseTimeNanoseconds": 1700000000000000000, "distributedInfo": {"rank": 3, "world_size": 4}, "displayTimeUnit": "ms"}'
    yield "bad_metadata", '{"a": tru, "b": {"c": [}, "traceEvents": [' + op(1) + "]}"
    yield "execution_trace", json.dumps({"schema": "1.0.2", "nodes": [{"id": 1, "name": "x", "ctrl_deps": 0}]})
    yield "deep", '{"traceEvents": [{"ph": "X", "name": "a", "cat": "cpu_op", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "args": ' + "[" * 400 + "]" * 400 + "}]}"
    yield "empty_array", '{"traceEvents": []}'
    yield "byte_order_mark", "\ufeff" + '{"traceEvents": [' + op(1) + "]}"


for number, (name, text) in enumerate(traces()):
    raw = text.encode("utf-8", "surrogatepass")
    write("trace_reader", name, bytes([4 + number % 8, 1]) + raw)
write("trace_reader", "not_utf8", bytes([6, 1]) + kineto([op(1, name="A")]).encode().replace(b'"A"', b'"\xff\xfe\xc0\x80"'))
write("trace_reader", "control_bytes", bytes([6, 1]) + kineto([op(1, name="A")]).encode().replace(b'"A"', b'"a\x00\x01\x1f"'))
write("trace_reader", "small_limit", bytes([0, 4]) + kineto([op(i, name="x" * 30 * i) for i in range(9)]).encode())
write("trace_reader", "gzip", bytes([6, 1]) + gzip.compress(kineto([op(i) for i in range(20)]).encode(), mtime=0))
write("trace_reader", "empty", b"\6\1")

# --- file_names -----------------------------------------------------------------------------------------------

NAMES = """rank3.json|rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz|rank3_iter100_200.json
trace-3-of-8.json|step5-rank0of8.json|rank_00002-of-00016.json
worker0_step_12.1694128201545.pt.trace.json.gz|mnist-worker-0_17.1694128201545.pt.trace.json|worker_process_4711.json
gpu-node-01.example.org_4711.1694128201545123456.pt.trace.json.gz|dp0_pp0_tp0_ep0_rank12.1756710000000000000.pt.trace.json.gz|x-DP-1-TP-0.trace.json.gz
local_rank1_rank9.json|rank2_world_size_16.json|proc7.json
r7_trace.json|runs/7/rank3/trace.json|rank99999999999.json
a.tar.gz|a.json.tmp|README.md
rank10|rank9|rank09
a00|a0|a\x1b[31m\xff
é.json|日本/rank3.json|\xed\xa0\x80.json""".split("\n")
for number, line in enumerate(NAMES):
    write("file_names", "names_%d" % number, line.encode().replace(b"|", b"\n"))
