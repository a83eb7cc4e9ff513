"""`lockstep doctor --mpi` with a real mpirun: its collectives over shared memory and over TCP on loopback."""

import json
import os
import pathlib
import tempfile
import unittest

import jsonschema

from lockstep_program import BINARY, SOURCE, run
from mpi_launcher import IS_MPICH, MPIRUN, MPIRUN_PATH, RANK_VARIABLE, words_over
from waiting import PATIENCE_S, wait_until

PROGRAM = pathlib.Path(BINARY).with_name("lockstep-mpi-check")
SCHEMA = json.loads((SOURCE / "docs/schema/doctor-1.schema.json").read_text(encoding="utf-8"))
MPIRUN = [*MPIRUN, "-n", "2"]


def state_of(pid):
    """/proc's letter; who ends without a parent that waits stays a "Z" on some machines."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()[0]
    except OSError:
        return "gone"


@unittest.skipUnless(MPIRUN_PATH and os.access(PROGRAM, os.X_OK),
                     f"mpirun or {PROGRAM} is not there: scripts/packages.txt has Open MPI's packages for the tests")
class MpiCheckTest(unittest.TestCase):
    def collectives(self, *command, timeout=f"{PATIENCE_S}s"):
        """The line of the checklist. Whatever else is wrong with this node is not asked here."""
        done = run("doctor", "--json", "--timeout", timeout, "--mpi", " ".join(map(str, command)))
        self.assertIn(done.returncode, (0, 3), done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        (check,) = (check for check in report["data"]["checks"] if check["id"] == "collectives")
        return check

    def test_collectives_agree(self):
        for layer in ("memory", "tcp"):
            with self.subTest(layer=layer):
                check = self.collectives(*words_over(layer), "-n", "2", PROGRAM)
                self.assertEqual("ok", check["status"], check)
                self.assertIn("on 2 MPI ranks of 1 node;", check["finding"])
                figures = {figure["name"]: figure["value"] for figure in check["figures"]}
                self.assertEqual(2, figures["ranks"])
                self.assertGreater(figures["slowest"], 0)

    def test_a_launcher_that_fails_has_the_word(self):
        check = self.collectives(*MPIRUN, "/no/such/lockstep-mpi-check")
        self.assertEqual("problem", check["status"])
        self.assertIn("execvp error on file /no/such" if IS_MPICH else "mpirun was unable to launch", check["finding"])
        self.assertTrue(check["advice"])
        check = self.collectives("no-such-mpirun", PROGRAM)
        self.assertEqual("problem", check["status"])
        self.assertIn("no-such-mpirun", check["finding"])

    def test_a_launcher_that_ends_without_a_word_is_asked_again(self):
        with tempfile.TemporaryDirectory(prefix="lkmpi-", dir="/tmp") as folder:
            launcher = pathlib.Path(folder) / "launcher"
            launcher.write_text(f'#!/bin/sh\necho >>{folder}/times\n[ "$(wc -l <{folder}/times)" -gt 3 ] || kill -PIPE $$\n'
                                'echo "no host is up" >&2\nexit 7\n', encoding="ascii")
            launcher.chmod(0o755)
            self.assertIn("(exit status 7): no host is up", self.collectives(launcher)["finding"])
            launcher.write_text("#!/bin/sh\nkill -PIPE $$\n", encoding="ascii")
            self.assertIn("(exit status 141): it printed no result", self.collectives(launcher)["finding"])

    def test_a_launcher_that_fails_after_its_ranks_agreed_is_asked_again(self):
        results = json.dumps({"schema": "lockstep.mpi-check/1", "hosts": ["a", "b"], "operations": [
            {"operation": "all_reduce", "bytes": 8, "time_ns": 1, "wrong_ranks": []}]}, separators=(",", ":"))
        with tempfile.TemporaryDirectory(prefix="lkmpi-", dir="/tmp") as folder:
            launcher = pathlib.Path(folder) / "launcher"
            launcher.write_text(f"#!/bin/sh\necho >>{folder}/times\necho '{results}'\n[ \"$(wc -l <{folder}/times)\" -gt 1 ]\n",
                                encoding="ascii")
            launcher.chmod(0o755)
            self.assertEqual("ok", self.collectives(launcher)["status"])
            launcher.write_text(f"#!/bin/sh\necho '{results}'\necho 'write error' >&2\nexit 255\n", encoding="ascii")
            check = self.collectives(launcher)
            self.assertEqual("problem", check["status"])
            self.assertIn("agree, and then the launcher failed (exit status 255): write error", check["finding"])

    def test_a_sweep_that_does_not_end_is_ended_with_its_ranks(self):
        with tempfile.TemporaryDirectory(prefix="lkmpi-", dir="/tmp") as folder:
            program = pathlib.Path(folder) / "endless"
            program.write_text(f'#!/bin/sh\necho $$ >{folder}/${RANK_VARIABLE}\nexec sleep 600\n', encoding="ascii")
            program.chmod(0o755)
            files = [pathlib.Path(folder) / rank for rank in ("0", "1")]
            for seconds in (5, 20, 80):
                check = self.collectives(*MPIRUN, program, timeout=f"{seconds}s")
                self.assertEqual("problem", check["status"])
                self.assertIn("did not end", check["finding"])
                if all(file.exists() and file.read_text(encoding="ascii").strip() for file in files):
                    break
                print(f"the ranks had not begun within {seconds} s: again with more", flush=True)
            for rank, file in enumerate(files):
                pid = file.read_text(encoding="ascii").strip()
                # The kernel ends who was killed when it next gets a processor.
                wait_until(lambda: state_of(pid) in ("gone", "Z"), f"the end of rank {rank}")


if __name__ == "__main__":
    unittest.main()
