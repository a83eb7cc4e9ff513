"""Seeds of the reader of Perfetto traces."""
import json

from corpus import write

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
