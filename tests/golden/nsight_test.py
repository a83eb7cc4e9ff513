#!/usr/bin/env python3
"""Nsight Systems' exports against sums of their own tables, written here in SQL; ranks, hosts and stragglers as each
set's truth has them. Sources: expected.json of the sets; expected-numbers.md, section 1.9; docs/formats/nsight.md."""

import glob
import gzip
import json
import lzma
import os
import re
import shutil
import sqlite3
import tempfile
import unittest

import analyze_program as lockstep

SETS = {
    "cloverleaf": ("nsight", "pipit", "perlmutter-cloverleaf-cuda.sqlite.xz"),
    "saxpy": ("nsight", "pipit", "saxpy-mpi-cuda_nsys_perlmutter0.sqlite.xz"),
    "power_iteration": ("nsight", "nsightful", "power_iteration__baseline.sqlite.xz"),
    "healthy": ("nsight", "nsys_ai", "healthy_1pct.sqlite.xz"),
    "mfu_before": ("traces", "nsys_2gpu_h100_before_after", "mfu_2gpu_before.sqlite.gz"),
    "mfu_after": ("traces", "nsys_2gpu_h100_before_after", "mfu_2gpu_after.sqlite.gz"),
}
HAS_PROCESS = ("cloverleaf", "saxpy", "power_iteration", "mfu_before", "mfu_after")


def query(sql, *paths):
    """Rows of `lockstep query --json`."""
    process = lockstep.run(["query", "--quiet", "--json", *[str(path) for path in paths], sql])
    if process.returncode not in (lockstep.DONE, lockstep.PARTIAL):
        raise AssertionError(process.stderr.decode("utf-8", "replace"))
    return json.loads(process.stdout)["rows"]


class NsightCase(lockstep.DataCase):
    def setUp(self):
        super().setUp()
        lockstep.data_path("nsight")
        self.folder = tempfile.mkdtemp(prefix="lockstep-nsight-")
        self.addCleanup(shutil.rmtree, self.folder)

    def unpack(self, path):
        """A copy that Python's sqlite3 can open."""
        plain = os.path.join(self.folder, os.path.basename(path).rsplit(".", 1)[0])
        opener = lzma.open if path.endswith(".xz") else gzip.open
        with opener(path, "rb") as packed, open(plain, "wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        return plain

    def open(self, path):
        connection = sqlite3.connect(f"file:{self.unpack(path)}?mode=ro&immutable=1", uri=True)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        self.addCleanup(connection.close)
        return connection

    def path_of(self, name):
        return lockstep.data_path(*SETS[name])

    def set_files(self, *parts):
        return sorted(glob.glob(os.path.join(lockstep.data_path(*parts), "*.sqlite.xz")))


class TotalsTest(NsightCase):
    """Counts and times of every kernel, copy and set, call and range, per rank."""

    def ranks_of(self, connection, name):
        """Process of each rank: of its device where there are several, as the export names no rank then."""
        if name not in HAS_PROCESS:
            return {0: None}
        rows = connection.execute(
            "SELECT DISTINCT globalPid, deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY deviceId").fetchall()
        return {rank: process for rank, (process, _) in enumerate(rows)}

    def check_device(self, name):
        path = self.path_of(name)
        connection = self.open(path)
        ours = {}
        for row in query("SELECT rank, name, count(*) AS n, sum(duration_ns) AS ns FROM events WHERE category = 'kernel' "
                         "GROUP BY rank, name", path):
            ours[row["rank"], row["name"]] = (row["n"], row["ns"])
        theirs = {}
        for rank, process in self.ranks_of(connection, name).items():
            where = "1" if process is None else f"globalPid = {process}"
            for text, count, total in connection.execute(
                    "SELECT value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = "
                    f"demangledName WHERE {where} GROUP BY value"):
                theirs[rank, text] = (count, total)
        self.assertGreater(len(theirs), 0)
        self.assertEqual(ours, theirs)

    def check_sums(self, name, category, table, where="1"):
        path = self.path_of(name)
        connection = self.open(path)
        exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        theirs = connection.execute(
            f"SELECT count(*), coalesce(sum(end - start), 0) FROM {table} WHERE {where}").fetchone() if exists else (0, 0)
        ours = query("SELECT count(*) AS n, coalesce(sum(duration_ns), 0) AS ns FROM events WHERE category IN "
                     f"({category})", path)[0]
        self.assertEqual((ours["n"], ours["ns"]), theirs, f"{name} {table}")
        return theirs[0]

    def test_every_kernel_of_every_rank(self):
        for name in SETS:
            with self.subTest(name=name):
                self.check_device(name)

    def test_copies_sets_calls_and_synchronisations(self):
        tables = {"'memcpy'": "CUPTI_ACTIVITY_KIND_MEMCPY", "'memset'": "CUPTI_ACTIVITY_KIND_MEMSET",
                  "'runtime', 'driver'": "CUPTI_ACTIVITY_KIND_RUNTIME", "'sync'": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"}
        for category, table in tables.items():
            rows = 0
            for name in SETS:
                with self.subTest(name=name, table=table):
                    rows += self.check_sums(name, category, table)
            self.assertGreater(rows, 0, table)

    def test_ranges(self):
        closed = "eventType IN (59, 60) AND end IS NOT NULL"
        for name in ("power_iteration", "mfu_before", "mfu_after"):
            with self.subTest(name=name):
                self.assertGreater(self.check_sums(name, "'cpu_op', 'user_annotation'", "NVTX_EVENTS", closed), 0)
        # MPI's calls were NVTX ranges of a domain then.
        self.assertGreater(self.check_sums("saxpy", "'user_annotation'", "NVTX_EVENTS", closed), 0)

    def test_every_kernel_has_its_launch(self):
        for name in SETS:
            with self.subTest(name=name):
                connection = self.open(self.path_of(name))
                # A process and a correlation id say which call it was; without processes the id alone.
                process = "globalTid & ~16777215" if name in HAS_PROCESS else "0"
                calls = set(connection.execute(f"SELECT {process}, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"))
                process = "globalPid" if name in HAS_PROCESS else "0"
                kernels = connection.execute(f"SELECT {process}, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL")
                expected = sum(kernel in calls for kernel in kernels)
                rows = query("SELECT count(*) AS n FROM kernels WHERE kind IN ('compute', 'communication') AND "
                             "launch_start_ns IS NOT NULL", self.path_of(name))
                self.assertGreater(expected, 0)
                self.assertEqual(rows[0]["n"], expected)

    def test_operating_system_calls(self):
        for path in self.set_files("nsight", "own_mpirun_4rank"):
            theirs = self.open(path).execute("SELECT count(*), sum(end - start) FROM OSRT_API").fetchone()
            ours = query("SELECT count(*) AS n, sum(duration_ns) AS ns FROM events WHERE category = 'other' AND lane = "
                         "'other' AND name NOT LIKE 'end-step'", path)[0]
            self.assertEqual((ours["n"], ours["ns"]), theirs)

    def test_two_devices_against_exact_unions(self):
        expected = lockstep.read_json(lockstep.data_path("traces", "nsys_2gpu_h100_before_after", "expected",
                                                         "exact_gpu_union.json"))
        for name in ("mfu_before", "mfu_after"):
            answer = lockstep.analyze(self.path_of(name))
            self.assertEqual(answer.status, lockstep.DONE)
            devices = expected[f"mfu_2gpu_{name[4:]}"]["devices"]
            for rank in (0, 1):
                row = answer.row("breakdown", rank=rank)
                device = devices[str(rank)]
                for ours, theirs in (("span_ns", "total_ms"), ("busy_ns", "busy_union_ms"), ("idle_ns", "idle_ms"),
                                     ("compute_ns", "compute_union_ms"), ("communication_ns", "nccl_union_ms"),
                                     ("overlapped_communication_ns", "overlap_ms"),
                                     ("exposed_communication_ns", "exposed_nccl_ms")):
                    self.assertAlmostEqual(row[ours] / 1e6, device[theirs], delta=6e-5, msg=f"{name} {rank} {ours}")
            self.assertEqual(answer.row("ranks", rank=1)["device_ordinals"], [1])
            self.assertIn("nsys_rank_guess", answer.ledger_codes())


class StragglerTest(NsightCase):
    def test_four_mpi_ranks(self):
        """Rank 2 sleeps in `backward`; the range itself is as long on every rank."""
        files = self.set_files("nsight", "own_mpirun_4rank")
        truth = lockstep.read_json(lockstep.data_path("nsight", "own_mpirun_4rank", "expected.json"))
        answer = lockstep.analyze_whole(*files)
        self.assertEqual([row["rank"] for row in answer.data["ranks"]], [0, 1, 2, 3])
        for row in answer.data["ranks"]:
            self.assertEqual((row["host"], row["world_size"], row["rank_source"]), (truth["hostname"], 4, "distributed_info"))
        reduces = [row for row in answer.data["collectives"] if row["name"] == "all_reduce" and row["bytes"] == 65536]
        self.assertEqual([row["last_rank"] for row in reduces], truth["last_arriver"])
        for row, spread_ms in zip(reduces, truth["arrival_spread_ms"]):
            self.assertAlmostEqual((max(row["arrival_ns"]) - min(row["arrival_ns"])) / 1e6, spread_ms, delta=0.01)
        # Non-blocking calls end with their wait, although request handles are used again.
        waits = [row for row in answer.data["collectives"] if row["name"] == "all_reduce" and row["bytes"] == 1048576]
        self.assertEqual(len(waits), truth["allreduce_per_rank"])
        for rank, path in enumerate(files):
            ends = [row[0] for row in self.open(path).execute("SELECT end FROM MPI_START_WAIT_EVENTS ORDER BY start")]
            start = truth["ranks"][rank]["utc_start_ns"]
            self.assertEqual([row["end_ns"][rank] - start for row in waits], ends)
        worst = answer.data["stragglers"][0]
        self.assertEqual((worst["rank"], worst["chronic"], worst["late_step_count"]), (2, True, 6))
        self.assertEqual(worst["activities"][0]["name"], "backward")
        self.assertEqual({row["late_step_count"] for row in answer.data["stragglers"][1:]}, {0})
        for rank in truth["ranks"]:
            for name, mean_ms in rank["mean_ms"].items():
                rows = query(f"SELECT avg(duration_ns) / 1e6 AS ms FROM events WHERE rank = {rank['rank']} AND name IN "
                             f"('{name}', 'train:{name}')", *files)
                self.assertAlmostEqual(rows[0]["ms"], mean_ms, delta=0.001)
        # Every collective is possible on one clock: nobody leaves before everybody has come.
        self.assertNotIn("collective_causality", answer.ledger_codes())
        self.assertNotIn("no_critical_path", answer.ledger_codes())

    def test_messages_of_a_ring_know_their_peers(self):
        answer = lockstep.analyze_whole(*self.set_files("nsight", "own_mpirun_4rank"))
        messages = [row for row in answer.data["collectives"] if row["name"] == "send_recv"]
        self.assertEqual(len(messages), 4 * 6)
        self.assertTrue(all(row["complete"] and row["bytes"] == 4096 for row in messages))

    def test_four_ranks_of_torchrun_on_two_hosts(self):
        """Ranks 1 and 2 share a process id; the first all_reduce shows nsys starting up, not a straggler."""
        files = self.set_files("nsight", "own_torchrun_gloo_4rank")
        truth = lockstep.read_json(lockstep.data_path("nsight", "own_torchrun_gloo_4rank", "expected.json"))
        answer = lockstep.analyze_whole(*files)
        self.assertEqual([(row["rank"], row["host"]) for row in answer.data["ranks"]],
                         [(row["rank"], row["hostname"]) for row in truth["ranks"]])
        reduces = [row for row in answer.data["collectives"] if row["name"] == "all_reduce"]
        self.assertEqual(len(reduces), truth["all_reduce_per_rank"])
        first_of_steps = reduces[::4]
        for row, last, spread_ms in list(zip(first_of_steps, truth["first_all_reduce_of_step_last_arriver"],
                                             truth["first_all_reduce_of_step_arrival_spread_ms"]))[1:]:
            self.assertEqual(row["last_rank"], last)
            self.assertAlmostEqual((max(row["arrival_ns"]) - min(row["arrival_ns"])) / 1e6, spread_ms, delta=0.02)
        first = first_of_steps[0]
        self.assertIsNone(first["last_rank"])
        self.assertEqual(first["wait_ns"], [None] * 4)
        self.assertAlmostEqual((max(first["arrival_ns"]) - min(first["arrival_ns"])) / 1e6,
                               truth["first_all_reduce_of_step_arrival_spread_ms"][0], delta=0.02)
        worst = answer.data["stragglers"][0]
        self.assertEqual((worst["rank"], worst["activities"][0]["cause"]), (3, "data_loading"))
        self.assertEqual(worst["late_step_count"], 3)
        self.assertEqual(answer.row("stragglers", rank=1)["delay_ns"], 0)
        self.assertEqual([row["step"] for row in answer.rows("steps", rank=3)], [2, 3, 4, 5, 6, 7])
        for rank in truth["ranks"]:
            for name, mean_ms in rank["mean_ms"].items():
                rows = query(f"SELECT avg(duration_ns) / 1e6 AS ms FROM events WHERE rank = {rank['rank']} AND name = "
                             f"'{name}'", *files)
                self.assertAlmostEqual(rows[0]["ms"], mean_ms, delta=0.001)

    def test_four_ranks_in_one_report(self):
        path = lockstep.data_path("nsight", "own_torchrun_single_report", "node0.sqlite.xz")
        answer = lockstep.analyze_whole(path)
        self.assertEqual([row["rank"] for row in answer.data["ranks"]], [0, 1, 2, 3])
        self.assertEqual({row["rank_source"] for row in answer.data["ranks"]}, {"order"})
        self.assertIn("nsys_rank_guess", answer.ledger_codes())
        worst = answer.data["stragglers"][0]
        self.assertEqual((worst["rank"], worst["activities"][0]["cause"]), (3, "data_loading"))
        rows = query("SELECT rank, count(*) AS n FROM events WHERE name = 'gloo:all_reduce' GROUP BY rank", path)
        self.assertEqual([row["n"] for row in rows], [40] * 4)

    def test_a_name_that_disagrees_with_the_environment(self):
        source = self.unpack(self.set_files("nsight", "own_torchrun_gloo_4rank")[3])
        renamed = os.path.join(self.folder, "train.rank7-of-8.sqlite")
        os.rename(source, renamed)
        answer = lockstep.analyze(renamed)
        self.assertEqual([row["rank"] for row in answer.data["ranks"]], [3])
        self.assertIn("rank_name_mismatch", answer.ledger_codes())

    def test_absent_ranks_are_named(self):
        answer = lockstep.analyze(*self.set_files("nsight", "own_torchrun_gloo_4rank")[1:])
        row = [entry for entry in answer.ledger if entry["code"] == "missing_ranks"][0]
        self.assertIn("1 of 4 ranks are missing: 0", row["message"])


class MixedTest(unittest.TestCase):
    """A generated job whose ranks were recorded by PyTorch's profiler, by Nsight Systems, or some by each."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lockstep-mixed-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        kineto = os.path.join(cls.folder, "kineto")
        lockstep.generate(kineto, "--ranks", 4, "--steps", 6, "--straggler", "2:8000:host")
        cls.kineto = sorted(glob.glob(os.path.join(kineto, "*.json*")))
        cls.nsight = [cls.convert(path, rank) for rank, path in enumerate(cls.kineto)]

    @classmethod
    def convert(cls, path, rank):
        """The same events in Nsight Systems' tables."""
        target = os.path.join(cls.folder, f"rank{rank}.sqlite")
        connection = sqlite3.connect(target)
        connection.executescript("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
            CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
            CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, globalPid, copyKind,
                                                     srcKind, dstKind);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, streamId, correlationId, globalPid, memKind);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
            CREATE TABLE NVTX_EVENTS (start, end, eventType, textId, globalTid, domainId);""")
        rows = query("SELECT lane, category, name, trace_start_ns, duration_ns, correlation, device, stream, process_id, "
                     "thread_id FROM events", path)
        base = min(row["trace_start_ns"] for row in rows)
        host = query("SELECT host, world_size FROM ranks", path)[0]
        connection.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (base,))
        connection.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', ?), ('DeviceEnvironment', ?)",
                           (host["host"], f"RANK={rank};WORLD_SIZE=4"))
        process = next(row["process_id"] for row in rows if row["lane"] == "runtime") << 24
        ids = {}
        for row in rows:
            start, name = row["trace_start_ns"] - base, ids.setdefault(row["name"], len(ids))
            times, place = (start, start + row["duration_ns"]), (row["device"], row["stream"], row["correlation"], process)
            if row["category"] == "kernel":
                connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?)", (*times, *place, name))
            elif row["category"] == "memcpy":
                kind, source, target_kind = re.match(r"Memcpy (\w+) \((\w+) -> (\w+)\)", row["name"]).groups()
                connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,?,?)",
                                   (*times, *place, {"HtoD": 1, "DtoH": 2, "DtoD": 8}[kind],
                                    *({"Pageable": 0, "Pinned": 1, "Device": 2}[memory] for memory in (source, target_kind))))
            elif row["category"] == "memset":
                connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?,?,?,?,?,?,2)", (*times, *place))
            elif row["lane"] == "runtime":
                connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?)",
                                   (*times, process + row["thread_id"], row["correlation"], name))
            elif row["lane"] == "operators":
                text = row["name"]
                if row["category"] == "cpu_op":
                    text += f", op_id = {start}"
                connection.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,0)",
                                   (*times, ids.setdefault(text, len(ids)), process + row["thread_id"]))
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, text) for text, number in ids.items()])
        connection.commit()
        connection.close()
        return target

    def check(self, files):
        ours, theirs = lockstep.analyze_whole(*files), lockstep.analyze_whole(*self.kineto)
        self.assertEqual([row["rank"] for row in ours.data["ranks"]], [0, 1, 2, 3])
        for table, columns in (("breakdown", ("rank", "step", "span_ns", "busy_ns", "idle_ns", "compute_ns",
                                              "communication_ns", "exposed_communication_ns", "memory_ns")),
                               ("idle", ("rank", "host_wait_ns", "kernel_wait_ns", "other_ns"))):
            with self.subTest(table=table):
                ours_rows, their_rows = ours.data[table], theirs.data[table]
                self.assertGreater(len(their_rows), 0)
                columns = [column for column in columns if column in their_rows[0]]
                self.assertGreater(len(columns), 1)
                self.assertEqual([[row[column] for column in columns] for row in ours_rows],
                                 [[row[column] for column in columns] for row in their_rows])
        for table in ("launch", "kernels", "operators", "steps"):
            self.assertGreater(len(theirs.data[table]), 0)
            self.assertEqual(ours.data[table], theirs.data[table], table)
        sums = [sorted((row["rank"], row["name"], row["n"], row["ns"]) for row in query(
            "SELECT rank, name, count(*) AS n, sum(duration_ns) AS ns FROM events WHERE category IN ('kernel', 'runtime', "
            "'driver', 'cpu_op', 'user_annotation') GROUP BY rank, name", *paths)) for paths in (files, self.kineto)]
        self.assertEqual(*sums)
        collectives = [[(row["name"], row["last_rank"], row["complete"], row["wait_ns"]) for row in answer.data["collectives"]]
                       for answer in (ours, theirs)]
        self.assertGreater(len(collectives[1]), 6)
        self.assertEqual(*collectives)
        self.assertEqual(ours.data["stragglers"][0]["rank"], 2)
        self.assertEqual(ours.data["stragglers"][0]["late_step_count"], theirs.data["stragglers"][0]["late_step_count"])

    def test_all_ranks_by_nsight_systems(self):
        self.check(self.nsight)

    def test_some_ranks_by_each(self):
        self.check([self.kineto[0], self.nsight[1], self.nsight[2], self.kineto[3]])


class WholeTest(NsightCase):
    def test_no_kernels_is_said(self):
        for parts in (("jacc", "report1.sqlite.xz"), ("gemm_no_kernels", "profile.sqlite.xz")):
            answer = lockstep.analyze(lockstep.data_path("nsight", *parts))
            rows = [row for row in answer.ledger if row["code"] == "nsys_no_kernels"]
            self.assertEqual([row["severity"] for row in rows], ["warning"])
            self.assertIn("CUPTI_ACTIVITY_KIND_KERNEL", rows[0]["message"])

    def test_before_and_after(self):
        before, after = self.path_of("mfu_before"), self.path_of("mfu_after")
        process = lockstep.run(["compare", "--json", "--quiet", before, after])
        self.assertEqual(process.returncode, lockstep.DONE, process.stderr.decode())
        # nsys-ai: flash_fwd -31.56 ms over both devices, SendRecv +8.34 ms; ours is per rank.
        sums = {"flash_fwd": 0, "SendRecv": 0}
        for row in json.loads(process.stdout)["data"]["names"]:
            for part in sums:
                if row["kind"] == "kernel" and part in row["name"]:
                    sums[part] += row["step_delta_ns"]
        self.assertAlmostEqual(2 * sums["flash_fwd"] / 1e6, -31.56, delta=0.01)
        self.assertAlmostEqual(2 * sums["SendRecv"] / 1e6, 8.34, delta=0.01)

    def test_plain_and_packed_read_alike(self):
        packed = self.path_of("cloverleaf")
        plain = self.unpack(packed)
        sql = "SELECT name, category, start_ns, duration_ns, correlation FROM events ORDER BY start_ns, name, duration_ns"
        self.assertEqual(query(sql, packed), query(sql, plain))
        self.assertEqual(os.listdir(self.folder), [os.path.basename(plain)], "nothing is written beside the file")

    def test_a_folder_that_nobody_may_write(self):
        plain = self.unpack(self.path_of("healthy"))
        os.chmod(self.folder, 0o500)
        try:
            self.assertEqual(lockstep.analyze(plain).status, lockstep.DONE)
        finally:
            os.chmod(self.folder, 0o700)

    def test_secrets_stay_in_the_report(self):
        """Environments, arguments and output of the processes are in StringIds: none of it comes out."""
        path = self.set_files("nsight", "own_torchrun_gloo_4rank")[0]
        plain = self.unpack(path)
        connection = sqlite3.connect(plain)
        connection.execute("INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'API_TOKEN=\"hunter2\"')")
        connection.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value = value || ';AWS_SECRET=hunter2' WHERE name = "
                           "'DeviceEnvironment'")
        connection.execute("INSERT INTO StringIds VALUES (900000, 'RANK=2' || char(0) || 'API_TOKEN=hunter2')")
        connection.commit()
        connection.close()
        answer = lockstep.analyze(plain)
        self.assertEqual([row["rank"] for row in answer.data["ranks"]], [0])
        page = os.path.join(self.folder, "page.html")
        merged = os.path.join(self.folder, "merged.json")
        for command in (["analyze", "--quiet", plain, "-o", page], ["merge", "--quiet", plain, "-o", merged]):
            self.assertEqual(lockstep.run(command).returncode, lockstep.PARTIAL, "one rank of four")
        texts = [answer.text]
        for name in (page, merged):
            with open(name, "rb") as file:
                texts.append(file.read())
        for text in texts:
            self.assertNotIn(b"hunter2", text)
            self.assertNotIn(b"MASTER_ADDR", text)

    def test_merge_keeps_every_table(self):
        files = self.set_files("nsight", "own_mpirun_4rank")
        merged = os.path.join(self.folder, "job.pftrace")
        self.assertEqual(lockstep.run(["merge", "--quiet", *files, "-o", merged]).returncode, lockstep.DONE)
        sql = "SELECT rank, name, count(*) AS n, sum(duration_ns) AS ns FROM events GROUP BY rank, name ORDER BY rank, name"
        self.assertEqual(query(sql, merged), query(sql, *files))


if __name__ == "__main__":
    unittest.main()
