#!/usr/bin/env python3
"""The all_to_alls of param_dlrm_8rank_v100 against a computation of our own from the files: what each rank sends and
gets, how uneven that is, and that nothing is lost on the way."""

import os
import unittest

import analyze_program as lockstep

FOLDER = ("traces", "param_dlrm_8rank_v100", "kineto")
ELEMENT_BYTES = {"float": 4, "int": 4, "long int": 8}


def exchanges_of(path):
    """(sent, received) bytes of a rank's all_to_alls, in the order of their operators."""
    found = []
    for event in lockstep.read_json(path)["traceEvents"]:
        if event.get("name") == "c10d::alltoall_base_":  # (Tensor output, Tensor input, ...)
            (written,), (read,) = event["args"]["Input Dims"][:2]
            size = ELEMENT_BYTES[event["args"]["Input type"][0]]
            found.append((event["ts"], read * size, written * size))
    return [(sent, received) for _, sent, received in sorted(found)]


class DlrmExchangesTest(lockstep.DataCase):
    def setUp(self):
        super().setUp()
        folder = lockstep.data_path(*FOLDER)
        self.ranks = [exchanges_of(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]  # worker0 .. 7
        self.answer = lockstep.analyze(folder, "--pass", "moe")

    def test_bytes_of_every_rank(self):
        rows = self.answer.data["moe_ranks"]
        self.assertEqual([row["rank"] for row in rows], list(range(8)))
        for row, exchanges in zip(rows, self.ranks):
            self.assertEqual(row["call_count"], len(exchanges))
            self.assertEqual(row["sent_bytes"], sum(sent for sent, _ in exchanges))
            self.assertEqual(row["received_bytes"], sum(received for _, received in exchanges))

    def test_what_is_sent_arrives(self):
        rows = self.answer.data["moe_ranks"]
        self.assertEqual(sum(row["sent_bytes"] for row in rows), sum(row["received_bytes"] for row in rows))

    def test_load_is_that_of_the_uneven_side(self):
        (group,) = self.answer.data["moe"]
        self.assertEqual(group["exchange_count"], 5)
        loads = []
        for exchange in zip(*self.ranks):
            sides = [[sent for sent, _ in exchange], [received for _, received in exchange]]
            loads.append(max(sides[::-1], key=lambda side: max(side) / sum(side)))
        mean = sum(sum(side) / 8 for side in loads)
        by_rank = [sum(side[rank] for side in loads) / mean for rank in range(8)]
        for row, wanted in zip(self.answer.data["moe_ranks"], by_rank):
            self.assertAlmostEqual(row["load_ratio"], wanted, places=12)
        self.assertAlmostEqual(group["load_ratio"], max(by_rank), places=12)
        self.assertAlmostEqual(group["exchange_load_ratio"], sum(map(max, loads)) / mean, places=12)
        self.assertEqual(group["hottest_rank"], by_rank.index(max(by_rank)))
        self.assertGreater(max(by_rank), 1.05)  # the rows of embedding tables are not evenly asked for

    def test_the_section_says_who(self):
        (group,) = self.answer.data["moe"]
        text = lockstep.run(["analyze", lockstep.data_path(*FOLDER), "--pass", "moe", "--section", "moe"]).stdout.decode()
        row = rf"(?m)^ +0 +8 +40 +{group['load_ratio']:.2f}x +{group['exchange_load_ratio']:.2f}x +{group['hottest_rank']} +once$"
        self.assertRegex(text[text.index("MOE"):], row)


if __name__ == "__main__":
    unittest.main()
