"""What captures leave behind in lockstepd, with a table of processes of its own: a root's lockstepd sees all ranks of the machine,
those of the tests that run beside this one too."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

from daemon_process import Daemon, register
from waiting import wait_until

OWN_PROCESSES = ["unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--pid", "--fork", "--mount-proc", "--kill-child"]


def setUpModule():
    """Begins again as the first process of a table of its own."""
    if os.getpid() == 1:
        return
    if subprocess.run([*OWN_PROCESSES, "true"], capture_output=True).returncode != 0:
        raise unittest.SkipTest("lacks the right to make a table of processes")
    sys.stdout.flush()
    os.execvp(OWN_PROCESSES[0], [*OWN_PROCESSES, sys.executable, "-B", *sys.argv])


class RemainsTest(unittest.TestCase):
    def test_twenty_captures_leave_nothing_behind(self):
        daemon = Daemon(self)
        register(self, daemon, 4, period_s=0.1)
        folder = pathlib.Path(f"/proc/{daemon.process.pid}")
        def held():
            status = (folder / "status").read_text()
            return len(list((folder / "fd").iterdir())), int(re.search(r"Threads:\s+(\d+)", status)[1])
        resident = lambda: int(re.search(r"VmRSS:\s+(\d+)", (folder / "status").read_text())[1])
        before = None
        for round in range(20):
            status, _, capture = daemon.ask("POST", "/api/v1/captures", {"window": {"duration_ns": 10_000_000}})
            self.assertEqual((201, 4), (status, len(capture["targets"])))
            path = f"/api/v1/captures/{capture['id']}"
            final = daemon.ask("GET", f"{path}/events")[2].decode().split("data: ")[-1]
            capture = json.loads(final)
            self.assertEqual("done", capture["state"], final)
            for target in capture["targets"]:
                status, _, trace = daemon.ask("GET", f"{path}/traces/{target['trace_name']}")
                self.assertEqual((200, 1), (status, len(trace["traceEvents"])))
            self.assertEqual(200, daemon.ask("DELETE", path)[0])
            if round == 4:
                before = held(), resident()
        wait_until(lambda: all(now <= then for now, then in zip(held(), before[0])),
                   lambda: f"{before[0]} descriptors and threads became {held()}")
        self.assertLess(resident() - before[1], 4096)
        self.assertEqual([], [path for path in (daemon.folder / "output").rglob("*") if path.is_file()])


if __name__ == "__main__":
    unittest.main()
