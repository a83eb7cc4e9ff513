"""`lockstep export ... --follow` as a program that tests start and wait for."""

import os
import subprocess
import time
import unittest

BINARY = os.environ["LOCKSTEP_BINARY"]
WAIT_S = 60


class FollowerTest(unittest.TestCase):
    def start(self, daemon, *words, environment=None):
        """`lockstep export WORDS --follow` of that daemon, until the test's end."""
        process = subprocess.Popen([BINARY, "export", *map(str, words), "--follow", "--socket", daemon.path, "--interval", "200ms"],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait(self, holds, what):
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            if holds():
                return
            time.sleep(0.05)
        self.fail(f"{what}: did not come")
