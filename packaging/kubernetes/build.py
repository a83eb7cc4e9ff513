#!/usr/bin/env python3
"""Writes prometheusrule.yaml beside it: the rules and alerts of packaging/prometheus as the object that the Prometheus operator loads."""

import pathlib

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent
RULES = [FOLDER.parent / "prometheus" / name for name in ("lockstep.rules.yml", "lockstep.alerts.yml")]
HEAD = """# For the Prometheus operator: the recording rules and alerts of packaging/prometheus. Made by build.py beside it: change those.
"""


class Dumper(yaml.SafeDumper):
    """Expressions of several lines stay so."""


def written(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, written)


def text():
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]]
    rule = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
            "metadata": {"name": "lockstep", "namespace": "lockstep", "labels": {"app.kubernetes.io/part-of": "lockstep"}},
            "spec": {"groups": groups}}
    return HEAD + yaml.dump(rule, Dumper=Dumper, sort_keys=False, width=10_000)


if __name__ == "__main__":
    (FOLDER / "prometheusrule.yaml").write_text(text(), encoding="utf-8")
