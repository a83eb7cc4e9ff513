"""Logs of ranks, stack dumps and inspected processes."""
import json

from corpus import write

LOGS = {
    "watchdog": "[rank3]:[E1121 03:35:23.123456789 ProcessGroupNCCL.cpp:632] [PG ID 2 PG GUID 5(TP) Rank 1] Watchdog caught collective operation "
                "timeout: WorkNCCL(SeqNum=118, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600008 milliseconds\n"
                "[PG ID 0 PG GUID 0(default_pg) Rank 118]  failure detected by watchdog at work sequence id: 12 PG status: last enqueued work: 12\n",
    "desync": "- To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
              "   - [1, 3-4] finished collective #14, but didn't join collective #15 (count from 1)\n",
    "gloo": "[pair.cc:538] Read error [127.0.0.1]:26510: Connection reset by peer\n[pair.cc:547] Connection closed by peer [::1]:1\n"
            "Timed out waiting 8000ms for recv operation to complete\nRank 0 is connected to 3. Expected number of connected peers is: 3\n",
    "detail": "Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=4, "
              "OpType=ALLREDUCE, TensorShape=[4096]), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=4OpType=GATHER)\n"
              "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 8000 ms\n",
    "traceback": "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/job/train.py\", line 67, in backward\n[rank0]:     x()\n"
                 "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
    "torchrun": "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-21_03:35:23\n  rank      : 3 (local_rank: 1)\n"
                "  exitcode  : -9 (pid: 7)\n",
    "launchers": "[1,3]<stderr>:CUDA error: x\n 12: NCCL error\nsrun: error: a: task 3: Killed\nprocess rank 3 with PID 1 exited on signal 9\n"
                 "\x1b[31mKilled\x1b[0m\r\n[pod/a/b] Xid (PCI:0): 79\n",
    "times": "2026-11-21T03:35:23.5+01:00 ERROR x\nE1121 03:35:24.5 y\n9999-99-99 99:99:99 ERROR\n",
    "empty": "",
}
LINES = {
    "text": "2026-11-23T02:12:17.017281547Z 26510.797868009 E rank3 node0 err: it broke\n"
            "2026-11-23T02:12:17.017281547Z - I rank- node0 out: \n1970-01-01T00:00:00.000000000Z 0.000000000 T rank0 h s: : \n",
    "json": '{"time_ns":1795399937017281547,"mono_ns":5,"level":"error","rank":3,"host":"node0","source":"err","text":"a \\"b\\"\\n\\u00e4\\ud83d\\ude00"}\n'
            '{"time_ns":-5,"mono_ns":null,"level":"CRITICAL","rank":null,"host":"h","source":"s","text":"","step":3}\n',
    "progress": "\r 10%\r 20%\r100%\nprompt> ",
    "levels": "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\"\n[rank1]: ValueError: no\nE1121 03:35:23.5 x] y\nWARNING z\n",
    "bad": "2026-13-23T02:12:17.017281547Z 1.0 X rank-5\n{\"time_ns\":\n\xff\x00\r\r\n",
}
STACKS = {
    "faulthandler": "Current thread 0x00007f1 [a] b] (most recent call first):\n  File \"t.py\", line 3 in f\n\nThread 0x00007f2 (most recent call "
                    "first):\n  File \"t.py\", line ??? in <module>\n\nCurrent thread's C stack trace (most recent call first):\n"
                    "  Binary file \"l.so\", at f+0x1 [0x2]\n",
    "py_spy": "Process 7: python t.py\nPython v3.11.2\n\nThread 7 (active+gil): \"MainThread\"\n    poll (libc.so.6)\n    f (t.py:3)\n"
              "Process 8: python\nThread 0x7F (idle)\n    g (u.py:4)\n",
    "py_spy_json": json.dumps([{"pid": 7, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 7, "owns_gil": True,
                                "frames": [{"name": "f", "filename": "t.py", "line": 3}]}]),
    "eu_stack": "PID 7 - process\nTID 7:\n#0  0x00007f1     poll - /l.so\n#1  0x2 - 1 f\n    a.c:3:4\nTID 8:\n#0  0x1\n",
    "gdb": "Thread 2 (Thread 0x7f (LWP 8) \"x\"):\n#0  0x1 in (anonymous namespace)::f<int> (a=1) at a.c:3\n\nThread 1 (LWP 7):\n"
           "#0  poll () from /l.so\n#1  0x2 in e (f=Frame 0x3, for file t.py, line 3, in g (a=1))\n",
}
PROCESS = {
    "schema": "lockstep.inspection/1", "pid": 7, "start_ticks": 18446744073709551615, "host": "a", "rank": 3, "world_size": 8,
    "liveness": "running", "collected_unix_ns": 1700000000123456789,
    "state": {"state": "S", "window_ns": 5, "cpu_ns": 0, "sockets": [{"local": "a:1", "remote": "b:2", "state": "ESTABLISHED"}],
              "devices": [{"kind": "gpu", "name": "0", "facts": [{"name": "xid", "value": "79"}]}]},
    "stacks": [{"tid": 7, "is_main": True, "state": "S", "python": [{"function": "f", "file": "t.py", "line": 3}], "native": [{}]}],
    "record_format": "pickle", "record_base64": "gAIu", "missing": [{"what": "log", "rank": None}],
}

for name, text in LOGS.items():
    write("rank_log", name, text.encode())
for name, text in LINES.items():
    write("log_line", name, text.encode("latin-1"))
for name, text in STACKS.items():
    write("stacks", name, text.encode())
write("inspected_process", "whole", json.dumps(PROCESS).encode())
write("inspected_process", "least", b'{"schema":"lockstep.inspection/1"}')
write("inspected_process", "deep", b'{"schema":"lockstep.inspection/1","x":' + b"[" * 200 + b"]" * 200 + b"}")
write("inspected_process", "bad_text", b'{"schema":"lockstep.inspection/1","host":"\xff\xc3","command":"\\ud800"}')
write("inspected_process", "wrong_type", b'{"schema":"lockstep.inspection/1","stacks":[{"python":[{"line":"x"}]}]}')
