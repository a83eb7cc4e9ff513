"""The launcher of the MPI that programs were built for: Open MPI's mpirun, or that of MPICH in LOCKSTEP_MPIRUN (tests/mpich)."""

import os
import shutil

MPIRUN_PATH = os.environ.get("LOCKSTEP_MPIRUN") or shutil.which("mpirun")
IS_MPICH = "LOCKSTEP_MPIRUN" in os.environ
RANK_VARIABLE = "PMI_RANK" if IS_MPICH else "OMPI_COMM_WORLD_RANK"


def words_over(layer):
    """What starts ranks that speak through shared memory ("memory") or TCP ("tcp"). One machine: nothing is to be sent
    beyond loopback, and a test may be root's."""
    if IS_MPICH:
        return [MPIRUN_PATH, "-genv", "UCX_TLS", {"memory": "self,sm", "tcp": "self,tcp"}[layer], "-genv", "UCX_NET_DEVICES", {"memory": "all", "tcp": "lo"}[layer]]
    return ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.getuid() == 0 else []), "--mca", "oob_tcp_if_include", "lo",
            "--mca", "btl_tcp_if_include", "lo", "--mca", "btl", {"memory": "self,vader", "tcp": "self,tcp"}[layer], "--mca", "mpi_yield_when_idle", "1"]


MPIRUN = words_over("memory")


def mpi_environment(**variables):
    """This process's, without what another launcher may have said."""
    launcher = ("OMPI_", "PMIX_", "PMI_", "MPI_LOCAL", "SLURM_")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(launcher)}, **variables}
