#!/usr/bin/env python3
"""Who is named where a link or a rank of a tensor-parallel job is slow, and others pass its lateness on."""

import unittest

import analyze_program as lockstep


class NamedRanksTest(unittest.TestCase):
    def analyze(self, case):
        answer = lockstep.analyze(lockstep.data_path("..", "cases", case))
        findings = {finding["id"]: finding for finding in answer.data["findings"]}
        return findings, {row["rank"]: row["role"] for row in answer.data["stragglers"]}, answer.data["wait_states"]

    def test_a_slow_link_is_named_as_a_link(self):
        findings, roles, waits = self.analyze("slow_link_tp4_8ranks")
        self.assertNotIn("straggler", findings)
        self.assertEqual(findings["slow_link"]["ranks"], [7])
        self.assertEqual(findings["slow_link"]["title"], "The link of rank 7 is slow; no rank's own work is at fault")
        self.assertNotIn("straggler", roles.values())
        self.assertEqual([(cause["cause"], cause["ranks"], cause["pattern"]) for cause in waits["causes"][:1]], [("slow_link", [7], "chronic")])

    def test_a_slow_rank_is_named_without_the_peers_that_it_holds_up(self):
        findings, roles, waits = self.analyze("slow_compute_tp4_12ranks")
        self.assertEqual(findings["straggler"]["ranks"], [7])
        self.assertNotIn("slow_link", findings)
        self.assertEqual(findings["imbalance"]["ranks"], [7])
        self.assertEqual([rank for rank, role in roles.items() if role == "straggler"], [7])
        # Its tensor-parallel group and its peers in data parallelism were late since they had waited for it.
        self.assertEqual(roles[3], "passes_on")
        self.assertEqual(roles[11], "passes_on")
        self.assertEqual([(cause["cause"], cause["ranks"]) for cause in waits["causes"][:1]], [("kernel", [7])])


if __name__ == "__main__":
    unittest.main()
