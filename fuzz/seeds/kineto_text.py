"""Traces as the profiler writes them, for the seeds of readers."""


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
