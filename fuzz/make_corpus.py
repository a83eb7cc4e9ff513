#!/usr/bin/env python3
"""Writes the seed inputs of the fuzz targets to fuzz/corpus/. Everything in them is made up here.

Run it after changing a seed; inputs that fuzzing found and that are kept for good are named found_... and are
left alone.
"""
import gzip
import io
import json
import pathlib
import struct
import subprocess
import tarfile
import zipfile

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


# --- trace_reader ---------------------------------------------------------------------------------------------


def kineto(events, head="", tail=""):
    """The profiler's own layout: one key or event per line."""
    return '{\n  "schemaVersion": 1,\n' + head + '  "traceEvents": [\n' + ",\n".join(events) + "\n  ]" + tail + "}\n"


INFO = '  "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2, "pg_count": 1, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}]},\n'
DEVICES = '  "deviceProperties": [\n    {"id": 0, "name": "Example GPU", "totalGlobalMem": 1000000, "numSms": 8}\n  ],\n'
BASE = '  "baseTimeNanoseconds": 1727987490000000000,\n'


def op(i, name="aten::add", ts="%d.%03d", cat="cpu_op"):
    return (
        '  {\n    "ph": "X", "cat": "%s", "name": "%s", "pid": 17, "tid": %d,\n    "ts": %s, "dur": %d.%03d,\n'
        '    "args": {\n      "External id": %d,"Record function id": 0, "Ev Idx": %d\n    }\n  }'
        % (cat, name, 17 + i % 2, ts % (100 + i, i) if "%" in ts else ts, i % 9, i * 7 % 1000, i, i)
    )


def kernel(i, name="gemm_kernel", extra=""):
    return (
        '  {\n    "ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7,\n    "ts": %d.%03d, "dur": %d.250,\n'
        '    "args": {\n      "External id": %d,"queued": 0, "device": 0, "context": 1,\n      "stream": 7, "correlation": %d,\n'
        '      "grid": [4, 1, 1],\n      "block": [128, 1, 1],"est. achieved occupancy %%": 40%s\n    }\n  }'
        % (name, 120 + 3 * i, i, 1 + i % 2, i, 100 + i, extra)
    )


NCCL = (
    ',"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",'
    ' "In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description":'
    ' "default_pg", "Process Group Ranks": "[0, 1]", "Rank": 1, "Seq": %d, "Comms Id": 18446744073709551615'
)


def launch(i):
    return (
        '  {\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 17, "tid": 17,\n'
        '    "ts": %d.500, "dur": 0.100,\n    "args": {\n      "External id": %d,"cbid": 211, "correlation": %d\n    }\n  },\n'
        '  {\n    "ph": "s", "id": %d, "pid": 17, "tid": 17, "ts": %d.500,\n    "cat": "ac2g", "name": "ac2g"\n  }'
        % (100 + 3 * i, i, 100 + i, 100 + i, 100 + 3 * i)
    )


def meta(kind, pid, tid, arg):
    return (
        '  {\n    "name": "%s", "ph": "M", "ts": 1.000, "pid": %s, "tid": %s,\n    "args": {\n      %s\n    }\n  }'
        % (kind, pid, tid, arg)
    )


def memory(i):
    return (
        '  {\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",\n    "pid": 17, "tid": 17,\n'
        '    "ts": %d.250,\n    "args": {\n      "Total Reserved": %d, "Total Allocated": %d, "Bytes": %d,'
        ' "Addr": 140000000, "Device Id": 0, "Device Type": 1\n    }\n  }' % (100 + i, 4096 * i, 2048 * i, 512 - 1024 * (i % 2))
    )


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

# --- archive --------------------------------------------------------------------------------------------------

TEXT = kineto([op(i) for i in range(6)]).encode()


def tar(entries, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as archive:
        for name, data, kind, target in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = target
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue().rstrip(b"\0") + b"\0" * 1024


def zipped(entries, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def stream(name, data, window=3):
    write("archive", name, bytes([0, window]) + data)


def archive(name, data, window=4):
    write("archive", name, bytes([1, window]) + data)


stream("gzip", gzip.compress(TEXT, mtime=0))
stream("gzip_stored", gzip.compress(b"stored " * 20, 0, mtime=0))
stream("gzip_members", gzip.compress(TEXT, mtime=0) + gzip.compress(b"", mtime=0) + gzip.compress(b"tail", mtime=0))
stream("gzip_cut", gzip.compress(TEXT, mtime=0)[:100])
stream("gzip_text_behind", gzip.compress(b"{}", mtime=0) + b'{"traceEvents": []}')
stream("gzip_zeros_behind", gzip.compress(b"{}", mtime=0) + b"\0" * 100)
stream("gzip_bomb", gzip.compress(b"\0" * (5 << 20), 9, mtime=0))
# Every optional header field: extra, name, comment, header checksum flag off.
stream("gzip_fields", b"\x1f\x8b\x08\x1c\0\0\0\0\0\x03" + b"\x04\x00abcd" + b"name\0" + b"comment\0" + gzip.compress(b"fields", mtime=0)[10:])
stream("zstd", zstd(TEXT))
stream("zstd_frames", b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd(TEXT) + zstd(b"") + zstd(b"tail"))
stream("zstd_cut", zstd(TEXT)[:80])
stream("xz", b"\xfd7zXZ\0")
stream("plain", b"plain text")
stream("empty", b"")

REG, DIR, SYM, LNK, CHR = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
RANKS = [("job", b"", DIR, ""), ("job/rank0.json", TEXT, REG, ""), ("job/rank1.json.gz", gzip.compress(TEXT, mtime=0), REG, ""), ("README", b"x", REG, "")]
ODD = [
    ("../../rank0.json", b"up", REG, ""), ("/etc/rank1.json", b"absolute", REG, ""), ("rank2.json", b"", SYM, "/etc/passwd"),
    ("rank3.json", b"", LNK, "rank0.json"), ("rank4.json", b"", CHR, ""), ("n" * 200 + "rank5.json", b"long", REG, ""),
    ("a\x1b[2J\nrank6.json", b"control", REG, ""), ("inner.tgz", b"x", REG, ""), ("rank7.json", b"", REG, ""),
]
archive("tar", tar(RANKS))
archive("tar_ustar", tar(RANKS[:3], tarfile.USTAR_FORMAT))
archive("tar_odd", tar(ODD))
archive("tar_gnu", tar(ODD[:6], tarfile.GNU_FORMAT))
archive("tar_gz", gzip.compress(tar(RANKS), mtime=0))
archive("tar_zst", zstd(tar(RANKS)))
archive("tar_cut", tar(RANKS)[:1500])
archive("tar_gz_cut", gzip.compress(tar(RANKS), mtime=0)[:300])
archive("zip_stored", zipped([("rank0.json", TEXT), ("a/rank1.json", b"one")], zipfile.ZIP_STORED))
archive("zip_deflated", zipped([("rank0.json", TEXT), ("../rank1.json", b"one")], zipfile.ZIP_DEFLATED))
archive("zip_cut", zipped([("rank0.json", TEXT)], zipfile.ZIP_DEFLATED)[:-30])
archive("zip_empty", zipped([], zipfile.ZIP_STORED))
# A sparse member that claims a hole of 8 GiB (GNU 1.0 sparse map in a pax header).
sparse = tarfile.TarInfo("rank0.json")
sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "rank0.json", "GNU.sparse.realsize": str(8 << 30)}
sparse.size = 1024
body = io.BytesIO()
with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT) as t:
    t.addfile(sparse, io.BytesIO((b"1\n%d\n512\n" % ((8 << 30) - 512)).ljust(512, b"\0") + b"d" * 512))
archive("tar_sparse", body.getvalue().rstrip(b"\0") + b"\0" * 1024)


# --- perfetto_reader ------------------------------------------------------------------------------------------


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*fields):
    """(number, int) is a varint, (number, bytes or str) is length-delimited, (number, float) a fixed64 of its integer."""
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += varint(number << 3 | 1) + int(value).to_bytes(8, "little")
        elif isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def packets(*bodies):
    return b"".join(message((1, body)) for body in bodies)


def perfetto(name, data, window=4):
    write("perfetto_reader", name, bytes([window]) + data)


NOW = 1727987490000000000
THREAD = message((60, message((1, 2), (5, 1), (4, message((1, 17), (2, 18), (5, "main"))))))
PROCESS = message((60, message((1, 1), (3, message((1, 17), (6, "python"))))))


def slice_event(kind, time, track=2, name=None, *more):
    event = [(9, kind), (11, track)] + ([(23, name)] if name is not None else []) + list(more)
    return message((8, NOW + time), (11, message(*event)))


def arg(name, value):
    return (4, message((10, name), (6 if isinstance(value, str) else 4, value)))


STACK = [slice_event(1, 0, 2, "aten::linear"), slice_event(1, 5, 2, "aten::addmm", arg("correlation", 3)), slice_event(2, 8), slice_event(2, 9)]
perfetto("stack", packets(PROCESS, THREAD, *STACK))
perfetto("groups", packets(THREAD, slice_event(1, 100, 2, "aten::a"), slice_event(1, 10, 2, "aten::b"), slice_event(2, 200), slice_event(2, 50)))
perfetto("out_of_order", packets(slice_event(1, 30, 2, "aten::a"), slice_event(2, 40), slice_event(1, 10, 2, "aten::b"), slice_event(2, 20), slice_event(2, 60)))
perfetto("cut", packets(PROCESS, THREAD, *STACK)[:-5])
perfetto("garbage_between", packets(*STACK) + b"\xff\xff\x0a\x05ab" + packets(*STACK))
perfetto("unfinished", packets(slice_event(2, 1), slice_event(1, 5, 3, "aten::a")))
perfetto("collective", packets(slice_event(1, 0, 2, "ncclDevKernel_AllReduce", (22, "kernel"), arg("Collective name", "allreduce"), arg("In msg nelems", 1024), arg("dtype", "Float"), arg("Process Group Ranks", "[0, 1]")), slice_event(2, 9)))
perfetto("nested_args", packets(slice_event(1, 0, 2, "nccl:all_reduce", (4, message((10, "Input Dims"), (12, message((12, message((4, 4))), (12, message((4, 8)))))))), slice_event(2, 9)))
deep = message((4, 1))
for _ in range(40):
    deep = message((12, deep))
perfetto("deep_args", packets(slice_event(1, 0, 2, "a", (4, deep)), slice_event(2, 9)))
DELTA = [
    message((10, 5), (13, 1), (59, message((58, 64), (11, message((11, 2))))), (60, message((1, 2), (4, message((1, 1), (2, 3)))))),
    message((10, 5), (6, message((1, message((1, 64), (2, NOW), (3, 1))), (1, message((1, 6), (2, NOW))), (1, message((1, 1), (2, NOW + 7)))))),
    message((8, 10), (10, 5), (13, 2), (11, message((9, 1), (10, 1), (3, 1))), (12, message((2, message((1, 1), (2, "aten::add"))), (1, message((1, 1), (2, "cpu_op")))))),
    message((8, 20), (10, 5), (13, 2), (11, message((9, 2)))),
]
perfetto("delta_clock", packets(*DELTA))
perfetto("delta_clock_unknown", packets(DELTA[0], *DELTA[2:]))
perfetto("needs_lost_state", packets(*DELTA[2:]))
perfetto("memory", packets(slice_event(3, 0, 2, "[memory]", arg("Bytes", -512), arg("Total Allocated", 1024), arg("Device Type", 1), arg("Device Id", 0), (31, 9), (12, 1024))))
perfetto("render_stages", packets(
    message((10, 1), (13, 1), (12, message((24, message((1, 1), (2, "Kernel"))), (24, message((1, 100), (2, "stream 0007"))), (2, message((1, 1), (2, "gemm"))), (1000, message((1, 1), (3, "void gemm()")))))),
    message((8, NOW), (10, 1), (13, 2), (53, message((1, 3), (2, 10), (11, 1), (13, 100), (14, 1), (20, 1), (6, message((1, "correlation"), (2, "3")))))),
))
perfetto("flows", packets(slice_event(1, 0, 2, "cudaLaunchKernel", (47, float(1 << 40))), slice_event(2, 1), slice_event(1, 2, 3, "gemm", (22, "kernel"), (48, float(1 << 40))), slice_event(2, 3, 3)))
FACTS = json.dumps({"rank": 1, "window": 0, "world_size": 2, "host": "node0", "clock": {"basis": "collectives", "uncertainty_ns": 5, "sample_count": 3}, "groups": [{"name": "0", "ranks": [0, 1]}], "devices": [{"ordinal": 0, "name": "Example GPU"}], "tracks": [{"tid": 1000, "lane": "steps"}, {"tid": 1001, "lane": "operators", "process_id": 17, "thread_id": 18, "thread_name": "main"}]})
attribute = lambda key, value: message((126, message((1, message((1, key), (3, value))))))
perfetto("merged", packets(
    attribute("lockstep", '{"format":"lockstep.timeline/1","shift_ns":4}'), attribute("lockstep.process.1", FACTS),
    message((60, message((1, 7), (4, message((1, 1), (2, 1001), (5, "main"))))), (10, 3), (13, 1), (59, message((11, message((11, 7)))))),
    message((8, NOW), (10, 3), (11, message((9, 1), (23, "aten::add")))), message((8, NOW + 9), (10, 3), (11, message((9, 2)))),
))
perfetto("bad_facts", packets(attribute("lockstep", '{"format":"lockstep.timeline/1"}'), attribute("lockstep.process.1", '{"rank": -1'), *STACK))
perfetto("empty_facts", packets(message((126, message((1, message((1, "lockstep"))), (1, message((1, "lockstep.process.0")))))), *STACK))
perfetto("huge_numbers", packets(message((8, (1 << 64) - 1), (11, message((9, 1), (11, (1 << 64) - 1), (23, "a")))), slice_event(1, 0, 1 << 63, "b"), slice_event(2, 1, 1 << 63)))
perfetto("wrong_wire_types", packets(message((11, 5), (8, "text"), (10, "x")), message((60, 7)), slice_event(1, 0, 2, "a"), slice_event(2, 1)))
perfetto("compressed_packets", packets(message((50, b"x\x9c\x03\x00")), *STACK))
perfetto("empty_packets", packets(b"", b"", *STACK))

# --- query ----------------------------------------------------------------------------------------------------


def sql(name, text):
    write("query", name, text if isinstance(text, bytes) else text.encode())


sql("count", "SELECT count(*) FROM events")
sql("all_events", "SELECT * FROM events WHERE rank = 1 AND name LIKE 'aten%' ORDER BY start_ns LIMIT 5")
sql("kernels", "SELECT kind, short_name(name, 20), step, launch_start_ns FROM kernels WHERE track IN (3, 4) AND duration_ns > 50.5")
sql("ranges", "SELECT id FROM events WHERE start_ns BETWEEN 1700000000000000100 AND 1.7e18 + 900 AND end_ns >= 17e17 AND correlation <> 3")
sql("join", "SELECT sum(overlap_ns(a.start_ns, a.end_ns, b.start_ns, b.end_ns)) FROM kernels a JOIN kernels b ON b.rank = a.rank AND b.start_ns < a.end_ns AND b.end_ns > a.start_ns")
sql("aggregates", "SELECT rank, median(duration_ns), percentile(duration_ns, 99), stddev(depth), union_ns(start_ns, end_ns), intersect_ns(start_ns, end_ns, lane = 'device') FROM events GROUP BY rank, window")
sql("window", "SELECT start_ns - lag(end_ns) OVER (PARTITION BY track ORDER BY id) AS gap FROM kernels ORDER BY gap DESC LIMIT 3")
sql("with", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT x, format_ns(x * 1e6), format_bytes(x << 20), format_rate(x * 1e9) FROM c")
sql("steps", "SELECT step, max(span_ns), communication_overlap_ratio FROM steps NATURAL JOIN breakdown GROUP BY step HAVING count(*) > 1")
sql("json", "SELECT f.id, j.value FROM findings f, json_each(f.advice) j UNION ALL SELECT code, message FROM ledger")
sql("every_table", "SELECT (SELECT count(*) FROM ranks), (SELECT count(*) FROM tracks), (SELECT count(*) FROM collectives), (SELECT count(*) FROM memory_events WHERE time_ns > 17e17), (SELECT max(meaning) FROM catalog)")
sql("printf", "SELECT printf('%-8.3f|%,d|%05x|%s|%q|%Q|%%|%w', 3.14, 1234567, 255, name, 'it''s', NULL, 'w') FROM ranks")
sql("explain", "EXPLAIN QUERY PLAN SELECT * FROM collectives WHERE instance = 3 AND rank = 1")
sql("explain_code", "EXPLAIN SELECT * FROM idle")
sql("pragma", "PRAGMA table_info(events)")
sql("attach", "ATTACH 'x.db' AS x")
sql("vacuum", "VACUUM INTO 'x'")
sql("create", "CREATE VIRTUAL TABLE t USING events")
sql("insert", "INSERT INTO ranks(rank) VALUES (1) RETURNING *")
sql("extension", "SELECT load_extension('x')")
sql("pragma_bad", "PRAGMA writable_schema=ON")
sql("two", "SELECT 1; SELECT 2")
sql("comment", "-- nothing\n/* here */ ;")
sql("unknown", "SELECT durration_ns FROM evnts")
sql("syntax", "SELECT rank,,\n\t'\xff FROM (((")
sql("endless", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c")
sql("blob", "SELECT zeroblob(70), x'00ff', char(0, 27, 10), 9e999, -9e999, 1 AS a, 2 AS a")
sql("null_byte", b"SELECT 1\0, 2")
sql("not_text", bytes(range(256)))

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

# --- http_request ---------------------------------------------------------------------------------------------

for name, lines in {
    "own_page": ["/api/v1/captures", "localhost:9476", "gzip", "", "", "http://localhost:9476", "same-origin"],
    "other_page": ["/api/v1/captures", "10.1.2.3:9476", "", "", "", "https://evil.example", "cross-site"],
    "named": ["/", "Node17:9476", "", "", "", "null", "none"],
    "bracketed": ["/", "[2001:db8::1]:9476", "", "", "", "http://[2001:db8::1]:9476", ""],
}.items():
    write("http_request", name, "\n".join(lines).encode())

# --- http_bytes -----------------------------------------------------------------------------------------------

HOST = b"Host: localhost\r\n"
CHUNKED = b"POST /c HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
POST = b"POST /api/v1/captures HTTP/1.1\r\n" + HOST
for name, data in {
    "get": b"\x18GET /-/healthy HTTP/1.1\r\n" + HOST + b"\r\n",
    "pipelined": b"\x09GET /a?b HTTP/1.1\r\n" + HOST + b"\r\n" + POST + b"Content-Length: 2\r\n\r\n{}DELETE /x HTTP/1.1\r\n" + HOST + b"\r\n",
    "chunked": b"\x29" + CHUNKED + b"3;e=1\r\nabc\r\na\r\n0123456789\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n",
    "chunk_too_large": b"\x01" + CHUNKED + b"101\r\nabc",
    "chunk_bad": b"\x01" + CHUNKED + b"zz\r\n",
    "two_lengths": b"\x01" + POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length_and_chunks": b"\x01" + POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "expect": b"\x01" + POST + b"Content-Length: 2\r\nExpect: 100-continue\r\nAuthorization: Bearer t\r\n\r\n{}",
    "other_site": b"\x01" + POST + b"Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n\r\n",
    "no_bodies": b"\x00" + POST + b"Content-Length: 2\r\n\r\n{}",
    "unix_socket": b"\x07GET / HTTP/1.0\r\n\r\n",
    "folded": b"\x20GET / HTTP/1.1\r\nHost:\r\n localhost\r\n\r\n",
    "large_header": b"\x21GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 480 + b"\r\n\r\n",
    "many_lines": b"\x31GET / HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 100 + b"\r\n",
    "tls": b"\x01\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}.items():
    write("http_bytes", name, data)
