"""Runs the built program, for the tests beside this file."""

import json
import os
import pathlib
import subprocess

from waiting import PATIENCE_S

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOCKSTEP_BINARY", str(SOURCE / "build/release/bin/lockstep"))
RECORDED = SOURCE / "examples" / "recorded"

DONE, FAILED, MISUSED, FINDING, PARTIAL = range(5)


def run(*arguments, timeout=PATIENCE_S):
    """`lockstep ARGUMENTS...` without a terminal: has returncode, stdout, stderr."""
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8",
                          stdin=subprocess.DEVNULL, timeout=timeout)


def analyze_json(*arguments):
    """The object that `lockstep analyze --json ARGUMENTS...` prints; the exit status must be 0."""
    done = run("analyze", "--json", *arguments)
    if done.returncode != DONE:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def finding(report, identity):
    """The finding of that id, or None."""
    return next((row for row in report["data"]["findings"] if row["id"] == identity), None)
