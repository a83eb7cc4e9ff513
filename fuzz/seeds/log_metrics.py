"""Seeds of logs as they grow. The first byte is the size of pieces, less one."""
from corpus import write

TRACEBACK = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\nRuntimeError: CUDA out of memory\n"
HEAD = "2026-11-23T02:12:17.017281547Z 26510.797868009 E rank3 node0 err: "
for name, text in {
    "traceback": TRACEBACK + "INFO fine\n" + TRACEBACK,
    "own": "".join(HEAD + line + "\n" for line in TRACEBACK.splitlines()),
    "json": '{"time_ns":1,"mono_ns":null,"level":"error","rank":3,"host":"n","source":"err","text":"x\\ny"}\n',
    "prefixes": "[rank1]: ERROR a\n[1,2]<stderr>:ERROR b\n3: c\n[rank2]: NCCL WARN x ncclSystemError\n",
    "watchdog": "[rank1]:[E1121 03:35:23.1 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1)\n",
    "odd": "\n\n\r\n\x1b[31mERROR\x1b[0m\n\0\xff\nno end",
    "long": "E" * 200 + "\n",
}.items():
    write("log_metrics", name, b"\x06" + text.encode("latin-1"))
