"""Seeds of the readers of flight-recorder dumps. Everything in them is made up."""
import json
import pickle
import struct

from corpus import write


class Writer:
    """A pickle as PyTorch's writer makes it: texts and frames are numbered by what they are, nothing else is."""

    def __init__(self):
        self.out = bytearray(b"\x80\x02")
        self.memo = {}

    def put(self, key):
        number = self.memo[key] = len(self.memo)
        self.out += b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)

    def get(self, number):
        self.out += b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)

    def value(self, value):
        if value is None:
            self.out += b"N"
        elif isinstance(value, bool):
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, int):
            if 0 <= value < 256:
                self.out += b"K" + bytes([value])
            elif 0 <= value < 65536:
                self.out += b"M" + struct.pack("<H", value)
            elif -(1 << 31) <= value < 1 << 31:
                self.out += b"J" + struct.pack("<i", value)
            else:
                self.out += b"\x8a\x08" + struct.pack("<q", value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            if value in self.memo:
                return self.get(self.memo[value])
            data = value.encode()
            self.out += b"X" + struct.pack("<I", len(data)) + data
            self.put(value)
        elif isinstance(value, tuple):
            for item in value:
                self.value(item)
            self.out += b"\x86"
        elif isinstance(value, list):
            self.out += b"]("
            for item in value:
                self.value(item)
            self.out += b"e"
        elif id(value) in self.memo:
            self.get(self.memo[id(value)])
        else:
            self.out += b"}("
            for key, item in value.items():
                self.value(key)
                self.value(item)
            self.out += b"u"
            if "filename" in value:
                self.put(id(value))

    def done(self):
        return bytes(self.out) + b"."


def torch_pickle(value):
    writer = Writer()
    writer.value(value)
    return writer.done()


FRAMES = [{"name": "forward", "filename": "/job/train.py", "line": 58}, {"name": "<module>", "filename": "/job/train.py", "line": 91}]


def entry(number, **changes):
    return {
        "frames": FRAMES, "record_id": number, "pg_id": 1, "process_group": ("1", "TENSOR"), "thread_name": "python3",
        "thread_id": "140278848537088", "collective_seq_id": number + 1, "p2p_seq_id": 0, "op_id": number + 1,
        "profiling_name": "nccl:all_reduce", "time_created_ns": 1795230700358370288 + number, "input_sizes": [[64, 32]],
        "input_dtypes": ["Float"], "output_sizes": [[64, 32]], "output_dtypes": ["Float"], "state": "completed",
        "time_discovered_started_ns": None, "time_discovered_completed_ns": 1795230700358370300 + number, "retired": True,
        "timeout_ms": 600000, "is_p2p": False, **changes,
    }  # fmt: skip


def dump(*entries, **changes):
    status = {"last_enqueued_collective": 3, "last_started_collective": -1, "last_completed_collective": 2}
    return {
        "version": "2.10", "pg_config": {"1": {"name": "1", "desc": "TENSOR", "ranks": "[0, 1]"}, "": {"name": "", "desc": "", "ranks": "[0]"}},
        "comm_lib_version": "2.27.3", "pg_status": {"1": status, "7": status}, "entries": list(entries), **changes,
    }  # fmt: skip


LAST = entry(2, state="scheduled", retired=False, time_discovered_completed_ns=None)
SHAPES = [entry(3, input_sizes=[], output_sizes=[[]]), entry(4, input_sizes=[[1 << 40, 3], [2]], input_dtypes=["Float", "Half"]), entry(5, duration_ms=1.25)]
P2P = entry(6, is_p2p=True, profiling_name="nccl:send 0->3", p2p_seq_id=4)
WRONG = entry(7, record_id="x", pg_id=None, process_group=7, state="lost", retired=3, input_sizes=[1, "a"], frames={}, duration_ms=-1.5, timeout_ms=[], extra=1)
OLD = {"seq_id": 4, "pg_id": 0, "profiling_name": "nccl:all_reduce", "time_created_us": 1700000000000000, "input_sizes": [[3]], "output_sizes": [[3]], "state": "started", "frames": FRAMES, "retired": False}  # fmt: skip

WHOLE = torch_pickle(dump(entry(0), entry(1), LAST))
PICKLES = {
    "whole": WHOLE,
    "many": torch_pickle(dump(*[entry(i) for i in range(12)], P2P, *SHAPES, LAST)),
    "wrong_types": torch_pickle(dump(entry(0), WRONG, WRONG)),
    "old_list": torch_pickle([OLD, {**OLD, "seq_id": 5}]),
    "no_frames": torch_pickle(dump({k: v for k, v in entry(0).items() if k != "frames"})),
    "python_writer": pickle.dumps(dump(entry(0), entry(1), LAST), protocol=2),
    "python_writer_4": pickle.dumps(dump(entry(0)), protocol=4),
    "version_9": torch_pickle(dump(entry(0), version="9.1", more=[1.5, ("a", 1)])),
    "no_entries": torch_pickle(dump()),
    "cut_in_entry": WHOLE[:-90],
    "cut_in_config": WHOLE[:60],
    "behind_end": WHOLE + b"x",
    "calls": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
    "laughs": b"\x80\x02](K\x01K\x01eq\x00" + b"".join(b"](" + b"h" + bytes([i]) * 1 + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(20)) + b".",
    "holds_itself": b"\x80\x02]q\x00(h\x00e.",
    "deep": b"\x80\x02" + b"](" * 80,
    "long_text": b"\x80\x02X\xff\xff\xff\x7fabc",
    "long_number": b"\x80\x02}(X\x07\x00\x00\x00version\x8a\xff" + b"\1" * 255,
    "far_memo": b"\x80\x02}r\xff\xff\xff\xff.",
    "tuples": b"\x80\x02](K\x01\x85K\x01K\x02K\x03\x87)(K\x05te.",
}  # fmt: skip
for name, data in PICKLES.items():
    write("flight_pickle", name, data)


def as_json(value):
    """PyTorch's own differences: sorted keys, no frames, numbers of pg_status as text, 0 for unknown times."""
    entries = [{k: (0 if v is None else v) for k, v in one.items() if k != "frames"} for one in value["entries"]]
    status = {k: {n: str(x) for n, x in v.items()} for k, v in value["pg_status"].items()}
    return json.dumps({**value, "entries": entries, "pg_status": status, "nccl_comm_state": {}}, sort_keys=True, separators=(",", ":")).encode()


JSON_WHOLE = as_json(dump(entry(0), entry(1), LAST))
JSONS = {
    "whole": JSON_WHOLE,
    "many": as_json(dump(*[entry(i) for i in range(4)], P2P, *SHAPES, LAST)),
    "wrong_types": as_json(dump(entry(0), WRONG)),
    "indented": json.dumps(json.loads(JSON_WHOLE), indent=1).encode(),
    "cut_in_entry": JSON_WHOLE[:700],
    "cut_in_number": JSON_WHOLE[: JSON_WHOLE.index(b'"op_id":1') + 9],
    "cut_in_text": JSON_WHOLE[:30],
    "behind_end": JSON_WHOLE + b"{}",
    "deep": b'{"entries":' + b"[" * 100,
    "empty": b"{}",
    "list": json.dumps([OLD]).encode(),
    "numbers": b'{"entries":[{"record_id":18446744073709551615,"op_id":1e400,"duration_ms":NaN,"timeout_ms":-0}],"version":"2.10"}',
    "texts": b'{"entries":[{"profiling_name":"\\ud83d\\ude00\\u0000\xff","state":"sch\\u0065duled"}],"version":"2"}',
    "bad": b'{"entries":[{"record_id":1,}]}',
}  # fmt: skip
for name, data in JSONS.items():
    write("flight_json", name, data)
