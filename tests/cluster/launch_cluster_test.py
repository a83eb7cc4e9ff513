"""`lockstep run --profile nsys` on a real SLURM of four nodes: which ranks are profiled, by whom, into which files, and how jobs
end. nsys itself is a stand-in that records how it was called."""

import sys
import unittest

from slurm_cluster import NODES, SOURCE, Cluster, why_not
from waiting import wait_until

sys.path.append(str(SOURCE / "tests/launch"))
from launch_case import BINARY, STAND_IN_NSYS, LaunchCase  # noqa: E402
from pytorch import python_with_torch  # noqa: E402


class LaunchClusterTest(LaunchCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def on_head(self, *words, **variables):
        done = self.cluster.on("head", *words, cwd=self.folder, env={**self.environment, **variables})
        return done

    def check_nodes(self, manifests, ranks_per_node):
        for rank, entry in manifests.items():
            self.assertEqual(NODES[rank // ranks_per_node], entry["host"], entry)
            self.assertEqual(rank % ranks_per_node, entry["local_rank"], entry)
            self.assertTrue(entry["job"], entry)

    def test_srun(self):
        done = self.on_head("srun", "-K", "-N4", "--ntasks-per-node=2", *self.command("--ranks", "per-node:1"),
                            *self.rank_command("SLURM_PROCID"), KINETO_USE_DAEMON="1")
        self.assertEqual(0, done.returncode, done.stderr)
        manifests = self.check_ranks("srun", 8, {0, 2, 4, 6})
        self.check_nodes(manifests, 2)
        self.assertEqual({(2, rank // 2) for rank in manifests}, {(entry["local_size"], entry["node"]) for entry in manifests.values()})
        self.assertEqual(["1"] * 4, [note["daemon"] for rank, note in sorted(self.notes().items()) if rank not in manifests])

    def test_srun_with_pmix_one_node_and_one_more_rank(self):
        done = self.on_head("srun", "--mpi=pmix", "-K", "-N4", "--ntasks-per-node=2", *self.command("--ranks", "7,host:n002"),
                            *self.rank_command("SLURM_PROCID"))
        self.assertEqual(0, done.returncode, done.stderr)
        self.check_nodes(self.check_ranks("PMIx", 8, {2, 3, 7}), 2)

    def test_mpirun_in_an_allocation(self):
        # SLURM_PROCID is that of mpirun's own daemon in every rank.
        done = self.on_head("salloc", "-Q", "-N4", "--ntasks-per-node=2", "mpirun", "--allow-run-as-root",
                            *self.command("--ranks", "every:3"), *self.rank_command("OMPI_COMM_WORLD_RANK"))
        self.assertEqual(0, done.returncode, done.stderr)
        self.check_nodes(self.check_ranks("Open MPI", 8, {0, 3, 6}), 2)

    def test_torchrun_on_each_node(self):
        torchrun = [python_with_torch(), "-m", "torch.distributed.run", "--nnodes", 4, "--nproc-per-node", 2, "--rdzv-backend", "c10d",
                    "--rdzv-endpoint", "n001:29511", "--rdzv-id", "launch", "--no-python"]
        done = self.on_head("srun", "-K", "-N4", "--ntasks-per-node=1", *torchrun, *self.command("--ranks", "local:1,node:0"),
                            *self.rank_command("RANK"))
        self.assertEqual(0, done.returncode, done.stderr)
        # Which node gets which ranks is the rendezvous' business; SLURM's node is not torchrun's.
        manifests = self.check_ranks("torchrun", 8, {0, 1, 3, 5, 7})
        self.assertEqual(set(NODES), {entry["host"] for entry in manifests.values()})

    def test_scripts_are_accepted_and_run(self):
        python = python_with_torch()
        path = f"{python.rpartition('/')[0]}:/usr/bin:/bin"
        for start, variable in (("torchrun", "RANK"), ("direct", "SLURM_PROCID")):
            with self.subTest(start):
                self.setUp()
                written = self.run_words([BINARY, "script", "slurm", "--nodes", 2, "--gpus-per-node", 2, "--time", "0:05:00", "--queue", "test",
                                          "--account", "nobody", "--profile", "nsys", "--tool", STAND_IN_NSYS, "--ranks", "per-node:1",
                                          "--out", self.out, "--start", start, "--env", f"PATH={path}", "--env",
                                          f"STAND_IN_RECORD={self.folder}/calls", "--", *self.rank_command(variable)])
                self.assertEqual(0, written.returncode, written.stderr)
                script = self.folder / "job.sh"
                script.write_text(written.stdout)
                judged = self.on_head("sbatch", "--test-only", script)
                self.assertEqual(0, judged.returncode, judged.stderr)
                self.assertRegex(judged.stderr, r"to start at .* on nodes n\[001-002\]")
                done = self.on_head("sbatch", "--wait", "--parsable", f"--output={self.folder}/job.out", script)
                output = (self.folder / "job.out").read_text()
                self.assertEqual(0, done.returncode, output)
                manifests = self.check_ranks(start if start == "torchrun" else "srun", 4, {0, 2})
                self.assertEqual({done.stdout.strip()}, {entry["job"] for entry in manifests.values()})
                for entry in manifests.values():
                    self.assertIn(entry["files"][0], output)

    def test_a_rank_that_fails_ends_the_step(self):
        for failing in (0, 1):
            with self.subTest(failing):
                done = self.on_head("srun", "-N2", "--ntasks-per-node=1", *self.command("--ranks", "0", "--force"),
                                    *self.rank_command("SLURM_PROCID"), **{f"FAILS{failing}": "9"})
                self.assertEqual(9, done.returncode, done.stderr)

    def test_a_signal_to_the_step_leaves_reports(self):
        script = f"trap 'sleep 1; exit 0' TERM; touch {self.folder}/up.$SLURM_PROCID; while :; do sleep 0.05; done"
        words = " ".join(f"'{word}'" for word in self.command("--ranks", "local:0") + ["sh", "-c", script.replace("'", "'\\''")])
        job = self.cluster.submit(f"export STAND_IN_RECORD={self.folder}/calls\nsrun {words}", "--nodes=4", "--ntasks-per-node=1")
        wait_until(lambda: len(list(self.folder.glob("up.*"))) == 4, "four ranks run", failed=lambda: self.cluster.job_state(job) == "GONE" and self.cluster.job_output(job))
        self.cluster.run("head", "scancel", "--signal=TERM", f"{job}.0")
        wait_until(lambda: self.cluster.job_state(job) in ("COMPLETED", "GONE"), "the job ends")
        wait_until(lambda: len(list(self.out.glob("*.nsys-rep"))) >= 4, "four reports")
        manifests = self.manifests()
        self.assertEqual({0, 1, 2, 3}, set(manifests))
        self.assertEqual({(0, 1)}, {(entry["exit_code"], len(entry["files"])) for entry in manifests.values()}, self.cluster.job_output(job))


if __name__ == "__main__":
    unittest.main()
