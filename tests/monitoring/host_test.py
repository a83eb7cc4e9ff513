"""What lockstepd says of ranks' processes, by the real /proc, and of InfiniBand ports and AMD's GPUs, by a fake sysfs."""

import os
import pathlib
import re
import tempfile
import unittest

from monitored import Rank, Watched, parse

PAGES = os.sysconf("SC_PAGESIZE")
JOB = f"host-{os.getpid()}"  # Other tests' ranks are seen here, too.


class HostTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkm-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.fake_sysfs = self.folder / "fake_sysfs"
        self.fake_sysfs.mkdir()

    def write(self, path, text):
        file = self.fake_sysfs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def watch(self, settings=""):
        config = self.folder / "lockstep.toml"
        config.write_text(f'[sensors]\nsysfs = "{self.fake_sysfs}"\n{settings}\n')
        config.chmod(0o644)
        return Watched(self, "--config", config)

    def test_what_each_rank_uses(self):
        daemon = self.watch()
        ranks = [Rank(self, None, rank, job=JOB) for rank in range(2)]
        for rank, process in enumerate(ranks):
            labels = {"job_id": JOB, "rank": str(rank)}
            folder = pathlib.Path(f"/proc/{process.process.pid}")
            for name, now in (
                    ("resident_memory_bytes", lambda: int((folder / "statm").read_text().split()[1]) * PAGES),  # noqa: B023
                    ("threads", lambda: len(list((folder / "task").iterdir()))),  # noqa: B023
                    ("io_written_bytes_total", lambda: int(re.search(r"^write_bytes: (\d+)", (folder / "io").read_text(), re.MULTILINE)[1])),  # noqa: B023
                    ("cpu_seconds_total", lambda: sum(int(word) for word in (folder / "stat").read_text().rsplit(")", 1)[1].split()[11:13])  # noqa: B023
                     / os.sysconf("SC_CLK_TCK"))):
                # The first look may have been at a process that was still to start; it idles since, so that both agree for good.
                daemon.wait_for(lambda: daemon.value(f"lockstep_rank_{name}", **labels) == now(), f"{name} of rank {rank}")  # noqa: B023
        ranks[0].end()
        daemon.wait_for(lambda: daemon.value("lockstep_rank_threads", job_id=JOB, rank="0") is None, "rank 0 gone")
        self.assertEqual(daemon.value("lockstep_rank_threads", job_id=JOB, rank="1"), 1)
        ranks[1].end()
        daemon.wait_for(lambda: f'job_id="{JOB}"' not in daemon.metrics(), "the job gone")

    def test_ports_and_cards(self):
        port = "class/infiniband/mlx5_0/ports/1"
        self.write(f"{port}/state", "4: ACTIVE")
        self.write(f"{port}/rate", "200 Gb/sec (4X HDR)")
        self.write(f"{port}/counters/port_rcv_data", "250")
        self.write(f"{port}/counters/symbol_error", "N/A (no PMA)")
        self.write("class/drm/card0/device/vendor", "0x1002")
        self.write("class/drm/card0/device/gpu_busy_percent", "50")
        daemon = self.watch()
        daemon.wait_for(lambda: daemon.value("lockstep_collector_present", collector="amdgpu") == 1, "the card")
        daemon.wait_for(lambda: daemon.value("lockstep_collector_present", collector="infiniband") == 1, "the port")
        self.assertEqual(daemon.value("lockstep_gpu_utilization_ratio", gpu="card0"), 0.5)
        self.assertEqual(daemon.value("lockstep_gpu_info", gpu="card0", vendor="amd"), 1)
        self.assertEqual(daemon.value("lockstep_ib_port_active", device="mlx5_0", port="1"), 1)
        self.assertEqual(daemon.value("lockstep_ib_port_rate_bytes_per_second", device="mlx5_0"), 25e9)
        self.assertEqual(daemon.value("lockstep_ib_port_receive_bytes_total", device="mlx5_0"), 1000)
        self.assertIsNone(daemon.value("lockstep_ib_port_errors_total"))
        self.assertEqual(daemon.value("lockstep_ib_skipped_files"), 1)
        self.write(f"{port}/counters/port_rcv_data", "500")  # A link that goes down and one that is pulled.
        self.write(f"{port}/state", "1: DOWN")
        daemon.wait_for(lambda: daemon.value("lockstep_ib_port_active") == 0, "the link down")
        self.assertEqual(daemon.value("lockstep_ib_port_receive_bytes_total", device="mlx5_0"), 2000)
        (self.fake_sysfs / "class").rename(self.fake_sysfs / "gone")
        daemon.wait_for(lambda: daemon.value("lockstep_collector_present", collector="infiniband") == 0, "no port")
        self.assertNotIn("lockstep_ib_", daemon.metrics())
        self.assertEqual(daemon.value("lockstep_collector_success", collector="infiniband"), 1)

    def test_the_node_is_looked_at_where_it_is_asked_for(self):
        daemon = self.watch()
        daemon.wait_for(lambda: daemon.value("lockstep_collector_success", collector="infiniband") == 1, "the sensors")
        self.assertEqual({"lockstep_host_pressure_seconds_total"} if pathlib.Path("/proc/pressure/cpu").exists() else set(),
                         {name for name, _ in parse(daemon.metrics()) if name.startswith("lockstep_host_")})
        self.assertEqual(daemon.stop(), 0)
        daemon = self.watch("host = true")
        daemon.wait_for(lambda: daemon.value("lockstep_host_memory_total_bytes") is not None, "the node")
        total = next(line for line in pathlib.Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
        self.assertEqual(daemon.value("lockstep_host_memory_total_bytes"), int(total.split()[1]) * 1024)
        before = daemon.value("lockstep_host_cpu_seconds_total")
        daemon.wait_for(lambda: daemon.value("lockstep_host_cpu_seconds_total") > before + 1, "time passes")
        self.assertIsNone(daemon.value("lockstep_host_network_receive_bytes_total", device="lo"))


if __name__ == "__main__":
    unittest.main()
