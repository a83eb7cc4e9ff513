"""All readers of launchers' variables, in C++ and in Python, are asked about the same environments and say the same."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from analyze_program import data_path

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOCKSTEP_BINARY", "")
READERS = os.environ.get("LOCKSTEP_RANK_READERS", "")
# By itself, as `lockstep run` hands it to jobs.
SPEC = importlib.util.spec_from_file_location("_launchers", SOURCE / "python/lockstep/_launchers.py")
launchers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(launchers)

NOBODY = (None, None, None)
HAVE_NO_LOCAL_RANK = ("nsight", "mpi", "python")
TASK = {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}
# One task a node, which started something that starts ranks.
OUTER = {"SLURM_PROCID": "1", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "none"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "PMIX_RANK": "3"}
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}

SAID = (3, 8, 1)
# What an environment says, and who means to say something else: the program and the report of one go by RANK even where
# nothing stands beside it, the daemon never does, and MPI hears launchers of MPI alone.
MIXTURES = (
    ("nothing", {}, NOBODY, {}),
    ("torchrun in srun", {**OUTER, **TORCHRUN}, SAID, {"mpi": (1, 2, None)}),
    ("mpirun in srun", {**OUTER, **OPEN_MPI}, SAID, {}),
    ("mpiexec in srun", {**OUTER, **HYDRA}, SAID, {}),
    ("mpiexec in srun, one rank by chance the same", {**TASK, "SLURM_LOCALID": "0", **HYDRA}, SAID, {}),
    ("mpiexec in srun, without a local rank", {**OUTER, "PMI_RANK": "3", "PMI_SIZE": "8"}, (3, 8, None), {}),
    ("torchrun in mpirun", {**OPEN_MPI, "RANK": "5", "WORLD_SIZE": "16", "LOCAL_RANK": "0"}, (5, 16, 0), {"mpi": (3, 8, None)}),
    ("srun --mpi=pmi2", {**TASK, "PMI_RANK": "3", "PMI_SIZE": "8"}, SAID, {}),
    ("srun --mpi=pmix", {**TASK, "PMIX_RANK": "3"}, SAID, {}),
    ("prterun in srun", {**OUTER, "PMIX_RANK": "3"}, (3, None, None), {"mpi": NOBODY}),
    ("PALS beside PMI", {"PALS_RANKID": "3", "PALS_LOCAL_RANKID": "1", "PMI_RANK": "3", "PMI_SIZE": "8", **OUTER}, SAID, {}),
    ("jsrun within LSF", {"LSB_JOBID": "7", "JSM_NAMESPACE_RANK": "3", "JSM_NAMESPACE_SIZE": "8", "JSM_NAMESPACE_LOCAL_RANK": "1",
                          "PMIX_NAMESPACE": "x"}, SAID, {}),
    ("JAX in srun", {**TASK, "JAX_PROCESS_ID": "3", "JAX_NUM_PROCESSES": "8"}, SAID, {}),
    ("batch script", {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"}, NOBODY, {}),
    ("shell of salloc", {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8"}, NOBODY, {}),
    ("shell of salloc that is a step", {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0", "SLURM_STEP_ID": "4294967290",
                                        "SLURM_STEP_NUM_TASKS": "1"}, NOBODY, {}),
    ("RANK in the batch script's shell", {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", **TORCHRUN}, SAID, {"mpi": NOBODY}),
    ("step of one task", {"SLURM_PROCID": "0", "SLURM_STEP_ID": "3", "SLURM_STEP_NUM_TASKS": "1", "SLURM_LOCALID": "0"}, (0, 1, 0),
     {"nsight": NOBODY}),  # The report may know more.
    ("task without its step's variables", {"SLURM_PROCID": "3", "SLURM_NPROCS": "8"}, (3, 8, None), {}),
    ("RANK by the program", {**OUTER, "RANK": "3", "WORLD_SIZE": "8"}, (3, 8, None),
     {"launch": (1, 2, 0), "proc": (1, 2, 0), "mpi": (1, 2, None)}),
    ("RANK alone", {"RANK": "3"}, (3, None, None), {"launch": NOBODY, "proc": NOBODY, "mpi": NOBODY}),
    ("WORLD_SIZE alone", {"WORLD_SIZE": "8", "LOCAL_RANK": "1"}, NOBODY, {}),
    ("size alone", {"OMPI_COMM_WORLD_SIZE": "8", "PMI_SIZE": "8", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_ID": "0"}, NOBODY, {}),
    ("rank without a size", {"PMI_RANK": "3", "MPI_LOCALRANKID": "1"}, (3, None, 1), {"mpi": NOBODY}),
    ("pod of one process", {"RANK": "3", "WORLD_SIZE": "8", "PET_NODE_RANK": "3", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, (3, 8, 0),
     {"proc": NOBODY, "mpi": NOBODY}),
    ("torchrun of a pod", {"RANK": "1", "WORLD_SIZE": "8", "PET_NPROC_PER_NODE": "4"}, NOBODY, {}),
    ("rank of torchrun of a pod", {**TORCHRUN, "PET_NPROC_PER_NODE": "4"}, SAID, {"mpi": NOBODY}),
    ("torchrun's world of one left over", {**OPEN_MPI, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, SAID, {}),
    ("RANK of a world of one left over", {**TASK, "RANK": "0", "WORLD_SIZE": "1"}, SAID, {}),
    ("torchrun of one, each on its node", {**OUTER, **TORCHRUN, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, (0, 1, 0),
     {"mpi": (1, 2, None)}),
    ("rank outside of its world", {"PMI_RANK": "8", "PMI_SIZE": "8", "MPI_LOCALRANKID": "0"}, (8, None, 0),
     {"mpi": NOBODY, "nsight": NOBODY}),
    ("rank outside of its world, another within", {"RANK": "9", "WORLD_SIZE": "4", "LOCAL_RANK": "1", **HYDRA}, SAID, {}),
    ("two outside of their worlds", {**TORCHRUN, "RANK": "8", "PMI_RANK": "9", "PMI_SIZE": "8"}, (8, None, 1), {"mpi": NOBODY, "nsight": NOBODY}),
    ("PMI outside of its world in a step", {**TASK, "PMI_RANK": "8", "PMI_SIZE": "8"}, SAID, {}),
)
NO_NUMBERS = ("", " ", "-1", "+3", "3x", " 3", "3 ", "0x3", "1e1", "3.0", "none", "100000001", "99999999999", "18446744073709551619", "\u0663")


def of_rows():
    """An environment for each name of each row, with what else that row needs."""
    for row in launchers.LAUNCHERS:
        name, rank, sizes, locals_, _, _, _, beside, command = row
        differing = {} if command else {"mpi": NOBODY}
        if row is launchers.LAUNCHERS[-1]:
            differing["proc"] = NOBODY
        for size in sizes.split():
            for local in locals_.split() or [""]:
                environment = {rank: "3", size: "8", **({local: "1"} if local else {})}
                if beside and not set(beside.split()) & set(environment):
                    environment[beside.split()[-1]] = "x"
                if any(used.startswith("SLURM_") for used in environment):
                    environment |= {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0"}
                yield f"{name}: {', '.join(environment)}", environment, (3, 8, 1 if local else None), differing


class RankReadersTest(unittest.TestCase):
    @staticmethod
    def ask(environments):
        """What every reader says of each, by its name."""
        text = "".join("".join(f"{name}={value}\n" for name, value in environment.items()) + "\n" for environment in environments)
        done = subprocess.run([READERS], input=text, capture_output=True, text=True, check=True)
        for environment, part in zip(environments, done.stdout.removesuffix("\n\n").split("\n\n"), strict=True):
            answers = {}
            for line in part.splitlines():
                reader, *numbers = line.split()
                answers[reader] = tuple(None if number == "-" else int(number) for number in numbers)
            yield {**answers, "python": (*launchers.find_rank(environment), None)}

    def check(self, cases):
        cases = list(cases)
        for (name, environment, said, differing), answers in zip(cases, self.ask([case[1] for case in cases]), strict=True):
            self.assertLessEqual({"launch", "proc", "nsight", "process", "python"}, answers.keys())
            for reader, answer in answers.items():
                expected = differing.get(reader, said)
                if reader in HAVE_NO_LOCAL_RANK:
                    expected = (*expected[:2], None)
                self.assertEqual(expected, answer, f"{reader} of {name}: {environment}")

    def test_every_name_of_every_launcher_is_known_to_all(self):
        cases = list(of_rows())
        self.assertGreaterEqual(len(cases), len(launchers.LAUNCHERS))
        self.check(cases)

    def test_of_several_launchers_all_believe_the_same_one(self):
        self.check(MIXTURES)

    def test_what_real_launchers_set_is_the_same_to_all(self):
        """One rank of each, the last of 4 on 2 nodes, of 2 on one host, or 5 of 8 on 4 nodes; mpi says of torchrun what srun says."""
        recorded = (("openmpi-mpirun", (1, 2, 1)), ("openmpi-mpirun-in-slurm", (3, 4, 1)), ("openmpi-mpirun-in-pbs", (5, 8, 1)),
                    ("mpich-hydra", (1, 2, 1)), ("mpich-hydra-in-slurm", (3, 4, 1)), ("mpich-hydra-in-pbs", (5, 8, 1)), ("srun", (3, 4, 1)),
                    ("srun-pmi2", (3, 4, 1)), ("srun-pmix", (3, 4, 1)), ("torchrun-in-srun", (3, 4, 1)))
        cases = [(f"launchers/{name}.txt", said, {"mpi": (1, 2, None)} if name == "torchrun-in-srun" else {}) for name, said in recorded]
        cases += [(f"{scheduler}/env-batch-script.txt", NOBODY, {}) for scheduler in ("slurm", "pbs")]
        texts = [pathlib.Path(data_path("schedulers", *name.split("/"))).read_text(encoding="utf-8") for name, _, _ in cases]
        environments = [dict(line.split("=", 1) for line in reversed(text.splitlines()) if "=" in line) for text in texts]
        self.check((name, environment, said, differing) for (name, said, differing), environment in zip(cases, environments, strict=True))

    def test_ranks_that_are_no_numbers_are_none(self):
        self.check((name, {**environment, rank: text}, NOBODY, {})
                   for text in NO_NUMBERS for rank, (name, environment, _, _) in self.ranks())
        self.check((name, {**environment, rank: text}, (number, *said[1:]), differing) for text, number in (("003", 3), ("0", 0))
                   for rank, (name, environment, said, differing) in self.ranks() if "SLURM_PROCID" not in environment)

    @staticmethod
    def ranks():
        """The first environment of each launcher, and where it has the rank. Another launcher that it holds has the word too."""
        for row in launchers.LAUNCHERS:
            case = next(case for case in of_rows() if case[0].startswith(row[0] + ":"))
            if row[1] == "SLURM_PROCID" or "SLURM_PROCID" not in case[1]:
                yield row[1], case

    def test_sizes_that_are_no_numbers_are_unknown(self):
        for text in NO_NUMBERS:
            self.check((name, {**environment, "PMI_SIZE": text}, (3, None, 1), {"mpi": NOBODY}) for name, environment in (("PMI", HYDRA),))

    def test_ranks_alone_are_prepared_for_dumps(self):
        """The sitecustomize of `lockstep run`, which wants to know only whether there is a rank."""
        chosen = ("torchrun in srun", "JAX in srun", "batch script", "shell of salloc", "RANK alone", "WORLD_SIZE alone")
        jax = {"JAX_PROCESS_ID": "3", "JAX_NUM_PROCESSES": "8"}
        for name, environment, said, _ in (*(case for case in MIXTURES if case[0] in chosen), ("JAX", jax, SAID, {})):
            with tempfile.TemporaryDirectory() as folder:
                kept = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder, "XDG_RUNTIME_DIR": folder}
                done = subprocess.run([BINARY, "run", "--quiet", "--hang-dumps", "--", sys.executable, "-c", "import sys; print('lockstep._hang' in sys.modules)"],
                                      env={**kept, **environment}, capture_output=True, text=True, check=True)
            self.assertEqual(f"{said[0] is not None}\n", done.stdout, f"{name}: {done.stderr}")

    def test_the_document_lists_these_launchers(self):
        text = (SOURCE / "docs/capture.md").read_text(encoding="utf-8")
        table = text.partition("## Which variable is the rank")[2].partition("| order | job |")[0]
        for row in launchers.LAUNCHERS:
            names = [f"`{name}`" for cell in row[1:6] for name in cell.split() if not name.startswith("SLURM_NTASKS_")]
            self.assertTrue(any(all(name in line for name in names) for line in table.splitlines()), f"{row[0]}: {names}")


if __name__ == "__main__":
    unittest.main()
