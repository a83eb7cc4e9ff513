"""`lockstep stages --job` and `lockstep watch --stages` on a real SLURM: eight ranks on two nodes, one of them slow in forward, asked from the
login node over TLS. What is told was how old, is printed.
"""

import json
import subprocess
import time
import unittest

from pytorch import python_with_torch
from slurm_cluster import LOCKSTEP, SOURCE, Cluster, why_not
from waiting import PATIENCE_S, wait_until

TWO_NODES = ["n001", "n002"]
RANKS_A_NODE = 4
SLOW_RANK = 5  # On the second node.
LAUNCH = ("srun --nodes=2 --ntasks=2 {lockstep} run --stages={folder} --interval 1s -- {python} -m torch.distributed.run --nnodes=2"
          " --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT --rdzv-id=$SLURM_JOB_ID {program}")


class StagesClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        python = python_with_torch()
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        for node in TWO_NODES:
            cls.cluster.start_daemon(node)
        launch = LAUNCH.format(lockstep=LOCKSTEP, folder=cls.cluster.folder / "stages", python=python,
                               program=f"{SOURCE}/tests/stages/faulty_training.py 100000 forward:{SLOW_RANK}:60:every")
        cls.job = cls.cluster.submit(
            "export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 PYTHONWARNINGS=ignore\n"
            f"export MASTER_ADDR=$(hostname) MASTER_PORT=29500\n{launch}", "--nodes=2", "--ntasks-per-node=1")

    def stages(self):
        """What is told of all ranks; None before all of them have 30 steps."""
        done = self.cluster.on("head", LOCKSTEP, "stages", "--json", "--job", self.job, *self.cluster.over_tls())
        if done.returncode != 0:
            return None
        data = json.loads(done.stdout)["data"]
        return data if len(data["ranks"]) == 2 * RANKS_A_NODE and data["step_count"] >= 30 else None

    def told(self):
        return wait_until(self.stages, "30 steps of eight ranks",
                          failed=lambda: self.cluster.job_state(self.job) not in ("PENDING", "CONFIGURING", "RUNNING")
                          and self.cluster.job_output(self.job))

    def test_1_the_slow_rank_of_the_other_node_is_named(self):
        data = self.told()
        self.assertEqual({node: RANKS_A_NODE for node in TWO_NODES},
                         {node: sum(rank["host"] == node for rank in data["ranks"]) for node in TWO_NODES})
        verdict = data["verdict"]
        self.assertEqual(("straggler", SLOW_RANK, "forward"), (verdict["answer"], verdict["rank"], verdict["stage"]), verdict)
        self.assertEqual(data["total_ns"], sum(stage["frontier_ns"] for stage in data["stages"]))
        for _ in range(10):
            begin_s = time.monotonic()
            newest = self.told()["steps"][-1]["step"]
            print(f"asked and answered in {time.monotonic() - begin_s:.2f} s, up to step {newest}")

    def test_2_it_is_traced_beside_a_peer(self):
        self.told()
        kept = self.cluster.folder / "kept"
        watch = subprocess.Popen(
            self.cluster.command("head", LOCKSTEP, "watch", "--stages", "--stages-every", "1s", "--json", "--job", self.job, "--keep", kept,
                                 *self.cluster.over_tls()),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait, PATIENCE_S)
        self.addCleanup(watch.kill)
        events = []
        for line in watch.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "stages_evidence":
                break
        evidence = events[-1]
        self.assertEqual("stages_evidence", evidence["event"], events)
        self.assertEqual((SLOW_RANK, SLOW_RANK), (evidence["stages_rank"], evidence["trace_rank"]), evidence)
        self.assertEqual(2, len(list(kept.glob("*/*.json.gz"))))


if __name__ == "__main__":
    unittest.main()
