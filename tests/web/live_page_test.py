"""The live page in Chromium: of a real job that is captured from it, of 256 ranks, and of a fake server that can be told to change."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / "support"), str(TESTS / "monitoring")]
import web_packages  # noqa: E402
from monitored import Watched  # noqa: E402
from fake_nodes import ENGINE_JOB, FakeNodes  # noqa: E402
from live_site import LiveSite  # noqa: E402
from pytorch import python_with_torch  # noqa: E402

SLOW = 1
JOB = f"page-{os.getpid()}"  # Other tests' ranks are seen here, too.


class LivePage(unittest.TestCase):
    def setUp(self):
        web_packages.browser()
        web_packages.packages()

    def look(self, address, **what):
        pictures = os.environ.get("LOCKSTEP_PICTURES")
        if pictures:
            what["pictures"] = os.path.join(pictures, self._testMethodName)
            os.makedirs(what["pictures"], exist_ok=True)
        print(web_packages.run_node("live_page.mjs", address, json.dumps(what)))

    def start_training(self, folder, kineto_folder, ranks):
        """Ranks under torchrun that record, can be captured, and of which one is slow."""
        python = python_with_torch()
        (folder / "plan.json").write_text(json.dumps({"slow": SLOW}))
        (folder / "kineto.conf").write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KINETO", "SLURM", "PBS"))}
        environment.update(
            LOCKSTEP_TRACE=str(folder / "spans"), KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR=str(kineto_folder), KINETO_CONFIG=str(folder / "kineto.conf"),
            KINETO_LOG_LEVEL="5", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore", PYTHONPATH=os.path.join(web_packages.BUILD, "python"))
        with open(folder / "job.log", "w", encoding="utf-8") as log:
            launcher = subprocess.Popen(
                [python, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(ranks), "--rdzv-id", JOB, "--rdzv-backend", "c10d",
                 "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", TESTS / "monitoring/watched_training.py", folder / "plan.json"],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.terminate)  # torchrun ends its ranks.

    def test_a_real_job_is_watched_and_captured(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkw-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        kineto_folder = folder / "k"
        kineto_folder.mkdir()
        daemon = Watched(self, "--kineto-dir", kineto_folder)
        # Where Kineto looks: the daemon's own name keeps it apart from others on this machine.
        (kineto_folder / "dynolog").symlink_to(daemon.kineto_name)
        self.start_training(folder, kineto_folder, 3)
        daemon.wait_for_steps(JOB, 3, 30)
        site = LiveSite(self, "--socket", daemon.path, "--job", JOB, "-o", folder)
        self.look(site.address, ranks=3, slow=str(SLOW), node_count=1, captures=True, themes=["dark"])
        self.assertTrue(list(folder.glob("**/*.pt.trace.json*")) or list(folder.glob("**/*.json*")), "traces are kept")

    def test_256_ranks(self):
        nodes = FakeNodes(self, 4, 64, slow=77)
        site = LiveSite(self, "--host", ",".join(nodes.hosts))
        engine = {
            "job": ENGINE_JOB, "host": "fake-0", "titles": ["GPU", "Model", "SMs busy", "Memory", "of"],
            "row": {"Model": "llama", "Engine": "vllm", "Running": "7", "Waiting": "3", "KV cache": "63 %", "Preemptions": "12", "Between P50": "20.0 ms",
                    "Between P95": "50.0 ms", "Between P99": "80.0 ms", "P50": "–", "P99": "–", "Failed": "–"},
            "says": {"between": "Now P50 20.0 ms, P95 50.0 ms, P99 80.0 ms.", "queue": "Now 7 running and 3 waiting.",
                     "cache": "Now 63 %. Requests put back because the cache was full, since the engine was started: 12, none lately."},
            "instances": [["0", "Fake H100", "50 %", "–", "80.0 GiB"], ["1", "Fake H100", "–", "–", "80.0 GiB"],
                          ["1 / 9", "MIG 1g.10gb", "25 %", "1.00 GiB", "10.0 GiB"], ["1 / 10", "MIG 1g.10gb", "–", "2.00 GiB", "10.0 GiB"]]}
        self.look(site.address, ranks=256, slow="77", node_count=4, themes=["light"], is_quick=True, engine=engine)

    def test_a_job_that_changes_and_a_server_that_goes_away(self):
        server = subprocess.Popen([web_packages.need("node"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_live_server.mjs"),
                                   os.path.join(web_packages.WEB, "dist", "live.html"), "32", "4", "300"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.look(server.stdout.readline().strip(), ranks=32, slow="5", node_count=5, captures=True, fake=True)


if __name__ == "__main__":
    unittest.main()
