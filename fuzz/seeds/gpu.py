"""Seeds of what the GPU helper says to the daemon: frames of gpu_wire.h. The first byte is the size of pieces, less one."""
import struct

from corpus import write


def text(value):
    return struct.pack("<Q", len(value)) + value


def some(value):
    return b"\0" if value is None else b"\1" + value


def listed(elements):
    return struct.pack("<Q", len(elements)) + b"".join(elements)


def sample(metric, part, value):
    return struct.pack("<B", metric) + text(part) + struct.pack("<d", value)


def device(gpu, instance, *samples, reasons=0x40):
    return (struct.pack("<I", gpu) + some(None if instance is None else struct.pack("<I", instance)) + text(b"GPU-1") + text(b"H100") +
            text(b"0:1:0.0") + text(b"1g.10gb") + some(struct.pack("<Q", reasons)) + listed(samples))


def reading(*devices, state=0, count=8, lost=(), xids=()):
    return (struct.pack("<B", state) + text(b"why") + text(b"550.54") + struct.pack("<I", count) +
            listed([struct.pack("<I", gpu) for gpu in lost]) + listed(devices) +
            listed([struct.pack("<IQ", gpu, code) for gpu, code in xids]))


def frame(gpu=None, read=None):
    message = some(None if gpu is None else struct.pack("<I", gpu)) + some(read)
    return struct.pack("<I", len(message)) + message


whole = reading(device(0, None, sample(0, b"", 0.5), sample(7, b"gpu", 40), sample(11, b"power", 2.5)),
                device(1, 1, sample(4, b"", 1e9)), lost=[5], xids=[(5, 79)])
write("gpu_message", "whole", b"\xff" + frame() + frame(gpu=3) + frame(read=whole))
write("gpu_message", "pieces", b"\x02" + frame(gpu=3) + frame(read=whole))
write("gpu_message", "twice", b"\xff" + frame(read=reading(device(0, None, sample(11, b"hw_thermal", 1), sample(11, b"hw_thermal", 2)),
                                                           device(0, None, sample(8, b"", 1)))))
write("gpu_message", "odd", b"\xff" + frame(read=reading(device(1 << 31, 7, sample(200, b"\n\xff", float("nan"))), state=9,
                                                         lost=[1 << 31] * 20, xids=[(1 << 31, 1)])))
write("gpu_message", "absent", b"\xff" + frame(read=reading(state=1, count=0)))
write("gpu_message", "long", b"\xff" + b"\xff\xff\xff\x7f" + b"x" * 100)
write("gpu_message", "cut", b"\xff" + frame(read=whole)[:-9])
