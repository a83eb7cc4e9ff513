"""What `lockstep bench collectives` says of this machine."""

import os
import shutil
import subprocess
import unittest

from analyze_program import PROGRAM


def measured_fabric(folder, *flags):
    """The file with the results of a real run of two ranks; skips by name where there is no MPI."""
    if shutil.which("mpirun") is None:
        raise unittest.SkipTest("lacks mpirun (scripts/packages.txt, group test)")
    launcher = "mpirun --oversubscribe" + (" --allow-run-as-root" if os.getuid() == 0 else "")
    launcher += " --mca oob_tcp_if_include lo --mca btl self,vader --mca mpi_yield_when_idle 1"
    results = os.path.join(folder, "bench.json")
    done = subprocess.run([PROGRAM, "bench", "collectives", "-n", "2", "--launcher", launcher, "--sizes", "8,4K,256K,4M",
                           "--iterations", "3", "--json", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if b"built without MPI" in done.stderr:
        raise unittest.SkipTest("lockstep was built without MPI: scripts/packages.txt has Open MPI's packages")
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    with open(results, "wb") as file:
        file.write(done.stdout)
    return results
