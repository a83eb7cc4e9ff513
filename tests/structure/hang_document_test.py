"""What docs/hangs.md and the README show of hang is what it prints. With LOCKSTEP_UPDATE=1 they are written anew.

A block that begins with "$ lockstep" is held line by line; a last line "..." stands for the rest. Paths are the repository's, or those of the
shared data (LOCKSTEP_DATA), without which their blocks are left out. The table of verdicts is held in its last column.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

from waiting import PATIENCE_S

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOCKSTEP_BINARY", str(SOURCE / "build/release/bin/lockstep"))
DATA = pathlib.Path(os.environ.get("LOCKSTEP_DATA", SOURCE.parent / "shared/data"))
DOCUMENTS = [SOURCE / "docs/hangs.md", SOURCE / "README.md"]
BLOCK = re.compile(r"^    \$ (lockstep (?:hang|nccl-log) [^\n]*)\n((?:    (?!\$ )[^\n]*\n|\n(?=    (?!\$ )))*)", re.M)
ROW = re.compile(r"^(\| `(\S+)` \|.*\| )([^|]*)( \|)$", re.M)
REST = "..."


def folder_of(path):
    """Where a path of the document begins; None: it is not here."""
    return next((folder for folder in (SOURCE, DATA) if (folder / path).exists()), None)


def output(command):
    """What the command prints, as lines; None without its data."""
    braces = re.compile(r"(\S*)\{([^}]*)\}(\S*)")
    words = shlex.split(braces.sub(lambda m: " ".join(m[1] + part + m[3] for part in m[2].split(",")), command))[1:]
    paths = [word for word in words if "/" in word]
    folder = folder_of(paths[0])
    if folder is None:
        return None
    done = subprocess.run([BINARY, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8",
                          env={**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}, timeout=PATIENCE_S)
    if done.returncode not in (0, 3, 4):
        raise AssertionError(f"{command}: exit status {done.returncode}: {done.stderr}")
    return done.stdout.rstrip("\n").split("\n")


def shown(lines, before):
    """`lines` cut as the block before was; paths of machines that built PyTorch are as they are printed."""
    return lines if REST not in before or len(lines) < len(before) else [*lines[:len(before) - 1], REST]


def verdict(path):
    lines = output(f"lockstep hang --quiet --json {path}")
    if lines is None:
        return None
    found = json.loads("\n".join(lines))["data"]["verdict"]
    ranks = ", ".join(map(str, found["culprit_ranks"]))
    return f"`{found['kind']}`" + (f": {ranks}" if ranks else "")


def renewed(text):
    """The document with what the program prints now."""
    def block(match):
        lines = output(match[1])
        if lines is None:
            return match[0]
        before = [line[4:] for line in match[2].rstrip("\n").split("\n")]
        return f"    $ {match[1]}\n" + "".join(f"    {line}".rstrip() + "\n" for line in shown(lines, before))

    def row(match):
        return match[1] + (verdict(match[2]) or match[3]) + match[4]

    return ROW.sub(row, BLOCK.sub(block, text))


class HangDocumentTest(unittest.TestCase):
    maxDiff = None

    def test_shows_what_the_program_prints(self):
        for document in DOCUMENTS:
            text = document.read_text(encoding="utf-8")
            self.assertTrue(BLOCK.search(text), document)
            if os.environ.get("LOCKSTEP_UPDATE"):
                document.write_text(renewed(text), encoding="utf-8")
            else:
                self.assertEqual(renewed(text), text, f"LOCKSTEP_UPDATE=1 ./test -R structure.hang_document writes {document} anew")

    def test_names_every_kind(self):
        text = DOCUMENTS[0].read_text(encoding="utf-8")
        names = (SOURCE / "src/analysis/hang/names.cc").read_text(encoding="utf-8")
        kinds = re.findall(r'VerdictKind::\w+: return "(\w+)"', names)
        self.assertEqual(15, len(kinds))
        self.assertEqual([], [kind for kind in kinds if f"`{kind}`" not in text])


if __name__ == "__main__":
    unittest.main()
