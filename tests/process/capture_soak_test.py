"""Many captures of a real 4-rank job under `lockstep run`, the daemon killed within every tenth: every rank lives, every trace comes."""

import unittest

from capture_jobs import TorchTest
from capture_soak import Soak


class CaptureSoakTest(TorchTest):
    def soak(self, captures):
        soak = Soak(self.python, captures, captures // 10)
        self.addCleanup(soak.close)
        for capture in soak.run():
            self.assertEqual(("done", []), (capture["state"], soak.deaths), (capture, soak.summary(), soak.node.daemon_log()))
        print(soak.summary())
        self.assertEqual((captures // 10, 1), (soak.kill_count, soak.job_count))

    def test_fifty(self):
        self.soak(50)

    def test_four_hundred(self):
        self.soak(400)


if __name__ == "__main__":
    unittest.main()
