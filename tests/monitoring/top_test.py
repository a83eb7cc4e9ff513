"""`lockstep top --once` and its JSON against real daemons and real ranks: what is slow, what is absent, who does not answer."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

from monitored import DAEMON, Rank, Watched, parse
from waiting import PATIENCE_S, wait_until

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
BINARY = os.environ["LOCKSTEP_BINARY"]
SCHEMA = json.loads((SOURCE / "docs/schema/top-1.schema.json").read_text(encoding="utf-8"))
DONE, FAILED, MISUSED, PARTIAL = 0, 1, 2, 4
# Where nothing listens.
DEAD = "127.0.0.1:1"


def top(*words, **environment):
    words = [*map(str, words)]
    if not {"--timeout", "--host"} & set(words):
        words += ["--timeout", "60s"]  # Of a node that is there, however busy.
    clean = {name: value for name, value in os.environ.items() if name not in ("LOCKSTEP_SOCKET", "http_proxy", "NO_COLOR")}
    return subprocess.run([BINARY, "top", *map(str, words)], capture_output=True, text=True, encoding="utf-8",
                          env={**clean, **environment}, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)


class Job:
    """Ranks in steps of one length, each as (forward, backward, all_reduce, other) ms, until the test's end."""

    def __init__(self, test, name, steps, world_size=None):
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        test.addCleanup(scratch.cleanup)
        self.name = f"{name}-{os.getpid()}"
        self.ranks = [Rank(test, pathlib.Path(scratch.name), rank, world_size=world_size or len(steps), job=self.name)
                      for rank in range(len(steps))]
        self.stops = threading.Event()
        self.longest_s = [0.0 for _ in steps]  # From the end of a step to that of the next, by rank, as its client saw it.
        self.threads = [threading.Thread(target=self.run, args=(i, step)) for i, step in enumerate(steps)]
        test.addCleanup(self.end)
        for thread in self.threads:
            thread.start()

    def run(self, i, step):
        ended = None
        while not self.stops.is_set():
            self.ranks[i].do("step", *step)
            before, ended = ended, time.monotonic()
            if before:
                self.longest_s[i] = max(self.longest_s[i], ended - before)
            self.ranks[i].do("count", "tokens", 1000)

    def wait_for_steps(self, daemon, steps):
        daemon.wait_for_steps(self.name, len(self.ranks), steps)

    def end(self):
        self.stops.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
        stuck = [str(rank) for rank, thread in enumerate(self.threads) if thread.is_alive()]
        assert not stuck, f"rank {', '.join(stuck)} of {self.name} did not end its step"


class TopTest(unittest.TestCase):
    def data(self, *words, code=DONE):
        done = top("--once", "--json", *words)
        self.assertEqual(code, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        self.check(document)
        self.assertEqual(code != DONE, document["partial"])
        return document["data"]

    def check(self, document):
        if jsonschema:
            jsonschema.validate(document, SCHEMA)

    def test_the_slow_rank_is_named(self):
        daemon = Watched(self)
        job = Job(self, "slow", [(20, 20, 40, 5), (60, 20, 2, 5), (20, 20, 40, 5)])
        job.wait_for_steps(daemon, 30)

        def slow_one():  # A rank that the machine holds up for a moment is the slow one of that moment.
            found = self.data("--socket", daemon.path, "--job", job.name)
            self.assertEqual([one["job_id"] for one in found["jobs"]], [job.name])
            [shown] = found["jobs"]
            states = [rank["state"] for rank in sorted(shown["ranks"], key=lambda rank: rank["rank"])]
            is_it = states == ["waits", "slow", "waits"] and "straggler" in [alarm["kind"] for alarm in shown["alarms"]]
            return shown if is_it and (shown["stages"] or {}).get("rank") == 1 else None
        shown = wait_until(slow_one, "rank 1 to be the slow one")
        self.assertRegex(shown["stages"]["sentence"], f"^Rank 1 costs the job .* in {shown['stages']['stage']}: ")
        self.assertEqual((shown["world_size"], shown["missing_ranks"], shown["slowest_rank"]), (3, [], "1"))
        ranks = {rank["rank"]: rank for rank in shown["ranks"]}
        self.assertEqual([ranks[rank]["waits_for_rank"] for rank in "012"], ["1", None, "1"])
        for rank, pid in ((str(i), one.process.pid) for i, one in enumerate(job.ranks)):
            self.assertEqual(ranks[rank]["pid"], str(pid))
            # Never shorter than asked for; how much longer is the machine's affair.
            self.assertGreaterEqual(ranks[rank]["step_ns"], 85e6)
            self.assertAlmostEqual(sum(ranks[rank]["phases"].values()), 1, delta=0.01)
            # From end to end of steps: no step is left out, and nothing waits longer than its client.
            self.assertLessEqual(ranks[rank]["steps_per_s"] * ranks[rank]["step_ns"] / 1e9, 1.001)
            self.assertGreaterEqual(ranks[rank]["steps_per_s"], 0.9 / job.longest_s[int(rank)])
            # A look comes between a step and its tokens, or not: one more or less of a second's.
            self.assertAlmostEqual(ranks[rank]["tokens_per_s"] / ranks[rank]["steps_per_s"], 1000, delta=1000 / ranks[rank]["steps_per_s"])
        self.assertGreaterEqual(ranks["1"]["own_ns"], 85e6)
        # Nobody has measured these: null, not 0.
        for rank in ranks.values():
            self.assertEqual([rank[name] for name in ("gpu", "mfu_ratio", "samples_per_s", "torch_memory_reserved_bytes",
                                                      "oldest_collective_ns", "bus_bytes_per_s", "log_error_count",
                                                      "log_errors_per_s")], [None] * 8)
            self.assertEqual(rank["dropped_event_count"], 0)

    def test_the_table_has_the_worst_rank_first(self):
        daemon = Watched(self)
        job = Job(self, "table", [(10, 10, 25, 5), (35, 10, 0, 5)])
        job.wait_for_steps(daemon, 30)

        def ordered():
            done = top("--once", "--socket", daemon.path, "--job", job.name, LC_ALL="C.UTF-8")
            self.assertEqual((DONE, ""), (done.returncode, done.stderr))
            rows = [line.split() for line in done.stdout.splitlines() if " slow " in line or " waits  " in line]
            return done if [row[:3] for row in rows] == [["▶", "1", "slow"], ["0", "waits", "1"]] else None
        done = wait_until(ordered, "rank 1 to be the slow one, and on top")
        self.assertIn(f"job {job.name} · 2 of 2 ranks", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        ascii_only = top("--once", "--socket", daemon.path, "--job", job.name, LC_ALL="C")
        self.assertTrue(ascii_only.stdout.isascii(), ascii_only.stdout)

    def test_requests_as_their_clients_see_them(self):
        daemon = Watched(self)
        job = Job(self, "serve", [(1, 1, 0, 1)])
        job.end()
        took = []
        for outputs in [2] * 28 + [6] * 11 + [12]:  # Of 50 ms each.
            began = time.monotonic()
            job.ranks[0].do("request", outputs, 50, 0)
            took.append(time.monotonic() - began)
        job.ranks[0].do("request", 1, 1, 1)
        daemon.wait_for(lambda: daemon.value("lockstep_serving_requests_total", job_id=job.name) == 41, "requests")
        [shown] = self.data("--socket", daemon.path, "--job", job.name)["jobs"]
        [serving] = shown["serving"]
        self.assertEqual((serving["request_count"], serving["failure_count"], serving["running_count"]), (41, 1, 0))
        took.sort()
        for quantile, name, asked in ((0.5, "p50", 0.1), (0.95, "p95", 0.3)):
            # Never less than the work takes, nor more than the client saw, whose pipe and turns come on top.
            seconds = serving["request_ns"][name] / 1e9
            self.assertGreaterEqual(seconds, 0.98 * asked, took)
            self.assertLessEqual(seconds, 1.02 * took[min(int(quantile * len(took)) + 1, len(took) - 1)], took)
        self.assertLessEqual(serving["request_ns"]["p95"], serving["request_ns"]["p99"])
        self.assertLess(serving["first_token_ns"]["p50"], serving["request_ns"]["p50"])

    def test_a_node_that_does_not_answer(self):
        daemon = Watched(self)
        job = Job(self, "partial", [(5, 5, 0, 5)], world_size=2)
        job.wait_for_steps(daemon, 10)
        found = self.data("--host", f"127.0.0.1:{daemon.ports[0]},{DEAD}", "--job", job.name, code=PARTIAL)
        self.assertEqual([node["problem"] is None for node in found["nodes"]], [True, False])
        self.assertIsNone(found["nodes"][1]["silent_ns"])
        self.assertEqual(found["jobs"][0]["missing_ranks"], [1])
        done = top("--once", "--host", f"127.0.0.1:{daemon.ports[0]},{DEAD}")
        self.assertEqual(PARTIAL, done.returncode)
        self.assertIn("1 of 2 nodes answered", done.stdout)
        self.assertIn("127.0.0.1 does not answer", done.stdout)
        for words in (("--host", DEAD), ("--host", f"{DEAD},127.0.0.1:2"), ("--socket", "/nowhere")):
            done = top("--once", *words)
            self.assertEqual(FAILED, done.returncode, done.stdout)
            self.assertIn("no lockstepd answers", done.stdout + done.stderr)

    def test_two_daemons_of_one_machine_and_one_that_dies(self):
        daemons = [Watched(self), Watched(self)]
        job = Job(self, "two", [(5, 5, 0, 5), (5, 5, 0, 5)])
        for daemon in daemons:
            job.wait_for_steps(daemon, 10)
        hosts = ",".join(f"127.0.0.1:{daemon.ports[0]}" for daemon in daemons)
        watching = subprocess.Popen([BINARY, "top", "--json", "--host", hosts, "--job", job.name, "--interval", "200ms"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watching.stderr.close)
        self.addCleanup(watching.stdout.close)
        self.addCleanup(watching.wait)
        self.addCleanup(watching.kill)
        looks = (json.loads(line) for line in watching.stdout)
        self.wait_for(looks, lambda look: not look["partial"] and look["data"]["look_count"] > 2)
        daemons[0].process.kill()
        look = self.wait_for(looks, lambda look: look["partial"])
        self.check(look)
        [shown] = look["data"]["jobs"]
        # The other one sees the same ranks, and is believed: each counts once.
        self.assertEqual([(rank["rank"], rank["state"]) for rank in shown["ranks"]][0][0], "0")
        self.assertEqual(len(shown["ranks"]), 2)
        self.assertNotIn("unheard", [rank["state"] for rank in shown["ranks"]])
        daemons[1].process.kill()
        look = self.wait_for(looks, lambda look: all(node["problem"] for node in look["data"]["nodes"]))
        self.assertEqual([rank["state"] for rank in look["data"]["jobs"][0]["ranks"]], ["unheard"] * 2)
        self.assertIsNotNone(look["data"]["nodes"][1]["silent_ns"])

    def wait_for(self, looks, holds):
        until = time.monotonic() + PATIENCE_S
        for look in looks:
            if holds(look):
                return look
            if time.monotonic() > until:
                break
        self.fail("did not come")

    def test_a_rank_that_ends_is_told_of(self):
        daemon = Watched(self)
        job = Job(self, "gone", [(5, 5, 0, 5), (5, 5, 0, 5)])
        job.wait_for_steps(daemon, 10)
        job.end()
        watching = subprocess.Popen([BINARY, "top", "--json", "--socket", daemon.path, "--job", job.name, "--interval", "200ms"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watching.stderr.close)
        self.addCleanup(watching.stdout.close)
        self.addCleanup(watching.wait)
        self.addCleanup(watching.kill)
        looks = (json.loads(line) for line in watching.stdout)
        self.wait_for(looks, lambda look: len(look["data"]["jobs"][0]["ranks"]) == 2)
        job.ranks[1].end()
        look = self.wait_for(looks, lambda look: len(look["data"]["jobs"][0]["ranks"]) == 1)
        [alarm] = [alarm for alarm in look["data"]["jobs"][0]["alarms"] if alarm["kind"] == "rank_gone"]
        self.assertEqual((alarm["rank"], alarm["severity"]), ("1", "critical"))

    def watch_gpus(self, *scenario):
        """A daemon whose GPUs are a stand-in's."""
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        (folder / "scenario").write_text("\n".join(scenario) + "\n")
        config = folder / "lockstep.toml"
        config.write_text(f'[sensors]\nnvml_library = "{DAEMON.with_name("libfake_nvml.so")}"\n')
        config.chmod(0o644)
        return Watched(self, "--config", config, environment={"FAKE_NVML_SCENARIO": str(folder / "scenario")})

    def test_devices_of_a_node(self):
        daemon = self.watch_gpus("gpus 2")
        daemon.wait_for(lambda: daemon.value("lockstep_gpus_visible") == 2, "GPUs")
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_utilization_ratio", gpu="1") is not None, "their figures")
        [node] = self.data("--socket", daemon.path)["nodes"]
        self.assertEqual([gpu["gpu"] for gpu in node["gpus"]], ["0", "1"])
        for gpu in node["gpus"]:
            for field, metric in (("utilization_ratio", "utilization_ratio"), ("memory_used_bytes", "memory_used_bytes"),
                                  ("memory_total_bytes", "memory_total_bytes"), ("power_limit_watts", "power_limit_watts"),
                                  ("xid_event_count", "xid_events_total")):
                self.assertEqual(gpu[field], daemon.value(f"lockstep_gpu_{metric}", gpu=gpu["gpu"]), field)
            self.assertIsNotNone(gpu["temperature_celsius"])
            self.assertIsNotNone(gpu["uuid"])
        self.assertEqual(node["alarms"], [])

    def test_instances_of_a_divided_device(self):
        daemon = self.watch_gpus("gpus 3", "mig 2")
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_sm_active_ratio", gpu="2", gi="2") is not None, "two samples")
        [node] = self.data("--socket", daemon.path)["nodes"]
        [whole, _, divided] = node["gpus"]
        self.assertEqual(([], 0.05), (whole["mig_instances"], whole["utilization_ratio"]))
        self.assertEqual(whole["sm_active_ratio"], daemon.value("lockstep_gpu_sm_active_ratio", gpu="0"))
        self.assertEqual((None, None), (divided["utilization_ratio"], divided["sm_active_ratio"]))
        gib = 1 << 30
        self.assertEqual(divided["memory_total_bytes"], 80 * gib)
        self.assertEqual(divided["mig_instances"], [
            {"gi": "1", "uuid": "MIG-fake-2-1", "mig_profile": "1g.10gb", "sm_active_ratio": 0.62, "memory_used_bytes": gib, "memory_total_bytes": 10 * gib},
            {"gi": "2", "uuid": "MIG-fake-2-2", "mig_profile": "2g.20gb", "sm_active_ratio": 0.72, "memory_used_bytes": 2 * gib, "memory_total_bytes": 20 * gib}])
        text = top("--once", "--socket", daemon.path).stdout
        rows = {row[1]: row[2:] for row in map(str.split, text.splitlines()) if len(row) > 5 and row[1].startswith("2")}
        self.assertEqual(rows["2/2"][:9], ["MIG", "2g.20gb", "-", "72", "%", "2.00", "GiB", "20.0", "GiB"], text)
        self.assertEqual(set(rows), {"2", "2/1", "2/2"})

    def test_a_device_whose_driver_hangs_is_an_alarm(self):
        daemon = self.watch_gpus("hang 3")
        daemon.wait_for(lambda: daemon.value("lockstep_gpu_unresponsive", gpu="3") == 1, "said so")
        [node] = self.data("--socket", daemon.path)["nodes"]
        [alarm] = [alarm for alarm in node["alarms"] if "gpu 3" in alarm["text"]]
        self.assertEqual((alarm["kind"], alarm["severity"]), ("gpu_unresponsive", "critical"))
        self.assertIn("gpu 3: its driver does not answer", top("--once", "--socket", daemon.path).stdout)

    def test_names_from_outside_reach_no_terminal_as_they_are(self):
        daemon = Watched(self)
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        name = "evil\x1b[2J\x07‮"
        rank = Rank(self, pathlib.Path(scratch.name), 0, world_size=1, job=name)
        rank.do("step", 1, 1, 0, 1)
        daemon.wait_for(lambda: "evil" in daemon.metrics(), "the job")
        done = top("--once", "--socket", daemon.path, LC_ALL="C.UTF-8")
        self.assertEqual(DONE, done.returncode, done.stderr)
        self.assertIn("evil", done.stdout)
        for character in "\x1b\x07‮":
            self.assertNotIn(character, done.stdout)
        [shown] = [one for one in self.data("--socket", daemon.path)["jobs"] if one["job_id"].startswith("evil")]
        self.assertEqual(len(shown["ranks"]), 1)

    def test_misuse(self):
        for words in (("--interval", "1ms"), ("--interval", "x"), ("--timeout", "0s"), ("--window", "0s"), ("surplus",)):
            self.assertEqual(MISUSED, top("--once", *words).returncode, words)
        # Nothing to draw on.
        done = top("--socket", "/nowhere")
        self.assertEqual(MISUSED, done.returncode)
        self.assertIn("--once", done.stderr)


class DocumentTest(unittest.TestCase):
    def test_every_field_of_the_schema_is_documented_and_no_other(self):
        text = (SOURCE / "docs/json.md").read_text(encoding="utf-8").partition("## `lockstep.top/1`")[2].partition("\n## ")[0]
        documented = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
        self.assertEqual(documented, set(fields(SCHEMA["properties"]["data"], "data")))


def fields(schema, path):
    """Paths of what is not an object and no list of objects."""
    for branch in schema.get("anyOf", []):
        yield from fields(branch, path) if branch.get("type") == "object" else ()
    if "anyOf" in schema:
        return
    if schema.get("type") == "object":
        for name, inner in schema["properties"].items():
            yield from fields(inner, f"{path}.{name}")
    elif schema.get("type") == "array" and schema["items"].get("type") == "object":
        yield from fields(schema["items"], path + "[]")
    else:
        yield path


if __name__ == "__main__":
    unittest.main()
