"""A network namespace of the test process's own: Kineto's abstract socket has one name for a whole one."""

import ctypes
import os
import pathlib
import unittest

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
_entered = False


def own_network():
    """From here on, for this process and what it starts. Skips where the system does not allow it. Only once."""
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
    _entered = True
