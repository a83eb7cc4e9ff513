"""Where the programs and the data are, for the tests beside this file."""
import os
import pathlib
import subprocess

from waiting import PATIENCE_S

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = os.environ.get("LOCKSTEP_BINARY", str(ROOT / "build/dev/bin/lockstep"))
SAMPLE = os.environ.get("LOCKSTEP_SAMPLE_REPORT", str(ROOT / "build/dev/bin/lockstep_sample_report"))
RECORDED = ROOT / "examples/recorded"
SHARED_TRACES = pathlib.Path(os.environ.get("LOCKSTEP_DATA", ROOT.parent / "shared/data")) / "traces"


def run(*words, program=LOCKSTEP, environment=None, **kwargs):
    """Runs a program with a fixed locale and no colour settings of ours; returns the completed process with text output."""
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE", "LC_ALL", "LANG")}
    clean.update({"LC_ALL": "C.UTF-8"}, **(environment or {}))
    return subprocess.run([program, *map(str, words)], env=clean, capture_output=True, text=True, errors="replace",
                          timeout=PATIENCE_S, **kwargs)
