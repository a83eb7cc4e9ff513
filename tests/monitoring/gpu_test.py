"""GPUs by lockstepd, from a stand-in for NVIDIA's library: values, MIG, events, what hangs, what goes, what is old."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from monitored import DAEMON, Watched, parse
from waiting import PATIENCE_S, wait_until

FAKE = DAEMON.with_name("libfake_nvml.so")
FAKE_OLD = DAEMON.with_name("libfake_nvml_old.so")
GIB = 1 << 30
HARDWARE_XIDS = {"48", "62", "63", "64", "74", "79", "92", "94", "95", "119", "120", "140", "143"}
PTRACE_SEIZE = 0x4206


def helpers_of(daemon):
    """Pids of the daemon's children, zombies included."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            if int(text.rsplit(")", 1)[1].split()[1]) == daemon.process.pid:
                found.append(int(folder.name))
    return found


class GpuTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkm-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.scenario = self.folder / "scenario"
        self.say()

    def say(self, *lines):
        # At once, as the library reads it at any time.
        new = self.folder / "scenario.new"
        new.write_text("\n".join(lines) + "\n")
        new.rename(self.scenario)

    def watch(self, library=FAKE, settings=""):
        config = self.folder / "lockstep.toml"
        config.write_text(f'[sensors]\nnvml_library = "{library}"\n{settings}\n')
        config.chmod(0o644)
        return Watched(self, "--config", config, environment={"FAKE_NVML_SCENARIO": str(self.scenario)})

    def read(self, daemon, gpus=8):
        daemon.wait_for(lambda: daemon.value("lockstep_gpus_visible") == gpus, f"{gpus} GPUs")

    def check(self, daemon, expected):
        for (name, *labels), value in expected.items():
            self.assertEqual(daemon.value(name, **dict(labels)), value, (name, labels))

    def test_values(self):
        self.say("mig 2", "ecc 4 7 1", "rows 5 3 2 1 0", "rows 6 0 0 0 1")
        daemon = self.watch()
        self.read(daemon)
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_sm_active_ratio", gpu="0") is not None, "two samples")
        g3 = ("gpu", "3")
        self.check(daemon, {
            ("lockstep_gpus_expected",): 8,
            ("lockstep_gpu_unresponsive",): 0,
            ("lockstep_gpu_info", g3, ("uuid", "GPU-fake-3"), ("model", "Fake H100 80GB"), ("vendor", "nvidia"),
             ("driver_version", "999.1-fake"), ("pci_bus_id", "00000000:03:00.0")): 1,
            ("lockstep_gpu_utilization_ratio", g3): 0.35,
            ("lockstep_gpu_memory_used_bytes", g3): 4 * GIB,
            ("lockstep_gpu_memory_total_bytes", g3): 80 * GIB,
            ("lockstep_gpu_memory_reserved_bytes", g3): GIB / 2,
            ("lockstep_gpu_temperature_celsius", g3, ("sensor", "gpu")): 43,
            ("lockstep_gpu_temperature_celsius", g3, ("sensor", "memory")): 53,
            ("lockstep_gpu_energy_joules_total", g3): 4 * 1234.5,
            ("lockstep_gpu_power_limit_watts", g3): 700.5,
            ("lockstep_gpu_clock_hertz", g3, ("domain", "graphics")): 1980e6,
            ("lockstep_gpu_clock_hertz", g3, ("domain", "sm")): 1965e6,
            ("lockstep_gpu_clock_hertz", g3, ("domain", "memory")): 2619e6,
            ("lockstep_gpu_clock_hertz", g3, ("domain", "video")): 1545e6,
            ("lockstep_gpu_throttle_seconds_total", g3, ("reason", "power")): 4 * 0.5,
            ("lockstep_gpu_throttle_seconds_total", g3, ("reason", "thermal")): 4 * 1.0,
            ("lockstep_gpu_throttle_seconds_total", g3, ("reason", "sync_boost")): 4 * 1.5,
            ("lockstep_gpu_throttle_seconds_total", g3, ("reason", "board")): 4 * 2.0,
            ("lockstep_gpu_throttle_seconds_total", g3, ("reason", "hw_thermal")): 0,
            ("lockstep_gpu_throttle_seconds_total", g3, ("reason", "hw_power_brake")): 0,
            ("lockstep_gpu_ecc_errors_total", ("gpu", "4"), ("error", "corrected")): 7,
            ("lockstep_gpu_ecc_errors_total", ("gpu", "4"), ("error", "uncorrected")): 1,
            ("lockstep_gpu_ecc_errors_total", g3, ("error", "uncorrected")): 0,
            ("lockstep_gpu_remapped_rows_total", ("gpu", "5"), ("error", "corrected")): 3,
            ("lockstep_gpu_remapped_rows_total", ("gpu", "5"), ("error", "uncorrected")): 2,
            ("lockstep_gpu_row_remap_pending", ("gpu", "5")): 1,
            ("lockstep_gpu_row_remap_failure", ("gpu", "5")): 0,
            ("lockstep_gpu_row_remap_failure", ("gpu", "6")): 1,
            ("lockstep_gpu_pcie_replays_total", g3): 3,
            ("lockstep_gpu_pcie_transmit_bytes_total", g3): 12e6,
            ("lockstep_gpu_pcie_receive_bytes_total", g3): 16e6,
            ("lockstep_gpu_nvlink_transmit_bytes_total", g3): 4000 * 1024,
            ("lockstep_gpu_nvlink_receive_bytes_total", g3): 8000 * 1024,
            ("lockstep_gpu_nvlink_errors_total", ("gpu", "1"), ("error", "replay")): sum(range(18)),
            ("lockstep_gpu_nvlink_errors_total", g3, ("error", "recovery")): 0,
            ("lockstep_gpu_nvlink_errors_total", g3, ("error", "crc")): None,
            ("lockstep_gpu_sm_active_ratio", g3): 0.53,
            ("lockstep_gpu_tensor_active_ratio", g3): 0.255,
            ("lockstep_gpu_dram_active_ratio", g3): 0.1225,
            ("lockstep_gpu_dram_active_ratio", ("gpu", "6")): None,  # refused for this one alone
            ("lockstep_collector_present", ("collector", "nvml")): 1,
            ("lockstep_collector_success", ("collector", "nvml")): 1,
        })
        # A GPU that MIG divides: its instances have memory and GPM, the whole has no utilisation.
        self.check(daemon, {
            ("lockstep_gpu_utilization_ratio", ("gpu", "2")): None,
            ("lockstep_gpu_info", ("gpu", "2"), ("gi", "1"), ("uuid", "MIG-fake-2-1"), ("mig_profile", "1g.10gb")): 1,
            ("lockstep_gpu_info", ("gpu", "2"), ("gi", "2"), ("mig_profile", "2g.20gb")): 1,
            ("lockstep_gpu_memory_used_bytes", ("gpu", "2"), ("gi", "1")): GIB,
            ("lockstep_gpu_memory_total_bytes", ("gpu", "2"), ("gi", "2")): 20 * GIB,
            ("lockstep_gpu_sm_active_ratio", ("gpu", "2"), ("gi", "1")): 0.62,
            ("lockstep_gpu_sm_active_ratio", ("gpu", "2"), ("gi", "2")): 0.72,
            ("lockstep_gpu_sm_active_ratio", ("gpu", "2")): 0.62 + 0.72,
        })
        of_gpus = [name for name, _ in parse(daemon.metrics()) if name.startswith("lockstep_gpu")]
        self.assertLess(len(of_gpus), 8 * 60)
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=daemon.metrics(), capture_output=True, text=True,
                                     timeout=PATIENCE_S, check=False)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_events_and_throttling_are_counted(self):
        self.say("xid 0 79 5")  # before anybody asked
        daemon = self.watch()
        self.read(daemon)
        codes = {dict(labels)["xid"] for name, labels in parse(daemon.metrics()) if name == "lockstep_gpu_xid_events_total"}
        self.assertEqual(codes, HARDWARE_XIDS)
        self.assertEqual(daemon.value("lockstep_gpu_xid_events_total"), 0)
        self.say("xid 0 79 6", "xid 3 31 2", "reasons 1 192")  # hw_thermal and hw_power_brake
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_xid_events_total", gpu="3", xid="31") == 2, "Xid 31")
        self.assertEqual(daemon.value("lockstep_gpu_xid_events_total", gpu="0", xid="79"), 1)
        self.say("xid 0 79 6", "xid 3 31 300", "reasons 1 192")  # more than are taken at a time
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_xid_events_total", gpu="3", xid="31") == 300, "all of them")
        for reason in ("hw_thermal", "hw_power_brake"):
            held = daemon.value("lockstep_gpu_throttle_seconds_total", gpu="1", reason=reason)
            self.assertGreater(held, 0.5)
            self.assertEqual(daemon.value("lockstep_gpu_throttle_seconds_total", gpu="0", reason=reason), 0)
        self.assertEqual(daemon.value("lockstep_gpu_xid_events_total"), 301)

    def test_a_gpu_that_vanishes(self):
        daemon = self.watch()
        self.read(daemon)
        self.say("lost 5", "xid 5 79 1")
        daemon.wait_for(lambda: daemon.value("lockstep_gpus_visible") == 7, "seven GPUs")
        names = {name for name, labels in parse(daemon.metrics()) if ("gpu", "5") in labels}
        self.assertEqual(names, {"lockstep_gpu_xid_events_total"})  # and this says why
        self.assertEqual(daemon.value("lockstep_gpu_xid_events_total", gpu="5", xid="79"), 1)
        self.assertEqual(daemon.value("lockstep_gpus_expected"), 8)
        self.assertEqual(daemon.value("lockstep_gpu_temperature_celsius", gpu="4", sensor="gpu"), 44)
        self.say()
        self.read(daemon)
        self.assertEqual(daemon.value("lockstep_gpu_temperature_celsius", gpu="5", sensor="gpu"), 45)

    def test_gpus_that_the_daemon_may_not_see_are_not_missing(self):
        self.say("forbid 0", "forbid 6")
        daemon = self.watch()
        self.read(daemon, 6)
        self.check(daemon, {
            ("lockstep_gpus_expected",): 6,
            ("lockstep_gpu_info", ("gpu", "0")): None,
            ("lockstep_gpu_temperature_celsius", ("gpu", "7"), ("sensor", "gpu")): 47,
            ("lockstep_collector_success", ("collector", "nvml")): 1,
        })

    def test_what_a_gpu_refuses_is_absent(self):
        self.say("refuse 0 nvmlDeviceGetTemperature", "refuse 0 nvmlDeviceGetFieldValues", "refuse 0 nvmlDeviceGetViolationStatus",
                 "refuse 0 nvmlGpmQueryDeviceSupport", "refuse 0 nvmlDeviceGetMemoryInfo_v2", "reasons 0 4", "gpus 1")
        daemon = self.watch(settings="gpus_expected = 2")
        self.read(daemon, 1)
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_throttle_seconds_total", reason="power") > 0.5, "counted here")
        self.check(daemon, {
            ("lockstep_gpus_expected",): 2,
            ("lockstep_gpu_temperature_celsius",): None,
            ("lockstep_gpu_nvlink_receive_bytes_total",): None,
            ("lockstep_gpu_sm_active_ratio",): None,
            ("lockstep_gpu_memory_reserved_bytes",): None,
            ("lockstep_gpu_memory_used_bytes",): GIB,  # by the older call
            ("lockstep_gpu_throttle_seconds_total", ("reason", "board")): None,
            ("lockstep_gpu_throttle_seconds_total", ("reason", "thermal")): 0,
        })

    def test_an_old_driver(self):
        self.say("gpus 2", "reasons 1 16")
        daemon = self.watch(FAKE_OLD)
        self.read(daemon, 2)
        self.say("gpus 2", "reasons 1 16", "xid 1 48 1")
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_xid_events_total", gpu="1", xid="48") == 1, "Xid 48")
        self.check(daemon, {
            ("lockstep_gpu_info", ("gpu", "1"), ("pci_bus_id", "0000:01:00.0")): 1,
            ("lockstep_gpu_memory_used_bytes", ("gpu", "1")): 2 * GIB,
            ("lockstep_gpu_memory_reserved_bytes",): None,
            ("lockstep_gpu_energy_joules_total",): None,
            ("lockstep_gpu_remapped_rows_total",): None,
            ("lockstep_gpu_temperature_celsius", ("gpu", "1"), ("sensor", "gpu")): 41,
            ("lockstep_gpu_throttle_seconds_total", ("gpu", "0"), ("reason", "sync_boost")): 0,
        })
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_throttle_seconds_total", gpu="1", reason="sync_boost") > 0, "its time")

    def test_a_call_that_hangs_holds_up_nothing_and_nobody(self):
        daemon = self.watch(settings="gpu_retry_seconds = 8")
        self.read(daemon)
        first = helpers_of(daemon)
        self.assertEqual(len(first), 1)
        self.say("hang 3")
        hangs = self.folder / "scenario.hangs"
        answers_s = []
        seen = set(first)

        # While the call hangs, and when its process is killed and replaced.
        def is_said():
            began = time.monotonic()
            if daemon.value("lockstep_gpu_unresponsive", gpu="3") == 1:
                return True
            if hangs.exists():
                answers_s.append(time.monotonic() - began)
            seen.update(helpers_of(daemon))
            return False
        wait_until(is_said, "GPU 3 to be called unresponsive", every_s=0)
        # Of a daemon that waits for its driver the first would be the last, and none at once. A busy machine makes some of them late, not all.
        self.assertGreater(len(answers_s), 3)
        self.assertLess(min(answers_s), 0.1, answers_s)
        self.assertLessEqual(len(seen), 2)
        self.assertEqual(daemon.value("lockstep_gpu_unresponsive"), 1)
        # The others are read on, by a process that does not ask for this one.
        self.read(daemon)
        self.assertEqual(daemon.value("lockstep_gpu_temperature_celsius", gpu="4", sensor="gpu"), 44)
        self.assertIsNone(daemon.value("lockstep_gpu_temperature_celsius", gpu="3"))
        self.assertEqual(daemon.value("lockstep_gpu_unresponsive", gpu="3"), 1)
        self.assertEqual(daemon.value("lockstep_collector_success", collector="nvml"), 0)
        self.assertNotEqual(helpers_of(daemon), first)
        # It comes back without anybody's doing.
        self.say()
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_unresponsive", gpu="3") == 0, "GPU 3 again")
        self.assertEqual(daemon.value("lockstep_gpu_temperature_celsius", gpu="3", sensor="gpu"), 43)
        self.assertEqual(daemon.value("lockstep_collector_success", collector="nvml"), 1)

    def test_a_driver_that_hangs_is_left_alone(self):
        self.say("hang init")
        daemon = self.watch(settings="gpu_retry_seconds = 300")
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_unresponsive", gpu="driver") == 1, "said so")
        daemon.wait_for(lambda: not helpers_of(daemon), "the end of the killed helper")
        until = time.monotonic() + 3
        while time.monotonic() < until:
            self.assertEqual(helpers_of(daemon), [])
            time.sleep(0.05)
        self.assertIsNone(daemon.value("lockstep_gpus_visible"))
        self.assertEqual(daemon.value("lockstep_collector_success", collector="nvml"), 0)

    def test_processes_that_cannot_be_killed_do_not_pile_up(self):
        """A zombie that another process traces stays, as one does that sleeps where no signal reaches it."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self.say("hang driver")
        daemon = self.watch(settings="gpu_retry_seconds = 1")
        held = set()

        def are_held():
            for pid in set(helpers_of(daemon)) - held:
                if libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0:
                    held.add(pid)
                elif ctypes.get_errno() == 1:
                    self.skipTest("ptrace is refused: it needs CAP_SYS_PTRACE, or kernel.yama.ptrace_scope = 0 or 1")
            return len(held) >= 2
        wait_until(are_held, "two helpers that hang")
        until = time.monotonic() + 9  # A third would have been started and have hung by then.
        while time.monotonic() < until:
            self.assertEqual(set(helpers_of(daemon)), held)
            time.sleep(0.05)
        self.assertEqual(daemon.value("lockstep_gpu_unresponsive", gpu="driver"), 1)
        self.say()
        for pid in held:  # Now they end.
            os.waitpid(pid, 0x40000000)  # __WALL: traced processes, too
        self.read(daemon)
        daemon.wait_for(lambda: len(helpers_of(daemon)) == 1, "the end of both")

    def test_the_daemon_ends_while_a_call_hangs(self):
        for _ in range(5):
            self.say("hang 0")
            daemon = self.watch()
            daemon.wait_for((self.folder / "scenario.hangs").exists, "the call that hangs")
            helpers = helpers_of(daemon)
            self.assertEqual(len(helpers), 1)
            self.assertEqual(daemon.stop(signal.SIGTERM), 0)
            said = "".join(daemon.process.stderr.readlines())
            self.wait_for_end(helpers[0])
            if "has stopped" in said:  # by itself, not by its own watchdog, which gives it a second
                return
            print("a machine so busy that its watchdog was first: once more", flush=True)
            (self.folder / "scenario.hangs").unlink()
        self.fail(said)

    def wait_for_end(self, helper):
        """Of a helper that outlived its daemon: whoever takes orphans reaps it."""
        wait_until(lambda: not pathlib.Path(f"/proc/{helper}").exists(), "the helper's end")

    def test_the_helper_goes_with_a_daemon_that_is_killed(self):
        daemon = self.watch()
        self.read(daemon)
        (helper,) = helpers_of(daemon)
        daemon.process.kill()
        daemon.process.wait()
        self.wait_for_end(helper)

    def test_a_helper_that_dies_is_reported(self):
        self.say("crash 2")
        daemon = self.watch()
        daemon.wait_for(lambda: daemon.value("lockstep_collector_success", collector="nvml") == 0, "failure")
        self.assertIn("the GPU helper died while it read GPU 2", daemon.wait_for_line("sensor nvml"))
        self.assertIsNone(daemon.value("lockstep_gpus_visible"))
        daemon.wait_for(lambda: not helpers_of(daemon), "the end of the helper")

    def test_no_driver(self):
        daemon = self.watch(self.folder / "libnothing.so")
        daemon.wait_for(lambda: daemon.value("lockstep_collector_present", collector="nvml") == 0, "absent")
        self.assertEqual(daemon.value("lockstep_collector_success", collector="nvml"), 1)
        self.assertNotIn("lockstep_gpu", daemon.metrics())
        daemon.wait_for(lambda: not helpers_of(daemon), "the end of the helper")

    def test_no_driver_where_gpus_should_be(self):
        daemon = self.watch(self.folder / "libnothing.so", settings="gpus_expected = 8")
        self.read(daemon, gpus=0)
        self.assertEqual(daemon.value("lockstep_gpus_expected"), 8)

    def test_a_driver_that_was_changed_under_its_library(self):
        self.say("init 18")
        daemon = self.watch(settings="gpus_expected = 8")
        self.assertIn("Driver/library version mismatch", daemon.wait_for_line("sensor nvml"))
        self.assertEqual(daemon.value("lockstep_collector_present", collector="nvml"), 1)
        self.assertEqual(daemon.value("lockstep_collector_success", collector="nvml"), 0)
        self.assertEqual(daemon.value("lockstep_gpus_visible"), 0)
        self.assertEqual(daemon.value("lockstep_gpus_expected"), 8)

    def test_switched_off(self):
        daemon = self.watch(settings="gpu = false")
        daemon.wait_for(lambda: daemon.value("lockstep_collector_success", collector="spans") == 1, "the others")
        self.assertIsNone(daemon.value("lockstep_collector_present", collector="nvml"))


if __name__ == "__main__":
    unittest.main()
