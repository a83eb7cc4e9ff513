"""Seeds of the daemon's history: frames, its file, and what it answers. The first byte says which."""
import json
import struct
import zlib

from corpus import write

NOW_MS = 1_790_000_000_000


def number(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def difference(value):
    return number((value << 1) ^ (value >> 63))


def text(value):
    return number(len(value)) + value


def labels(**pairs):
    return number(len(pairs)) + b"".join(text(name.encode()) + text(value.encode()) for name, value in pairs.items())


def series(kind, **pairs):
    return b"\1" + bytes([kind]) + labels(**pairs)


def sample(index, present, changed, *differences):
    return b"\2" + number(index) + number(present) + number(changed) + b"".join(map(difference, differences))


def event(kind, count, **pairs):
    return b"\3" + text(kind) + labels(**pairs) + difference(count * 1000)


FIRST = difference(NOW_MS) + series(0, job_id="4711", rank="0", pid="42") + sample(0, 7, 7, 1, 17, 900_000)
SECOND = difference(1000) + sample(0, 7, 6, 3, 150_000) + series(1, gpu="0") + sample(1, 1, 1, 9500) + event(b"gpu_xid", 2, gpu="0", xid="79")
THIRD = difference(-5000) + sample(1, 1, 0) + sample(0, 1, 0) + series(2, job_id="4711", model="m") + sample(2, 16, 16, 250_000)


def framed(*frames):
    return b"".join(struct.pack("<H", len(frame)) + frame for frame in frames)


def block(sequence, tier, *frames):
    head = struct.pack("<QI", sequence, tier)
    out = head + struct.pack("<I", zlib.crc32(head))
    for frame in frames:
        out += struct.pack("<II", len(frame), zlib.crc32(struct.pack("<QQ", sequence, len(out)) + frame)) + frame
    return out


# The check of the tables changes with them: zeros stand for that of the build.
HEADER = b"LKHIST01" + struct.pack("<II", 65536, 0)
ANSWER = {"host": "n1", "now_unix_ns": NOW_MS * 10**6, "times_unix_ns": [(NOW_MS - 2000) * 10**6, (NOW_MS - 1000) * 10**6],
          "series": [{"kind": "rank", "labels": {"job_id": "4711", "rank": "0", "pid": "42", "host": "n1"},
                      "figures": {"steps": [17, 20], "step_seconds": [0.9, 1.05], "comm_exposed_seconds": [None, 0.1]}},
                     {"kind": "gpu", "labels": {"gpu": "0"}, "figures": {"energy_joules": [5, 505.5]}},
                     {"kind": "serving", "labels": {"job_id": "4711", "model": "m"}, "figures": {"request_p95_seconds": [0.25, 0.3]}},
                     {"kind": "job", "labels": {"job_id": "4711"}, "figures": {"world_size": [8, 8]}}],
          "events": [{"unix_ns": (NOW_MS - 1500) * 10**6, "kind": "gpu_xid", "labels": {"gpu": "0"}, "count": 1}]}
HOSTILE = {**ANSWER, "now_unix_ns": 0, "times_unix_ns": [0, 2**63 - 1]}

for name, data in {
    "frames": b"\0" + framed(FIRST, SECOND, THIRD),
    "frames_cut": b"\0" + framed(FIRST, SECOND)[:-9],
    "frames_no_series": b"\0" + framed(difference(NOW_MS) + sample(5, 1, 1, 1)),
    "frames_odd_bits": b"\0" + framed(FIRST, difference(1) + sample(0, 1, 2, 5)),
    "frames_overflow": b"\0" + framed(FIRST, difference(1) + sample(0, 3, 3, 2**62, -2**62) + sample(0, 3, 3, 2**62, -2**62)),
    "file": b"\1" + HEADER.ljust(4096, b"\0") + block(1, 0, FIRST, SECOND, THIRD),
    "file_short": b"\1" + HEADER[:11],
    "answer": b"\2" + json.dumps(ANSWER).encode(),
    "answer_hostile": b"\2" + json.dumps(HOSTILE).encode(),
    "answer_lengths": b"\2" + json.dumps({**ANSWER, "times_unix_ns": [1]}).encode(),
}.items():
    write("history", name, data)
write("daemon_json", "history", json.dumps(ANSWER).encode())
write("daemon_json", "history_query", b"job=12%203&since_ns=5&points=100")
