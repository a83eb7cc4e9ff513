"""`lockstep export ... --follow` as a program that tests start and wait for."""

import os
import subprocess
import unittest

BINARY = os.environ["LOCKSTEP_BINARY"]


class FollowerTest(unittest.TestCase):
    def start(self, daemon, *words, environment=None):
        """`lockstep export WORDS --follow` of that daemon, until the test's end."""
        process = subprocess.Popen([BINARY, "export", *map(str, words), "--follow", "--socket", daemon.path, "--interval", "200ms"],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

