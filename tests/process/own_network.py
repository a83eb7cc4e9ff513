"""A network namespace of the test process's own: Kineto's abstract socket has one name for a whole one."""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import unittest

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
_entered = False


def own_network():
    """From here on, for this process and what it starts, with loopback up. Skips where it is not allowed. Only once."""
    global _entered
    if _entered:
        return
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET | (CLONE_NEWUSER if user else 0)) != 0:
        raise unittest.SkipTest(f"no network namespace of one's own: {os.strerror(ctypes.get_errno())}")
    if user:
        pathlib.Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    # Loopback is down in a new one, and torchrun's ranks meet over it.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0)))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    _entered = True
