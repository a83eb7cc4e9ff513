"""Which variables tell a process its rank, launcher by launcher, and whose word counts.

The tables are the only ones: CMake makes C++'s from these lines (src/base/launchers). A plain file that needs Python's standard
library alone; `lockstep run` hands it to jobs.
"""

from __future__ import annotations

from collections.abc import Mapping

# The innermost launcher first: in a SLURM job, mpirun and torchrun leave SLURM_PROCID of the launcher in every rank.
# A row: name; variables of rank, world size, local rank, local size, node, the launcher's own job; what has to be there
# beside the rank, any of it; the command that starts ranks of MPI, if it does. Of several names in a cell the first that
# is a number counts. SLURM's, in rows of others, are srun's word on a rank that it set under PMI's or PMIx's name too.
# OMPI_COMM_WORLD_NODE_RANK is an index on the node, FLUX_JOB_NNODES how many nodes there are: neither is the node.
# Read by CMake too: strings alone, and no brackets within a row.
LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RUN_ID",
     "LOCAL_RANK TORCHELASTIC_RUN_ID", ""),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "", "PMIX_NAMESPACE", "", "mpirun"),
    ("MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", "", "", "", "mpirun_rsh"),
    ("PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID PMI_LOCAL_RANK", "PALS_LOCAL_SIZE PMI_LOCAL_SIZE",
     "PALS_NODEID", "PALS_APID", "", "mpiexec"),
    ("MPICH", "PMI_RANK", "PMI_SIZE SLURM_STEP_NUM_TASKS SLURM_NTASKS", "MPI_LOCALRANKID PMI_LOCAL_RANK SLURM_LOCALID",
     "MPI_LOCALNRANKS PMI_LOCAL_SIZE SLURM_STEP_TASKS_PER_NODE SLURM_NTASKS_PER_NODE", "SLURM_NODEID", "", "", "mpiexec"),
    ("PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS SLURM_NTASKS", "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE SLURM_NTASKS_PER_NODE", "SLURM_NODEID", "PMIX_NAMESPACE", "", "srun"),
    ("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "", "", "FLUX_JOB_ID", "", "flux run"),
    ("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE", "",
     "LSB_JOBID", "", "jsrun"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS SLURM_NTASKS SLURM_NPROCS", "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE SLURM_NTASKS_PER_NODE", "SLURM_NODEID", "SLURM_JOB_ID", "", "srun"),
    ("JAX", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_LOCAL_PROCESS_ID", "", "", "", "", ""),
    # RANK without what torchrun sets beside it: an operator's of Kubernetes, or set by hand.
    ("the environment", "RANK", "WORLD_SIZE", "", "", "PET_NODE_RANK", "", "WORLD_SIZE", ""),
)

# Schedulers' ids of the job, the outermost that there is: SLURM, PBS, LSF, Flux.
JOB_VARIABLES = (
    "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID",
)

_MOST_RANKS = 100_000_000


def _number(environment: Mapping[str, str], names: str, is_srun: bool = True) -> int | None:
    for name in names.split():
        text = environment.get(name, "")
        digits = text.lstrip("0")
        if not text.isascii() or not text.isdigit() or len(digits) > 9 or int(digits or "0") > _MOST_RANKS:
            continue
        if is_srun or not name.startswith("SLURM_"):
            return int(digits or "0")
    return None


def _is_step_task(environment: Mapping[str, str]) -> bool:
    """A batch script and shells in an allocation have SLURM_PROCID=0 and a number of tasks, and are none. What salloc starts
    is a step of one whose id, 4294967290, is no number here."""
    if environment.get("SLURM_STEP_ID"):
        return _number(environment, "SLURM_STEP_ID") is not None
    return bool(environment.get("SLURM_STEP_NUM_TASKS")) or (_number(environment, "SLURM_PROCID") or 0) > 0


def find_rank(environment: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Rank and world size by whoever speaks, as FindRank of src/base/launchers has them for code inside the program (kInProgram);
    None: unknown."""
    first: tuple[str, int, int | None] | None = None
    for row in (LAUNCHERS[0], LAUNCHERS[-1], *LAUNCHERS[1:-1]):
        rank_name, size_name, beside = row[1], row[2], row[7]
        rank = _number(environment, rank_name)
        is_bare = row is LAUNCHERS[-1]
        if rank is None or (beside and not is_bare and not any(environment.get(name) for name in beside.split())):
            continue
        if is_bare and (_number(environment, "PET_NPROC_PER_NODE") or 1) > 1:
            continue
        is_srun = _is_step_task(environment) and _number(environment, "SLURM_PROCID") == rank
        if rank_name == "SLURM_PROCID" and not is_srun:
            continue
        size = _number(environment, size_name, is_srun)
        if first is None:
            first = (rank_name, rank, size)
            continue
        # Who contradicts itself, or is a RANK of a world of one that was left over, gives way.
        is_outside = first[2] is not None and first[1] >= first[2]
        is_left_over = first[0] == "RANK" and first[2] == 1 and not environment.get("TORCHELASTIC_RUN_ID")
        if rank_name != first[0] and (size is None or rank < size) and (is_outside or (is_left_over and (size or 0) > 1)):
            return rank, size
    if first is None:
        return None, None
    return first[1], first[2] if first[2] is not None and first[1] < first[2] else None
