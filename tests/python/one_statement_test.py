"""Who is at fault, by how much, and what mending it gains: text, page, JSON, CSV, SQL, Python and `compare` say the same of every data set and case."""

import csv
import html
import json
import os
import pathlib
import re
import tempfile
import unittest
import warnings

import analyze_program as program
import lockstep
from page_file import Page
from samples import RECORDED

UNITS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9, "d": 86400e9}
GAIN = re.compile(r"saves up to ([\d.]+) (\S+) (?:a step|in this window)(?: \(<?([\d.]+) %\))?", re.IGNORECASE)


def flat(text):
    return " ".join(text.split())


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text):
    return None if text == "" else float(text)


class Statements:
    """One run, as each output has it."""

    def __init__(self, case, path):
        self.case, self.path = case, str(path)
        self.answer = program.analyze(self.path)
        self.data = self.answer.data

    def check(self):
        with tempfile.TemporaryDirectory() as scratch:
            page, tables = os.path.join(scratch, "report.html"), os.path.join(scratch, "tables")
            done = program.run(["analyze", self.path, "-o", page, "--csv", tables, "--section", "findings,stragglers,wait_states", "--width", "1000",
                                "--top", "100000", "--ascii", "--color", "never"])
            self.case.assertEqual(done.returncode, self.answer.status)
            self.in_text(done.stdout.decode("utf-8"))
            self.in_page(Page(page))
            self.in_csv(tables)
        if self.data["breakdown"] is not None:  # SQL has no tables of operation traces.
            self.in_sql()
        self.in_python()
        self.in_compare()
        self.one_source()

    def gains(self, text):
        """Every "saves up to" of a text is the finding's own, in order."""
        told = [(float(value) * UNITS[unit], share) for value, unit, share in GAIN.findall(text)]
        wanted = [finding for finding in self.data["findings"] if (finding["gain_ns_per_step"] or 0) > 0]
        self.case.assertEqual(len(told), len(wanted), text)
        for (gain_ns, share), finding in zip(told, wanted):
            self.case.assertLess(abs(gain_ns - finding["gain_ns_per_step"]), 0.006 * finding["gain_ns_per_step"] + 1)
            self.case.assertEqual(share == "", finding["gain_ratio"] is None)
            if share:
                self.case.assertLess(abs(float(share) - 100 * finding["gain_ratio"]), 0.51)

    def in_text(self, text):
        at = text.find("\nFINDINGS")
        text = flat(text[at:]) if at >= 0 else ""
        for place, finding in enumerate(self.data["findings"], 1):
            self.case.assertIn(flat(f"{place} {finding['severity']}: {finding['title']}"), text)
            for evidence in finding["evidence"]:
                self.case.assertIn(flat(evidence["text"]), text)
        self.gains(text)
        if self.data["wait_states"] and self.data["wait_states"]["states"]:
            self.case.assertIn(flat(self.data["wait_states"]["text"]), text)

    def in_page(self, page):
        self.case.assertEqual(page.data["findings"], self.data["findings"])
        self.gains(flat(html.unescape(re.sub(r"<[^>]*>", " ", page.summary()))))
        waits, ours = page.data["wait_states"], self.data["wait_states"]
        if ours is None:
            self.case.assertIsNone(waits)
            return
        ranks = page.data["ranks"]
        self.case.assertEqual(waits["text"], ours["text"])
        self.case.assertEqual([(None if row["rank_index"] is None else ranks[row["rank_index"]]["rank"], row["wait_ns"], row["wait_ratio"])
                               for row in waits["culprits"]],
                              [(row["rank"], row["wait_ns"], row["wait_ratio"]) for row in ours["culprits"]])
        self.case.assertEqual([row["role"] for row in page.data["stragglers"]], [row["role"] for row in self.data["stragglers"]])

    def in_csv(self, folder):
        rows = table(os.path.join(folder, "findings.csv"))
        self.case.assertEqual(len(rows), len(self.data["findings"]))
        for row, finding in zip(rows, self.data["findings"]):
            self.case.assertEqual((row["id"], row["severity"], row["title"]), (finding["id"], finding["severity"], finding["title"]))
            self.case.assertEqual([int(rank) for rank in row["ranks"].split()], finding["ranks"])
            self.case.assertEqual((number(row["gain_ns_per_step"]), number(row["gain_ratio"])),
                                  (finding["gain_ns_per_step"], finding["gain_ratio"]))
            self.case.assertEqual(row["evidence"], "; ".join(evidence["text"] for evidence in finding["evidence"]))
        if self.data["wait_states"] is None:
            return
        rows = table(os.path.join(folder, "culprits.csv"))
        self.case.assertEqual([(number(row["rank"]), [int(rank) for rank in row["ranks"].split()], int(row["wait_ns"]), float(row["wait_ratio"]))
                               for row in rows],
                              [(row["rank"], row["ranks"], row["wait_ns"], row["wait_ratio"]) for row in self.data["wait_states"]["culprits"]])

    def in_sql(self):
        def ask(statement):
            done = program.run(["query", "-q", "--format", "json", self.path, statement])
            self.case.assertIn(done.returncode, (program.DONE, program.PARTIAL), done.stderr.decode())
            return json.loads(done.stdout)["rows"]

        rows = ask("SELECT id, severity, ranks, title, evidence, gain_ns_per_step, gain_ratio FROM findings")
        self.case.assertEqual([{**row, "ranks": json.loads(row["ranks"]), "evidence": json.loads(row["evidence"])} for row in rows],
                              [{key: value for key, value in finding.items() if key != "advice"} for finding in self.data["findings"]])
        if self.data["wait_states"] is not None:
            rows = ask("SELECT rank, wait_ns, wait_ratio FROM culprits")
            self.case.assertEqual(rows, [{key: row[key] for key in ("rank", "wait_ns", "wait_ratio")}
                                         for row in self.data["wait_states"]["culprits"]])

    def in_python(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lockstep.PartialWarning)
            run = lockstep.load(self.path)
        self.case.assertEqual(run.findings().to_dicts(), self.data["findings"])
        self.case.assertEqual(run.wait_states() if self.data["wait_states"] else None, self.data["wait_states"])

    def in_compare(self):
        done = program.run(["compare", "--json", "-q", self.path, self.path])
        if done.returncode == program.FAILED:
            return  # What can not be compared says so; that is another test.
        told = [(row["id"], row["ranks"], row["title"], row["gain_a_ns_per_step"], row["gain_b_ns_per_step"], row["state"])
                for row in json.loads(done.stdout)["data"]["findings"]]
        wanted = [(row["id"], row["ranks"], row["title"], row["gain_ns_per_step"], row["gain_ns_per_step"], "stayed")
                  for row in self.data["findings"]]
        self.case.assertEqual(sorted(map(str, told)), sorted(map(str, wanted)))

    def one_source(self):
        """Findings and roles name whom the first causes name, and nobody else."""
        if not self.data["wait_states"]:
            return
        causes = self.data["wait_states"]["causes"]
        culprits = self.data["wait_states"]["culprits"]
        is_link = [causes[row["causes"][0]]["cause"] == "slow_link" for row in culprits]
        first_window = min((row["window"] for row in self.data["ranks"]), default=0)
        ranks = [row["rank"] for row, link in zip(culprits, is_link) if not link and row["window"] == first_window]
        links = [row["ranks"] for row, link in zip(culprits, is_link) if link and row["window"] == first_window]
        named = [finding["ranks"] for finding in self.data["findings"] if finding["id"] == "straggler"]
        self.case.assertEqual(named, [ranks] if ranks else [])
        self.case.assertEqual([finding["ranks"] for finding in self.data["findings"] if finding["id"] == "slow_link"], links)
        self.case.assertEqual({(row["rank"], row["window"]) for row in self.data["stragglers"] if row["role"] == "straggler"} -
                              {(row["rank"], row["window"]) for row, link in zip(culprits, is_link) if not link}, set())
        told = [evidence["text"] for finding in self.data["findings"] if finding["id"] in ("straggler", "slow_link") for evidence in finding["evidence"]]
        shares = [int(share) for text in told for share in re.findall(r"^first cause of (\d+) % of all waiting", text)]
        for share in shares:
            self.case.assertIn(share, [round(100 * cause["wait_ratio"]) for cause in causes])
        self.case.assertTrue(shares or not (ranks or links))
        for row in self.data["stragglers"]:
            self.case.assertTrue(row["role"] == "straggler" or not row["chronic"])


class OneStatementTest(unittest.TestCase):
    maxDiff = 4000

    def check(self, path):
        """Whether there was anything to compare: what is refused is refused by all, which other tests look at."""
        statements = Statements(self, path) if program.run(["analyze", "--json", "-q", str(path)]).returncode != program.FAILED else None
        if statements is not None:
            statements.check()
        return statements is not None

    def test_the_recorded_job(self):
        self.assertTrue(self.check(RECORDED))

    def test_every_data_set(self):
        root = pathlib.Path(program.data_path("traces"))
        compared = 0
        for folder in sorted(path for path in root.iterdir() if path.is_dir()):
            with self.subTest(set=folder.name):
                compared += self.check(folder)
        self.assertGreater(compared, 10)

    def test_every_case(self):
        root = pathlib.Path(program.data_path("..", "cases"))
        compared = 0
        for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("hang_")):
            with self.subTest(case=folder.name):
                compared += self.check(folder)
        self.assertGreater(compared, 4)


if __name__ == "__main__":
    unittest.main()
