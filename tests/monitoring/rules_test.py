"""The shipped rules: they ask for what there is, promtool finds them right, and every alert has its page."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml
from shipped import ALERTS, DASHBOARDS, PROMETHEUS, RULES, SOURCE, TARGET_LABELS, catalogue, labels_in, labels_made_in, names_in, queries_in, rules_of
from waiting import PATIENCE_S

HEADINGS = ["What it says", "Where to look", "Usual causes", "What to do", "When it is wrong"]


class RulesTest(unittest.TestCase):
    def test_every_expression_asks_for_what_there_is(self):
        known = catalogue()
        for rule in rules_of(RULES):
            known[rule["record"]] = set.union(labels_made_in(rule["expr"]), *(known.get(name, set()) for name in names_in(rule["expr"])))
        for rule in rules_of(RULES) + rules_of(ALERTS):
            for expression in [rule["expr"], *queries_in(rule.get("annotations", {}).get("summary", ""))]:
                with self.subTest(rule.get("alert", rule.get("record")), expression=expression):
                    names = names_in(expression)
                    self.assertTrue(names)
                    self.assertEqual(set(), names - set(known))
                    allowed = set.union(TARGET_LABELS, labels_made_in(expression), *(known[name] for name in names))
                    self.assertEqual(set(), labels_in(expression) - allowed)

    def test_every_alert_says_how_bad_it_is_and_has_its_page(self):
        pages = set()
        for rule in rules_of(ALERTS):
            with self.subTest(rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("info", "warning", "critical"))
                words = re.sub(r"\{\{.*?\}\}", "", rule["annotations"]["summary"])
                self.assertTrue(words.rstrip().endswith("."), words)
                page = SOURCE / rule["annotations"]["runbook_url"]
                pages.add(page.name)
                text = page.read_text(encoding="utf-8")
                self.assertTrue(text.startswith("# "))
                self.assertIn(rule["alert"], text.splitlines()[0].removeprefix("# ").split(", "))
                self.assertEqual(HEADINGS, re.findall(r"^## (.*)$", text, re.MULTILINE))
        listed = re.findall(r"^\| `(\w+)` \((\w+)\) \| \[[\w-]+\]\(runbook/([\w-]+\.md)\) \|$",
                            (SOURCE / "docs/monitoring.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual([(rule["alert"], rule["labels"]["severity"], pathlib.PurePath(rule["annotations"]["runbook_url"]).name)
                          for rule in rules_of(ALERTS)], listed)
        self.assertEqual(pages, {path.name for path in (SOURCE / "docs/runbook").iterdir()})

    def test_dashboards_are_as_they_are_made_and_ask_for_what_there_is(self):
        sys.path.insert(0, str(DASHBOARDS))
        import build

        known = catalogue() | {rule["record"]: {"job_id", "rank", "model"} for rule in rules_of(RULES)}
        self.assertEqual({path.stem for path in DASHBOARDS.glob("*.json")}, set(build.DASHBOARDS))
        for name in build.DASHBOARDS:
            text = (DASHBOARDS / f"{name}.json").read_text(encoding="utf-8")
            self.assertEqual(build.text(name), text, "run packaging/grafana/build.py")
            taken = set()
            for panel in json.loads(text)["panels"]:
                with self.subTest(f"{name}: {panel['title']}"):
                    self.assertTrue(panel["description"].endswith("."))
                    place = panel["gridPos"]
                    cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                    self.assertFalse(taken & cells)
                    self.assertLessEqual(place["x"] + place["w"], 24)
                    taken |= cells
                    for target in panel["targets"]:
                        names = names_in(target["expr"])
                        self.assertEqual(set(), names - set(known))
                        allowed = set.union(TARGET_LABELS, {"alertname", "alertstate"}, *(known[each] for each in names))
                        self.assertEqual(set(), labels_in(target["expr"]) - allowed)

    def test_top_and_the_live_page_have_the_same_thresholds(self):
        source = (SOURCE / "src/node/live/job_figures.cc").read_text(encoding="utf-8")
        rules = {rule["alert"]: rule["expr"] for rule in rules_of(ALERTS)}
        for constant, alert in (("kCommunicationAlarm", "LockstepCommOverheadHigh"), ("kInputAlarm", "LockstepInputBound"),
                                ("kStragglerAlarm", "LockstepStragglerRank"), ("kMemoryAlarm", "LockstepGpuMemoryImbalance"),
                                ("kNoProgressNs", "LockstepJobNoProgress"), ("kStuckSteps", "LockstepJobNoProgress"),
                                ("kCollectiveAlarmNs", "LockstepCollectiveStuck")):
            with self.subTest(constant):
                threshold = float(re.search(rf"{constant} = ([0-9.]+)", source)[1])
                self.assertIn(threshold, [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", rules[alert])])

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not there: scripts/packages.txt has prometheus")
    def test_promtool_finds_them_right(self):
        for command in (["check", "rules", RULES, ALERTS], ["check", "config", PROMETHEUS / "prometheus.yml"]):
            done = subprocess.run(["promtool", *command], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not there: scripts/packages.txt has prometheus")
    def test_each_trouble_raises_its_alert_and_a_healthy_hour_none(self):
        tests = yaml.safe_load((SOURCE / "tests/monitoring/rules.test.yml").read_text(encoding="utf-8"))
        raised = {check["alertname"] for test in tests["tests"] for check in test.get("alert_rule_test", []) if check["exp_alerts"]}
        raised |= {name for test in tests["tests"] for check in test.get("promql_expr_test", []) for sample in check.get("exp_samples") or []
                   for name in re.findall(r'ALERTS\{alertname="(\w+)",alertstate="firing"', sample.get("labels", ""))}
        self.assertEqual({rule["alert"] for rule in rules_of(ALERTS)}, raised)
        tests["rule_files"] = [str(RULES), str(ALERTS)]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(tests, file)
            file.flush()
            done = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
