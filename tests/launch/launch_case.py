"""What the tests of launching share: the program, the stand-in for nsys, and ranks that say who they are."""

import collections
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from waiting import PATIENCE_S

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOCKSTEP_BINARY", str(SOURCE / "build/release/bin/lockstep"))
STAND_IN_NSYS = SOURCE / "tests/launch/stand_in_nsys"
DONE, FAILED, MISUSED = range(3)
# A rank: it notes its number, whether a wrapper is its parent, and what it was given. argv: folder, variable of the rank.
RANK = """
import json, os, pathlib, sys
rank = os.environ[sys.argv[2]]
parent = pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode().split("\\0")
note = {"rank": int(rank), "parent": parent, "daemon": os.environ.get("KINETO_USE_DAEMON")}
(pathlib.Path(sys.argv[1]) / f"rank{rank}.json").write_text(json.dumps(note))
sys.exit(int(os.environ.get("FAILS" + rank, "0")))
"""


class LaunchCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "out"
        for name in ("calls", "notes"):
            (self.folder / name).mkdir()
        (self.folder / "rank.py").write_text(RANK)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("KINETO_", "NSYS_", "SLURM_"))}
        self.environment = {**inherited, "STAND_IN_RECORD": str(self.folder / "calls")}

    def command(self, *flags):
        """`lockstep run` with the stand-in, up to CMD."""
        return [BINARY, "run", "--profile", "nsys", "--tool", str(STAND_IN_NSYS), "--out", str(self.out), *map(str, flags), "--"]

    def rank_command(self, variable):
        return ["python3", "-IS", str(self.folder / "rank.py"), str(self.folder / "notes"), variable]

    def run_words(self, words, **variables):
        return subprocess.run(list(map(str, words)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
                              cwd=self.folder, env={**self.environment, **variables}, check=False)

    def calls(self):
        """How the stand-in was called."""
        return [json.loads(path.read_text()) for path in sorted((self.folder / "calls").iterdir())]

    def notes(self):
        notes = [json.loads(path.read_text()) for path in (self.folder / "notes").iterdir()]
        return {note["rank"]: note for note in notes}

    def manifests(self):
        entries = [json.loads(path.read_text()) for path in self.out.glob("*.launch")]
        self.assertEqual(len(entries), len({entry["rank"] for entry in entries}))
        return {entry["rank"]: entry for entry in entries}

    def check_ranks(self, launcher, world_size, chosen):
        """All ranks ran; just the chosen ones under the stand-in, each with a report of its own."""
        notes = self.notes()
        self.assertEqual(set(range(world_size)), set(notes))
        for rank, note in notes.items():
            self.assertEqual(rank in chosen, any(word.endswith("stand_in_nsys") for word in note["parent"][:3]), note)
            self.assertFalse(note["parent"][0].endswith("bin/lockstep"), note)
        manifests = self.manifests()
        self.assertEqual(set(chosen), set(manifests))
        self.assertEqual(len(chosen), len(self.calls()))
        reports = collections.Counter(file for entry in manifests.values() for file in entry["files"])
        self.assertEqual({path.name for path in self.out.glob("*.nsys-rep")}, set(reports))
        self.assertEqual({1}, set(reports.values()))
        for rank, entry in manifests.items():
            self.assertEqual((launcher, world_size), (entry["launcher"], entry["world_size"]))
            self.assertEqual([f"nsys.rank{rank}-of-{world_size}.{entry['host']}.nsys-rep"], entry["files"])
        return manifests
