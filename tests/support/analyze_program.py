"""What the tests that run the real program share: where it is, where the data is, and how its answer is read."""

import gzip
import json
import os
import re
import subprocess
import unittest

from waiting import PATIENCE_S

SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("LOCKSTEP_BINARY", os.path.join(SOURCE_ROOT, "build", "release", "bin", "lockstep"))
GENERATOR = os.path.join(os.path.dirname(PROGRAM), "lockstep_trace_gen")
DATA = os.environ.get("LOCKSTEP_DATA", os.path.join(os.path.dirname(SOURCE_ROOT), "shared", "data"))

DONE, FAILED, MISUSED, FINDING, PARTIAL = 0, 1, 2, 3, 4

# What no input may bring about.
CRASH = re.compile(r"AddressSanitizer|UndefinedBehaviorSanitizer|runtime error:|LeakSanitizer|terminate called|Assertion")


def data_path(*parts):
    """A path below the shared data; skips the test by name when it is not there."""
    path = os.path.join(DATA, *parts)
    if not os.path.exists(path):
        raise unittest.SkipTest("lacks " + os.path.join("data", *parts) + " (set LOCKSTEP_DATA)")
    return path


class DataCase(unittest.TestCase):
    """A test of real traces; skipped by name where they are not there."""

    def setUp(self):
        data_path("traces")


def read_json(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as file:
        return json.load(file)


class Answer:
    """One run of `lockstep analyze --json`."""

    def __init__(self, process, command):
        self.status = process.returncode
        self.error_text = process.stderr.decode("utf-8", "replace")
        self.text = process.stdout
        self.command = command
        self.document = json.loads(process.stdout) if process.stdout.strip() else None

    @property
    def data(self):
        return self.document["data"]

    @property
    def ledger(self):
        return self.document["ledger"]

    def ledger_codes(self):
        return {entry["code"] for entry in self.ledger}

    def rows(self, table, **match):
        return [row for row in self.data[table] if all(row[key] == value for key, value in match.items())]

    def row(self, table, **match):
        rows = self.rows(table, **match)
        if len(rows) != 1:
            raise AssertionError(f"{len(rows)} rows of {table} match {match}: {' '.join(self.command)}")
        return rows[0]

    def finding(self, identity):
        for finding in self.data["findings"]:
            if finding["id"] == identity:
                return finding
        return None


def run(arguments, timeout=PATIENCE_S):
    command = [PROGRAM, *arguments]
    environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1")
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, env=environment, check=False)


def analyze(*arguments, timeout=PATIENCE_S):
    """Runs `lockstep analyze --json ARGUMENTS`. A crash, or a sanitizer's report, is an AssertionError."""
    command = ["analyze", "--json", "--quiet", *[str(argument) for argument in arguments]]
    process = run(command, timeout)
    text = process.stderr.decode("utf-8", "replace")
    if process.returncode < 0 or process.returncode > PARTIAL or CRASH.search(text):
        raise AssertionError(f"exit status {process.returncode} of {' '.join(command)}\n{text[-4000:]}")
    return Answer(process, command)


def analyze_whole(*arguments):
    """The same, where the answer must be whole and the input sound."""
    answer = analyze(*arguments)
    if answer.status != DONE:
        raise AssertionError(f"exit status {answer.status} of {' '.join(answer.command)}\n{answer.error_text[-4000:]}")
    return answer


def generate(folder, *options):
    """Makes a planted set and returns its truth."""
    subprocess.run([GENERATOR, "--out", folder, *[str(option) for option in options]], check=True, stdout=subprocess.DEVNULL)
    return read_json(folder + ".truth.json")


def to_ns(micros):
    """Microseconds as a reference file states them, in whole nanoseconds."""
    return round(micros * 1000)
