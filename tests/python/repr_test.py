"""How runs and tables look: at a prompt, and as HTML that is safe wherever it is shown."""

import html.parser
import json
import pathlib
import tempfile
import unittest
import warnings

import lockstep
from samples import RECORDED, recorded, trace

VOID = {"br", "rect"}


class Checker(html.parser.HTMLParser):
    """Sees that elements nest, and collects their names, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.attributes, self.text = [], set(), set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID or (tag == "rect" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.text.append(data)


class ReprCase(unittest.TestCase):
    def check(self, text):
        checker = Checker(text)
        self.assertEqual(checker.open, [])
        self.assertFalse(checker.names & {"script", "img", "link", "iframe", "object"})
        self.assertFalse({name for name in checker.attributes if name.startswith("on") or name in ("src", "href")})
        self.assertNotIn("url(", text)
        return checker


class RunReprTest(ReprCase):
    def test_the_prompt_shows_job_and_verdict(self):
        lines = repr(recorded()).split("\n")
        self.assertEqual(len(lines), 4)
        self.assertIn("all 4 ranks", lines[0])
        self.assertIn("Rank 2 holds the others up", lines[2])
        self.assertRegex(lines[3], r"^  \(costs up to \d+ % of a step\)$")

    def test_the_picture_names_every_rank_and_the_findings(self):
        text = recorded()._repr_html_()
        checker = self.check(text)
        shown = " ".join(checker.text)
        for rank in range(4):
            self.assertIn(f"rank {rank}", shown)
        for row in recorded().findings().to_dicts()[:5]:
            self.assertIn(row["title"], shown)
            self.assertIn(row["advice"][0], shown)
        self.assertIn("saves up to", shown)
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertLess(len(text), 30_000)

    def test_bars_have_the_lengths_of_the_breakdown(self):
        run = recorded()
        steps = run.steps().to_pandas()
        mean = steps.groupby("rank")[["span_ns", "compute_ns"]].mean()
        drawn = {row["rank"]: row for row in run._native.summary()["ranks"]}
        for rank in range(4):
            self.assertAlmostEqual(drawn[rank]["compute_ns"], mean.loc[rank, "compute_ns"], delta=1)
        longest = mean["span_ns"].max()
        width = mean.loc[2, "compute_ns"] / longest * 560
        self.assertIn(f'width="{width:.1f}" height="14" fill="var(--ls-compute)"><title>rank 2: compute', run._repr_html_())

    def test_a_partial_run_says_so(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = lockstep.load(RECORDED / "rank1.json.gz")
        self.assertIn("Partial: 3 ranks are missing", repr(run))
        self.assertIn("Partial: 3 ranks are missing", " ".join(self.check(run._repr_html_()).text))

    def test_a_pass_that_was_left_out_is_no_picture(self):
        self.assertNotIn("<svg", lockstep.load(RECORDED, passes=["kernels"])._repr_html_())

    def test_what_a_trace_says_is_escaped(self):
        evil = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(2):
                text = json.loads(trace(rank, 2, names=(evil, "b")))
                text["distributedInfo"]["backend"] = evil
                (pathlib.Path(folder) / f"rank{rank}.json").write_text(json.dumps(text), encoding="utf-8")
            run = lockstep.load(folder)
            self.check(run._repr_html_())
            for table in run.analyze().values():
                self.check(table._repr_html_())
            self.assertIn("&lt;script&gt;", run.kernels()._repr_html_())
            self.check(run.events(0)._repr_html_())


class TableReprTest(ReprCase):
    def test_the_prompt_shows_size_and_units(self):
        self.assertIn("20 rows: rank, window, step, basis", repr(recorded().steps()))
        self.assertIn("span_ns [ns]", repr(recorded().steps()))

    def test_numbers_are_readable_and_exact(self):
        table = recorded().steps()
        text = table._repr_html_()
        self.check(text)
        span = table.to_dicts(0, 1)[0]["span_ns"]
        self.assertIn(f'title="{span}"', text)
        self.assertIn("20 rows, 10 of them not shown", text)

    def test_every_table_and_the_events_can_be_shown(self):
        for table in [*recorded().analyze().values(), recorded().events(0), recorded().memory_events(0)]:
            self.check(table._repr_html_())
            self.assertIn(table.name, repr(table))


if __name__ == "__main__":
    unittest.main()
