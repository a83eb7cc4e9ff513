"""Seeds of what sensors read of /proc and /sys. The first byte says which file it is."""
from corpus import write

INTERFACES = b"""Inter-|   Receive                  |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes packets
    lo: 1 2 3 4 5 6 7 8 9 10
  eth0: 100 2 3 4 5 6 7 8 200 10
  eth0: 1 2 3 4 5 6 7 8 9
  \xff\n: 1 2 3 4 5 6 7 8 9
"""
for name, text in {
    "rate": b"\0400 Gb/sec (4X NDR)",
    "rate_odd": b"\0-nan Gb/sec",
    "state": b"\0004: ACTIVE",
    "process": b"\x0142 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 700 33 0 0 20 0 12 0 4711 1000000 250 0",
    "process_cut": b"\x0142 (python) S 1 2",
    "statm": b"\x01900 250 3 4 0 6 0",
    "io": b"\x01rchar: 1\nread_bytes: 4096\nread_bytes: 99999999999999999999\n",
    "cpu": b"\x02cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1",
    "cpu_odd": b"\x02cpu -1 x 18446744073709551616 4",
    "interfaces": b"\x03" + INTERFACES,
    "interfaces_many": b"\x03" + b"".join(b"eth%d: 1 2 3 4 5 6 7 8 9\n" % i for i in range(80)),
}.items():
    write("host_text", name, text)
