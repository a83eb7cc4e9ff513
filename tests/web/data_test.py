"""The page's own reader of its data decodes the same values as the tests' reader, and copes with servers and damage."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import web_packages  # noqa: E402
from analyze_program import DONE, SOURCE_ROOT, generate, read_json, run  # noqa: E402
from page_file import Page  # noqa: E402

RECORDED = os.path.join(SOURCE_ROOT, "examples", "recorded")


class Data(unittest.TestCase):
    def test_facts(self):
        print(web_packages.run_node("data.mjs"))

    def compare(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path, decoded_path = os.path.join(folder, "report.html"), os.path.join(folder, "decoded.json")
            process = run(["analyze", "-q", "-o", path, *[str(argument) for argument in arguments]])
            self.assertEqual(process.returncode, DONE, process.stderr.decode())
            web_packages.run_node("data.mjs", path, decoded_path)
            self.same(Page(path), read_json(decoded_path))

    def same(self, page, decoded):
        self.assertEqual(decoded["document"], page.document)
        shape = page.data["step_matrix"]
        cells = {}
        for quantity in shape["quantities"]:
            values = iter(decoded["steps"][quantity])
            for rank_index in shape["rank_indices"]:
                for step in shape["step_numbers"]:
                    value = next(values)
                    if value is not None:
                        cells[rank_index, step, quantity] = value
        self.assertEqual(cells, page.step_cells())
        ranks, steps = shape["rank_indices"], shape["step_numbers"]
        for quantity, (of_rank, of_step, rank_means, step_means) in decoded["parts"].items():
            cell = lambda rank, step: cells.get((rank, step, quantity))
            self.assertEqual(of_rank, [cell(ranks[1], step) for step in steps])
            self.assertEqual(of_step, [cell(rank, steps[-1]) for rank in ranks])
            for means, rows in ((rank_means, [[cell(rank, step) for step in steps] for rank in ranks]),
                                (step_means, [[cell(rank, step) for rank in ranks] for step in steps])):
                for mean, row in zip(means, rows, strict=True):
                    known = [value for value in row if value is not None]
                    if known:
                        self.assertAlmostEqual(mean, sum(known) / len(known), delta=1e-6 * max(1, mean))
                    else:
                        self.assertIsNone(mean)

        collectives = page.collectives()
        for mine, theirs in zip(decoded["collectives"], collectives, strict=True):
            for key in ("name", "group", "sequence", "bytes", "transfer_ns", "busbw_bytes_per_s", "total_wait_ns", "last_rank_index"):
                self.assertEqual(mine[key], theirs[key], key)
            self.assertEqual(mine["step_number"], theirs["step"])
            for key in ("arrival_ns", "end_ns", "wait_ns"):
                self.assertEqual([member[key] for member in mine["members"]], theirs[key], key)
            self.assertEqual([member["rank_index"] for member in mine["members"]], theirs["rank_indices"])
        order = sorted(range(len(collectives)), key=lambda i: (-collectives[i]["total_wait_ns"], i))
        self.assertEqual(decoded["by_wait"], order)

        self.assertEqual([[count, ns, list(shares)] for count, ns, shares in page.timeline()], decoded["levels"])
        if not page.data["timeline"]["has_events"]:
            self.assertEqual(set(map(str, decoded["events"])), {"None"})
            return
        self.assertEqual(decoded["names"], page.names())
        for rank_index, tracks in enumerate(decoded["events"]):
            for mine, (track, events) in zip(tracks, page.events(rank_index), strict=True):
                self.assertEqual((mine["lane"], mine["label"], mine["level_count"]), (track["lane"], track["label"], track["level_count"]))
                columns = zip(mine["start"], mine["duration"], mine["name"], mine["class"], mine["level"], strict=True)
                self.assertEqual(list(columns), events)
            every = [(mine, at) for mine in tracks for at in range(len(mine["start"]))]
            self.assertEqual([every.index((mine, 0)) for mine in tracks], [mine["first"] for mine in tracks])
            launched = [(every[place], event) for mine in tracks if mine["launch"] for event, place in enumerate(mine["launch"]) if place >= 0]
            self.assertEqual([(mine["start"][at], mine["name"][at]) for (mine, at), _ in launched],
                             [(call[0], call[2]) for call, _ in page.launches(rank_index)])

    def test_the_recorded_job(self):
        self.compare(RECORDED)

    def test_a_reduced_page(self):
        self.compare(RECORDED, "--page-size", "300k")
        self.compare(RECORDED, "--page-size", "1k")

    def test_a_generated_job(self):
        with tempfile.TemporaryDirectory() as folder:
            generate(os.path.join(folder, "job"), "--ranks", 4, "--steps", 4, "--layers", 2, "--style", "current", "--drift-ppm", "0,30,-20",
                     "--straggler", "1:3000:loader", "--memory")
            self.compare(os.path.join(folder, "job"))


if __name__ == "__main__":
    unittest.main()
