"""What spans recorded, asked of the built program."""

import json
import os
import subprocess

LOCKSTEP = os.environ["LOCKSTEP_BINARY"]
PARTIAL = 4  # Exit status where ranks are missing.


def lockstep(*arguments):
    """The object that `lockstep ARGUMENTS... --json` prints."""
    done = subprocess.run([LOCKSTEP, *map(str, arguments), "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode in (0, PARTIAL), done.stderr
    return json.loads(done.stdout)


def query(path, sql):
    """Rows as dicts."""
    return lockstep("query", path, sql)["rows"]


def counts(path):
    """Events by name."""
    return {row["name"]: row["n"] for row in query(path, "select name, count(*) as n from events group by name")}


def ledger(path):
    return {row["code"]: row for row in lockstep("analyze", path)["ledger"]}
