#!/usr/bin/env python3
"""Every table of `lockstep query` holds what `lockstep analyze --json` prints, on generated jobs, the recorded job and
every shared data set; and the single events add up to the passes' totals."""

import json
import os
import subprocess
import tempfile
import unittest

import analyze_program as lockstep

# Table here: (table of the JSON, names there that differ here).
OWN_CLOCK = {"start_ns": "trace_start_ns", "first_ns": "trace_first_ns", "last_ns": "trace_last_ns"}
FLAT = {"breakdown": "breakdown", "steps": "steps", "idle": "idle", "idle_host": "idle_host", "kernels": "kernel_totals",
        "operators": "operators", "memory": "memory", "launch": "launch", "queues": "queues",
        "groups": "process_groups", "group_operations": "group_operations", "ddp": "ddp", "ddp_buckets": "ddp_buckets",
        "fsdp": "fsdp", "pipeline": "pipeline", "moe": "moe", "moe_ranks": "moe_ranks", "inference": "inference",
        "inference_requests": "inference_requests", "regions": "regions", "region_balance": "region_balance",
        "counters": "counters", "counter_balance": "counter_balance",
        "flops": "flops", "flops_by_operator": "flops_by_operator", "kernel_launches": "kernel_launches",
        "kernel_rooflines": "kernel_rooflines", "kernel_sums": "kernel_sums",
        "stage_scopes": "stage_scopes", "stage_shares": "stage_shares", "stage_agreement": "stage_agreement"}
LISTS = {"findings": ("ranks", "evidence", "advice"), "stragglers": ("activities",), "root_causes": ("steps",),
         "culprits": ("ranks",),
         "ranks": ("device_ordinals",), "collective_instances": ("missing_ranks",), "process_groups": ("ranks",)}
KERNEL_SUMS = """SELECT rank, window, name, kind, count(*) AS count, sum(duration_ns) AS total_ns, min(duration_ns) AS min_ns,
                 max(duration_ns) AS max_ns FROM kernels GROUP BY rank, window, name, kind"""
DEVICE_UNIONS = """SELECT rank, window, union_ns(trace_start_ns, trace_start_ns + duration_ns) AS busy_ns, count(DISTINCT device) AS devices
                   FROM kernels GROUP BY rank, window"""
OVERLAPS = """SELECT rank, window, intersect_ns(trace_start_ns, trace_start_ns + duration_ns, kind = 'communication') AS shared_ns,
              count(DISTINCT device) AS devices FROM kernels WHERE kind IN ('compute', 'communication') GROUP BY rank, window"""


def ask(paths, queries):
    """Rows of each query, from one run of the prompt."""
    script = ".format json\n" + "".join(query.strip() + ";\n" for query in queries)
    done = subprocess.run([lockstep.PROGRAM, "query", "--interactive", "-q", *paths], input=script.encode(),
                          capture_output=True, check=False, timeout=600)
    text = done.stdout.decode("utf-8")
    if done.returncode not in (lockstep.DONE, lockstep.PARTIAL):
        raise AssertionError(f"exit status {done.returncode}: {done.stderr.decode()[-2000:]}")
    decoder, answers, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        document, at = decoder.raw_decode(text, at)
        at += 1  # the line break
        answers.append(document["rows"])
    if len(answers) != len(queries):
        raise AssertionError(f"{len(answers)} answers to {len(queries)} queries: {done.stderr.decode()[-2000:]}")
    return answers


class EqualityTest(unittest.TestCase):
    maxDiff = 4000

    def check(self, *paths):
        data_run = lockstep.analyze(*paths)
        if data_run.document is None:
            return None  # other formats: both refuse
        data = data_run.data
        if data["breakdown"] is None:  # operation traces have no events to ask for: refused, with the way out
            with self.assertRaisesRegex(AssertionError, "exit status 1: .*is an operation trace.*lockstep analyze"):
                ask([str(path) for path in paths], ["SELECT 1"])
            return None
        tables = [*FLAT.values(), "ranks", "collectives", "collective_instances", "stragglers", "wait_states", "root_causes", "culprits", "imbalance",
                  "critical_path", "findings",
                  "ledger"]
        answers = ask([str(path) for path in paths], [f"SELECT * FROM {table}" for table in tables] + [KERNEL_SUMS, DEVICE_UNIONS, OVERLAPS])
        got = dict(zip(tables, answers))
        for table, columns in LISTS.items():
            for row in got[table]:
                row.update({column: json.loads(row[column]) for column in columns})
        self.check_flat(data, got)
        self.check_ranks(data, got)
        self.check_collectives(data, got)
        self.check_verdicts(data, data_run.ledger, got)
        self.check_single_events(data, *answers[len(tables):])
        return got

    def check_rows(self, wanted, rows, renamed=()):
        """`rows` have what `wanted` have, in the same order, under their own names."""
        renamed = dict(renamed)
        self.assertEqual(len(wanted), len(rows))
        for want, row in zip(wanted, rows):
            self.assertEqual(want, {key: row[renamed.get(key, key)] for key in want})

    def check_flat(self, data, got):
        for theirs, ours in FLAT.items():
            with self.subTest(table=ours):
                self.check_rows(data[theirs], got[ours], OWN_CLOCK)

    def check_ranks(self, data, got):
        wanted = []
        for rank in data["ranks"]:
            flat = {key: value for key, value in rank.items() if key != "clock"}
            flat.update({"clock_" + key: value for key, value in rank["clock"].items()})
            wanted.append(flat)
        self.check_rows(wanted, got["ranks"], OWN_CLOCK)

    def check_collectives(self, data, got):
        members = ("ranks", "arrival_ns", "end_ns", "wait_ns", "duration_ns")
        flat = [{key: value for key, value in row.items() if key not in members} for row in data["collectives"]]
        self.check_rows(flat, got["collective_instances"], {"group": "group_name"})
        wanted = []
        for number, row in enumerate(data["collectives"]):
            for rank, arrival, end, wait, duration in zip(*(row[key] for key in members)):
                wanted.append({"instance": number, "rank": rank, "arrival_ns": arrival, "end_ns": end, "wait_ns": wait,
                               "duration_ns": duration, **{key: row[key] for key in (
                                   "window", "group", "sequence", "name", "bytes", "last_rank", "transfer_ns", "complete",
                                   "busbw_bytes_per_s")}})
        self.check_rows(wanted, got["collectives"], {"group": "group_name"})
        for row, instance in zip(data["collectives"], got["collective_instances"]):
            self.assertEqual(instance["rank_count"], len(row["ranks"]))
            self.assertEqual(instance["first_arrival_ns"], min(row["arrival_ns"]))
            self.assertEqual(instance["last_arrival_ns"], max(row["arrival_ns"]))

    def check_verdicts(self, data, ledger, got):
        wanted = [{key: value for key, value in row.items() if key != "worst_collective"} for row in data["stragglers"]]
        self.check_rows(wanted, got["stragglers"])
        self.check_rows(data["wait_states"]["states"], got["wait_states"])
        causes = [{key: value for key, value in row.items() if key not in ("ranks", "text", "chains")}
                  for row in data["wait_states"]["causes"]]
        self.check_rows(causes, got["root_causes"])
        told = data["wait_states"]["causes"]
        self.check_rows([{**row, "cause": told[row["causes"][0]]["cause"], "causes": None} for row in data["wait_states"]["culprits"]],
                        [{**row, "causes": None} for row in got["culprits"]])
        for row, ours in zip(data["stragglers"], got["stragglers"]):
            worst = row["worst_collective"]
            self.assertEqual(worst is None, ours["worst_instance"] is None)
            if worst:
                instance = got["collective_instances"][ours["worst_instance"]]
                self.assertEqual((worst["group"], worst["sequence"], worst["name"]),
                                 (instance["group_name"], instance["sequence"], instance["name"]))
        self.check_rows([{"quantity": key, **value} for key, value in data["imbalance"].items()], got["imbalance"])
        self.check_rows(data["critical_path"]["rows"], got["critical_path"])
        self.check_rows(data["findings"], got["findings"])
        self.check_rows(ledger, got["ledger"])

    def check_single_events(self, data, kernel_sums, unions, overlaps):
        key = lambda row: (row["rank"], row["window"], row["name"], row["kind"])
        names = ("rank", "window", "name", "kind", "count", "total_ns", "min_ns", "max_ns")
        self.assertEqual(sorted(({name: row[name] for name in names} for row in data["kernels"]), key=key),
                         sorted(kernel_sums, key=key))
        breakdown = {(row["rank"], row["window"]): row for row in data["breakdown"]}
        for row in unions:
            if row["devices"] == 1:  # of several devices the breakdown adds the unions up
                self.assertEqual(breakdown[row["rank"], row["window"]]["busy_ns"], row["busy_ns"])
        for row in overlaps:
            if row["devices"] == 1:
                self.assertEqual(breakdown[row["rank"], row["window"]]["overlapped_communication_ns"], row["shared_ns"])

    def test_recorded_job(self):
        got = self.check(os.path.join(lockstep.SOURCE_ROOT, "examples", "recorded"))
        self.assertGreater(len(got["collectives"]), 0)

    def test_generated_jobs(self):
        for name, options in {
                "slow rank": ["--ranks", 4, "--steps", 4, "--layers", 4, "--straggler", "1:2000:loader", "--memory"],
                "clocks": ["--ranks", 3, "--steps", 30, "--layers", 1, "--offset-us", 0, 900, -400, "--drift-ppm", 0, 40, -25],
                "damaged": ["--ranks", 4, "--steps", 3, "--layers", 2, "--cut", "2:0.6", "--missing", 3],
                "sharded": ["--ranks", 4, "--steps", 3, "--layers", 3, "--sharded", "--tensor-parallel", 2, "--overlap", 0.7],
                "cpu only": ["--ranks", 2, "--steps", 3, "--layers", 2, "--cpu-only", "--stacks"]}.items():
            with self.subTest(job=name), tempfile.TemporaryDirectory() as folder:
                job = os.path.join(folder, "job")
                lockstep.generate(job, *options)
                got = self.check(job)
                self.assertGreater(len(got["steps"]), 0)

    def test_every_data_set(self):
        root = lockstep.data_path("traces")
        compared = 0
        for name in sorted(os.listdir(root)):
            if not os.path.isdir(os.path.join(root, name)):
                continue
            with self.subTest(set=name):
                compared += self.check(os.path.join(root, name)) is not None
        self.assertGreater(compared, 5)


if __name__ == "__main__":
    unittest.main()
