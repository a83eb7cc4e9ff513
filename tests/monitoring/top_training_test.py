"""`lockstep top` in a terminal over two nodes (networks, process tables and host names of their own) on which a job of four ranks
trains under torchrun: it names the slow rank, sees it recover, and shows a hang, a node that falls silent, and stacks."""

import re
import unittest

from monitored import Watched  # noqa: F401  First: it says where the others are.
from top_test import BINARY
from top_view_test import Tmux
from two_nodes import JOB, PORT, TwoNodes


class TopOfTrainingTest(TwoNodes):
    def setUp(self):
        super().setUp()
        hosts = ",".join(f"{node.address}:{PORT}" for node in self.nodes)
        self.tmux = Tmux(self, 160, 40)
        self.tmux.type(" ".join(map(str, [*self.nodes[0].inside, BINARY, "top", "--host", hosts, "--job", JOB, "--window", "3s"])))
        self.tmux.key("Enter")

    def test_a_job_with_troubles(self):
        screen = self.tmux.wait_for(f"job {JOB} · 4 of 4 ranks · [1-9]")
        self.assertIn("2 of 2 nodes", screen)
        # Healthy: all ranks have their steps, nobody waits for long.
        self.tmux.wait_for(r"(?s)(?:node[12] +(?:runs|waits|slow).*){4}")
        self.plan({"slow": 2})
        screen = self.tmux.wait_for(r"▶ +2 +node2 +slow")
        self.tmux.wait_for(r"(?s)(?:node[12] +waits +2 .*){3}")
        self.tmux.wait_for("warning: rank 2 takes")
        self.tmux.wait_for("stages: Rank 2 costs the job")
        self.plan({})
        self.tmux.wait_for("warning: rank 2 takes", gone=True)
        self.plan({"input": 0.05})
        self.tmux.wait_for("input_bound|of step time is waiting for input")
        self.plan({"hang": 1})
        screen = self.tmux.wait_for(r"(?s)(?:node[12] +stuck.*){4}")
        self.assertRegex(screen, r"\b0 steps/s")
        # It waits for nobody, and the others wait for it.
        self.tmux.wait_for(r"(?s)• rank 1 holds the job up: it has been between its phases for .*! +1 +node1 +stuck +- (?:.*stuck +1 ){3}")
        # The chosen rank's stacks come from the daemon of its node.
        self.tmux.type("/")
        self.tmux.type("1")
        self.tmux.key("Enter")
        self.tmux.wait_for("filter: 1")
        self.tmux.key("d")
        self.tmux.wait_for(r"Stacks of rank 1 \(pid \d+ on node1\)")
        self.tmux.type("y")
        screen = self.tmux.wait_for(r"main\s+\S*watched_training.py:\d+")
        self.assertIn("RANK 1 of job", screen)
        self.tmux.key("Escape")
        self.tmux.key("Escape")
        self.plan({})
        self.tmux.wait_for(r"(?s)(?:node[12] +stuck.*)", gone=True)
        # A node of which nothing is heard any more: its ranks stay, marked.
        self.nodes[1].run("pkill", "-9", "lockstepd")
        screen = self.tmux.wait_for(r"(?s)(?:node2 +unheard.*){2}")
        self.assertIn("1 of 2 nodes", screen)
        self.assertRegex(screen, r"node2 (does not answer|has not answered for)")
        self.assertEqual(2, len(re.findall(r"node1 +(?:runs|waits|slow)", screen)))


if __name__ == "__main__":
    unittest.main()
