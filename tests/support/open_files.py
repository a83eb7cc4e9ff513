"""What a process has open, for tests that nothing is left behind."""

import os
import pathlib


def own_files(pid, *words):
    """{(descriptor, file)} of a process, without spans and logs of others' ranks, which a root's lockstepd follows too.

    A path that names one of `words` (the test's job, its folder) is its own; what is not a file, and what is the machine's (/proc, /sys,
    /dev), is nobody else's.
    """
    files = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            file = os.readlink(descriptor)
        except FileNotFoundError:
            continue
        is_others = file.startswith("/") and not file.startswith(("/proc/", "/sys/", "/dev/"))
        if not is_others or any(word in file for word in words):
            files.add((descriptor.name, file))
    return files
