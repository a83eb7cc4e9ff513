"""The rules that are shipped, and the metrics that there are."""

import os
import pathlib
import re

import yaml

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PROMETHEUS = SOURCE / "packaging/prometheus"
RULES = PROMETHEUS / "lockstep.rules.yml"
ALERTS = PROMETHEUS / "lockstep.alerts.yml"
DASHBOARDS = SOURCE / "packaging/grafana"
# Of the target, or of Prometheus itself.
TARGET_LABELS = {"instance", "job", "le", "quantile"}


def rules_of(path):
    return [rule for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def catalogue():
    """{name as it is asked for: its labels}, of docs/daemon-metrics.md and docs/watch.md."""
    metrics = {"up": set()}
    text = "".join((SOURCE / name).read_text(encoding="utf-8") for name in ("docs/daemon-metrics.md", "docs/watch.md"))
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", text, re.MULTILINE):
        suffixes = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}.get(kind, ("",))
        for suffix in suffixes:
            metrics[name + suffix] = set(re.findall(r"`(\w+)`", labels))
    return metrics


def names_in(expression):
    """Metrics that an expression asks for."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    bare = re.sub(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)", "", bare)
    return {name for name in re.findall(r"[a-zA-Z_:][\w:]*", bare) if name == "up" or "lockstep_" in name}


def labels_in(expression):
    """Labels that it selects or groups by."""
    labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    for group in re.findall(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)", expression):
        labels |= set(re.findall(r"\w+", group))
    return labels


def labels_made_in(expression):
    """Labels that it adds."""
    return set(re.findall(r'label_replace\(.*, "(\w+)", "[^"]*", "[^"]*", "[^"]*"\)', expression))


def queries_in(text):
    """What an alert's text asks Prometheus for when it is made."""
    queries = [a or b.replace('\\"', '"') for a, b in re.findall(r'printf (?:`([^`]*)`|"((?:[^"\\]|\\.)*)")', text)]
    return [query.replace("%q", '""') for query in queries]
