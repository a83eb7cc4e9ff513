"""`lockstep-mpi` on a real SLURM of four nodes: traces that lie on single nodes and traces that all share, read once
each; the answer is that of `lockstep` over all of them on one host."""

import json
import os
import shutil
import subprocess
import unittest

from slurm_cluster import BINARIES, LOCKSTEP, NODES, Cluster, why_not

PROGRAM = BINARIES / "lockstep-mpi"
GENERATOR = BINARIES / "lockstep_trace_gen"
SRUN = ["srun", "--mpi=pmix", "-K", "-N4"]
PARTIAL = 4
# docs/scale.md: on a busy machine Open MPI 4.1 and SLURM 22.05 end MPI_Init by a signal now and then.
RING = dict(os.environ, SLURM_PMIX_FENCE="ring")


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), f"{PROGRAM} is not there: it is built where MPI is found")
class MpiClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        made = cls.cluster.folder / "made"
        subprocess.run([GENERATOR, "--out", made, "--ranks", "18", "--steps", "3", "--layers", "3", "--tensor-parallel", "2",
                        "--offset-us", ",".join(["0,900,-400"] * 6), "--straggler", "7:3000:loader"],
                       check=True, capture_output=True)
        (made / "rank9.json").write_bytes((made / "rank9.json").read_bytes()[:200_000])
        # Four ranks on each node's own disk, two where all see them; on the head's own disk the sixteen, for one process.
        cls.shared = cls.cluster.folder / "shared"
        cls.shared.mkdir()
        for path in made.glob("rank*.json"):
            rank = int(path.stem.removeprefix("rank"))
            if rank >= 16:
                shutil.copy2(path, cls.shared)
                continue
            for host in (NODES[rank // 4], "head"):
                folder = cls.cluster.slurm / "nodes" / host / "local/traces"
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, folder)
        cls.local = cls.cluster.slurm / "local/traces"

    def srun(self, *words, **options):
        return self.cluster.on("head", *SRUN, *words, env=RING, **options)

    def test_traces_of_single_nodes_and_shared_ones_are_read_once(self):
        for arguments in (("analyze", "--json"), ("analyze", "--section", "all")):
            expected = self.cluster.on("head", LOCKSTEP, *arguments, self.local, self.shared)
            self.assertEqual(PARTIAL, expected.returncode, expected.stderr)
            for tasks in (1, 2):
                with self.subTest(arguments=arguments, tasks_per_node=tasks):
                    done = self.srun(f"--ntasks-per-node={tasks}", PROGRAM, *arguments, self.local, self.shared)
                    self.assertEqual(expected.stdout, done.stdout, done.stderr)
                    self.assertEqual(PARTIAL, done.returncode, done.stderr)

    def test_mpirun_in_an_allocation_prints_the_same(self):
        expected = self.cluster.on("head", LOCKSTEP, "analyze", "--json", self.local, self.shared)
        done = self.cluster.on("head", "salloc", "-Q", "-N4", "--ntasks-per-node=1", "mpirun", "--allow-run-as-root",
                               PROGRAM, "analyze", "--json", self.local, self.shared)
        self.assertEqual(expected.stdout, done.stdout, done.stderr)

    def test_collectives_between_nodes_are_measured(self):
        words = ["bench", "collectives", "all_reduce", "all_gather", "send_recv", "--sizes", "8,64K", "--iterations", "5", "--pairs", "--json"]
        measured = self.srun(LOCKSTEP, *words)
        self.assertEqual(0, measured.returncode, measured.stderr)
        allocated = self.cluster.on("head", "salloc", "-Q", "-N4", "--ntasks-per-node=1", LOCKSTEP, *words, "-n", "4",
                                    "--launcher", "mpirun --allow-run-as-root")
        self.assertEqual(0, allocated.returncode, allocated.stderr)
        for done in (measured, allocated):
            data = json.loads(done.stdout)["data"]
            self.assertEqual(4, len({rank["host"] for rank in data["ranks"]}))
            self.assertEqual([0] * 6, [row["out_of_place"]["wrong_count"] for row in data["rows"]])
            self.assertEqual({False}, {pair["same_host"] for pair in data["pairs"]})
            self.assertTrue(all(pair["bytes_per_s"] > 0 < pair["back_bytes_per_s"] for pair in data["pairs"]))

    def test_a_path_that_no_node_has_is_an_error(self):
        done = self.srun(PROGRAM, "analyze", "/no/such/traces")
        self.assertEqual(1, done.returncode)
        self.assertEqual("", done.stdout)
        self.assertIn("no such file or folder", done.stderr)

    def test_a_process_that_dies_ends_all(self):
        done = self.srun("sh", "-c", '[ $SLURM_PROCID = 2 ] && kill -KILL $$; exec "$0" "$@"', PROGRAM, "analyze",
                         "--deadline", "60", self.local)
        self.assertNotEqual(0, done.returncode)
        self.assertEqual("", done.stdout)


if __name__ == "__main__":
    unittest.main()
