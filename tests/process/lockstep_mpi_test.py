"""`lockstep-mpi` under a real mpirun: what it prints is what `lockstep` prints, for any number of processes."""

import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from lockstep_program import BINARY, FAILED, MISUSED, PARTIAL
from mpi_launcher import IS_MPICH, MPIRUN, MPIRUN_PATH, RANK_VARIABLE, mpi_environment
from waiting import PATIENCE_S, wait_until

PROGRAM = pathlib.Path(BINARY).with_name("lockstep-mpi")
NCCL_JOB = pathlib.Path(BINARY).with_name("lockstep_nccl_job")
GENERATOR = pathlib.Path(BINARY).with_name("lockstep_trace_gen")


def mpi(process_count, *arguments):
    return subprocess.run([*MPIRUN, "-np", str(process_count), PROGRAM, *map(str, arguments)], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE_S, env=mpi_environment())


def plain(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=PATIENCE_S)


def generate(folder, *options):
    subprocess.run([GENERATOR, "--out", folder, *options], check=True, capture_output=True)


def write_dumps(folder, ranks, late_rank):
    """Flight-recorder dumps of an all_reduce that one rank has not called."""
    folder.mkdir()
    for rank in range(ranks):
        entries = []
        for sequence in range(1, 6 if rank == late_rank else 7):
            done = sequence < 6
            entries.append({
                "record_id": sequence - 1, "pg_id": 0, "process_group": ("0", "default_pg"),
                "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": sequence, "profiling_name": "nccl:all_reduce",
                "time_created_ns": 10**18 + sequence * 10**6, "input_sizes": [[1024]], "output_sizes": [[1024]],
                "input_dtypes": ["Float"], "output_dtypes": ["Float"], "state": "completed" if done else "started",
                "time_discovered_started_ns": 10**18 + sequence * 10**6 + 1,
                "time_discovered_completed_ns": 10**18 + sequence * 10**6 + 2 if done else None,
                "retired": done, "timeout_ms": 600000, "is_p2p": False, "frames": []})
        state = {"last_enqueued_collective": entries[-1]["collective_seq_id"],
                 "last_started_collective": entries[-1]["collective_seq_id"], "last_completed_collective": 5}
        dump = {"version": "2.10", "entries": entries, "pg_status": {"0": state},
                "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}}}
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, protocol=2))


@unittest.skipUnless(MPIRUN_PATH and os.access(PROGRAM, os.X_OK),
                     f"mpirun or {PROGRAM} is not there: scripts/packages.txt has Open MPI's packages for the tests")
class LockstepMpiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lkmpi-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        # Two kinds of groups, clocks apart, allocations, a late rank, a rank that left no file and one whose file is
        # cut; and a file that is not a trace.
        cls.job = cls.folder / "job"
        generate(cls.job, "--ranks", "8", "--steps", "4", "--layers", "4", "--tensor-parallel", "2", "--memory",
                 "--offset-us", "0,700,-300,0,0,1200,0,0", "--straggler", "3:4000:loader", "--missing", "5",
                 "--cut", "6:0.6")
        (cls.job / "rank99.json").write_text("no trace at all\n", encoding="ascii")
        cls.other = cls.folder / "other"
        generate(cls.other, "--ranks", "8", "--steps", "4", "--layers", "4", "--tensor-parallel", "2", "--seed", "7",
                 "--kernel-scale", "1.2")

    def assert_same(self, process_counts, *arguments, status=None):
        expected = plain(*arguments)
        if status is not None:
            self.assertEqual(status, expected.returncode, expected.stderr)
        for count in process_counts:
            with self.subTest(processes=count, arguments=arguments):
                done = mpi(count, *arguments)
                self.assertEqual(expected.stdout, done.stdout, done.stderr.decode())
                self.assertEqual(expected.returncode, done.returncode)

    def test_analyze_prints_the_same_for_every_number_of_processes(self):
        self.assert_same((1, 2, 4, 8), "analyze", "--json", self.job, status=PARTIAL)
        self.assert_same((3,), "analyze", "--section", "all", "--fail-on", "warning", self.job)
        self.assert_same((2,), "analyze", self.other, status=0)
        self.assert_same((1, 3), "analyze", "--json", "--what-if", self.other, status=0)

    def test_operation_traces_are_read_by_one_process(self):
        rows = [(rank, 0, step, kind, 0.1 * step + start, duration) for step in range(3) for rank in range(4)
                for kind, start, duration in (("forward-compute", 0.0, 0.02 + 0.01 * (rank == 2)), ("backward-compute", 0.04, 0.04),
                                              ("grads-sync", 0.08, 0.01))]
        path = self.folder / "operations.csv"
        path.write_text("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n" + "".join(
            f"{rank},{stage},{rank},{step},{kind},{start:.3f},{duration:.3f},0,0,0,0\n"
            for rank, stage, step, kind, start, duration in rows), encoding="ascii")
        self.assert_same((1, 2), "analyze", "--json", path, status=0)

    @unittest.skipUnless(os.access(NCCL_JOB, os.X_OK), f"{NCCL_JOB} is not built: build the whole tree")
    def test_rings_of_the_nccl_plugin(self):
        """Who is whose peer is known only when all are read."""
        rings = self.folder / "rings"
        rings.mkdir()
        subprocess.run([NCCL_JOB, "4", "5", "2", "5", "6", "0"], check=True, capture_output=True, timeout=PATIENCE_S,
                       env={**os.environ, "LOCKSTEP_NCCL_DIR": str(rings)})
        self.assertIn(b"0->1", plain("analyze", "--json", rings).stdout)
        self.assert_same((1, 3), "analyze", "--json", rings, status=0)

    def test_rings_beside_traces(self):
        folder = self.folder / "rings and traces"
        (folder / "rings").mkdir(parents=True)
        subprocess.run([NCCL_JOB, "4", "5", "2", "5", "6", "0"], check=True, capture_output=True, timeout=PATIENCE_S,
                       env={**os.environ, "LOCKSTEP_NCCL_DIR": str(folder / "rings")})
        generate(folder / "traces", "--ranks", "4", "--steps", "6", "--layers", "2", "--naming", "torch")
        (folder / "traces.truth.json").unlink()
        self.move_to(folder / "traces", folder / "rings")
        answer = json.loads(plain("analyze", "--json", folder).stdout)
        self.assertEqual([0, 1, 2, 3], [row["rank"] for row in answer["data"]["ranks"]])
        self.assert_same((1, 3), "analyze", "--json", folder, status=0)
        self.assert_same((2,), "analyze", "--section", "all", folder)

    def test_two_forms_of_a_report_and_a_table_of_kernels(self):
        """The forms are read by different processes; only one of them says the ranks."""
        folder = self.folder / "forms"
        folder.mkdir()
        rows, messages = [], [{"data": [f"RANK={rank}\0WORLD_SIZE=2" for rank in (1, 0)]}]
        for place in range(2):
            process = (29 + place) << 24
            messages.append({"Type": 27, "CommEvent": {"Timestamp": "1", "GlobalPid": str(process), "EnvironId": place}})
            for step in range(5):
                start = 1000 * step + 100 * place
                rows.append({"domainId": 0, "end": start + 700, "eventType": 59, "globalTid": process + 1, "start": start,
                             "table": "NVTX_EVENTS", "text": f"step {step}"})
                messages.append({"Type": 59, "NvtxEvent": {
                    "Type": 59, "Timestamp": str(start), "Text": f"step {step}", "GlobalTid": str(process + 1),
                    "EndTimestamp": str(start + 700), "DomainId": "0"}})
        rows.append({"table": "TARGET_INFO_SESSION_START_TIME", "utcEpochNs": 1_700_000_000_000_000_000})
        for name, lines in (("report.jsonl", rows), ("report.json", messages)):
            (folder / name).write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="ascii")
        (folder / "rank0_cuda_gpu_kern_sum.csv").write_text(
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
            "100.0,900,3,300.0,300.0,200,400,0.0,gemm\n", encoding="ascii")
        answer = json.loads(plain("analyze", "--json", folder).stdout)
        self.assertEqual([row["rank"] for row in answer["data"]["ranks"]], [0, 1])
        self.assertEqual([row["total_ns"] for row in answer["data"]["kernel_sums"]], [900])
        self.assertEqual([row["count"] for row in answer["ledger"] if row["code"] == "same_recording"], [2])
        self.assert_same((1, 2, 3), "analyze", "--json", folder, status=0)

    def move_to(self, traces, recorded, holding=None):
        """Gives generated traces the time of what was recorded just now: the middle of what all ranks recorded, or where it is nearest of those
        moments at which each rank has an event of the name `holding` within the traces' time."""
        rows_of = lambda path, query: json.loads(plain("query", path, query, "--json").stdout)["rows"]
        bounds = lambda path: rows_of(path, "select min(start_ns) as first, max(end_ns) as last from events group by rank")
        middle = lambda rows: (max(row["first"] for row in rows) + min(row["last"] for row in rows)) // 2
        trace_bounds, to_ns = bounds(traces), middle(bounds(recorded))
        if holding:
            length_ns = min(row["last"] for row in trace_bounds) - max(row["first"] for row in trace_bounds)
            newest, places = {}, []
            for row in rows_of(recorded, f"select rank, start_ns from events where name = '{holding}' order by start_ns"):
                newest[row["rank"]] = row["start_ns"]
                if len(newest) == len(trace_bounds) and row["start_ns"] - min(newest.values()) < length_ns // 2:
                    places.append((row["start_ns"] + min(newest.values())) // 2)
            self.assertTrue(places, "at no moment had all ranks run within half of the traces' time")
            to_ns = min(places, key=lambda place_ns: abs(place_ns - to_ns))
        by_ns = to_ns - middle(trace_bounds)
        for path in traces.iterdir():
            text = path.read_text(encoding="utf-8")
            moved = re.sub(r'("baseTimeNanoseconds": ?)(\d+)', lambda found: found[1] + str(int(found[2]) + by_ns), text, count=1)
            self.assertNotEqual(text, moved)
            path.write_text(moved, encoding="utf-8")

    def spans_beside(self, name, *options):
        """A generated job, and spans that a real program recorded as its ranks, moved to the job's time: a file that begins
        before the trace and ends after it, and for rank 1 a second process."""
        folder = self.folder / name
        generate(folder / "traces", "--ranks", "4", "--steps", "6", "--layers", "2", "--straggler", "2:4000:loader", *options)
        (folder / "traces.truth.json").unlink()
        job = pathlib.Path(BINARY).with_name("lockstep_span_job")
        running = [subprocess.Popen([job, mode, str(count)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={
            **os.environ, "LOCKSTEP_TRACE": str(folder / "spans"), "RANK": str(rank), "WORLD_SIZE": "4"})
            for rank, mode, count in ((0, "requests", 3000), (1, "requests", 3500), (1, "requests", 4000), (2, "requests", 3200), (3, "requests", 3400))]
        for process in running:
            _, said = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(0, process.returncode, said)
        self.move_to(folder / "traces", folder / "spans", holding="call")
        return folder

    def test_spans_join_the_traces_of_their_ranks(self):
        # By the name of a file its rank is known before it is read, and so who is to read it; or it is not.
        for name, options in (("named", ()), ("unnamed", ("--naming", "torch"))):
            folder = self.spans_beside(name, *options)
            answer = json.loads(plain("analyze", "--json", folder).stdout)
            rows = {row["code"]: row for row in answer["ledger"]}
            self.assertEqual([0, 1, 2, 3], [row["rank"] for row in answer["data"]["ranks"]])
            counted = json.loads(plain("query", folder, "select rank, count(*) as n from events where name = 'call' "
                                       "group by rank order by rank", "--json").stdout)["rows"]
            self.assertEqual([0, 1, 2, 3], [row["rank"] for row in counted], "spans are in the time of the traces")
            self.assertIn("spans_outside_trace", rows)
            self.assert_same((1, 2, 3, 4), "analyze", "--json", folder, status=0)
            self.assert_same((3,), "analyze", "--section", "all", folder)
            for form in ("pftrace", "json"):
                expected = plain("merge", "-q", "-o", folder / f"plain.{form}", folder / "spans", folder / "traces")
                done = mpi(3, "merge", "-q", "-o", folder / f"team.{form}", folder / "spans", folder / "traces")
                self.assertEqual((0, 0), (expected.returncode, done.returncode), done.stderr)
                self.assertEqual((folder / f"plain.{form}").read_bytes(), (folder / f"team.{form}").read_bytes())
                (folder / f"plain.{form}").unlink()
                (folder / f"team.{form}").unlink()
            self.assert_same((2,), "analyze", "--json", folder / "spans", status=0)

    def test_pages_and_tables_are_the_same(self):
        for count, where in ((0, self.folder / "plain"), (3, self.folder / "team")):
            words = ("analyze", "-q", "--csv", where, "-o", where.with_suffix(".html"), self.other)
            done = mpi(count, *words) if count else plain(*words)
            self.assertEqual(0, done.returncode, done.stderr)
        for path in sorted((self.folder / "plain").iterdir()):
            self.assertEqual(path.read_bytes(), (self.folder / "team" / path.name).read_bytes(), path.name)
        self.assertEqual((self.folder / "plain.html").read_bytes(), (self.folder / "team.html").read_bytes())

    def test_compare_prints_the_same(self):
        self.assert_same((1, 3), "compare", "--json", self.other, self.job)

    def test_merge_writes_the_same(self):
        for name in ("job.json.gz", "job.pftrace"):
            expected = plain("merge", "-q", "-o", self.folder / f"plain.{name}", self.job)
            done = mpi(3, "merge", "-q", "-o", self.folder / f"team.{name}", self.job)
            self.assertEqual(expected.returncode, done.returncode, done.stderr)
            self.assertEqual((self.folder / f"plain.{name}").read_bytes(), (self.folder / f"team.{name}").read_bytes())

    def test_hang_prints_the_same(self):
        dumps = self.folder / "dumps"
        write_dumps(dumps, ranks=6, late_rank=4)
        (dumps / "nccl_trace_rank_6").write_bytes(b"\x80\x02}q\x00(X")
        self.assertIn(b"rank 4", plain("hang", dumps).stdout)
        self.assert_same((1, 4), "hang", "--json", dumps)
        self.assert_same((2,), "hang", "--all", dumps)

    def test_errors_are_those_of_lockstep(self):
        for words, status in ((("analyze", self.folder / "nowhere"), FAILED), (("analyze", "--pass", "idel", self.job), MISUSED),
                              (("analyze",), MISUSED), (("query", self.job), MISUSED)):
            with self.subTest(words=words):
                expected = plain(*words)
                done = mpi(2, *words)
                self.assertEqual((status, b""), (done.returncode, done.stdout), done.stderr)
                if words[0] != "query":  # Which is none of its commands.
                    self.assertIn(expected.stderr.splitlines()[0], done.stderr)
        done = mpi(2, "analyze", "--deadline", "soon", self.job)
        self.assertEqual(MISUSED, done.returncode)
        self.assertIn(b"--deadline 600", done.stderr)

    def test_processes_that_do_not_know_each_other_are_told_so(self):
        done = subprocess.run([PROGRAM, "analyze", self.job], capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE_S,
                              env=mpi_environment(SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="4"))
        self.assertEqual((MISUSED, b""), (done.returncode, done.stdout))
        self.assertIn(b"pass --mpi=pmix to srun", done.stderr)

    def test_a_killed_process_ends_all(self):
        # The root waits until the other is gone: it cannot have ended before.
        stopped = subprocess.Popen([*MPIRUN, "-np", "2", "sh", "-c", 'kill -STOP $$; exec "$0" "$@"', PROGRAM, "analyze",
                                    self.job], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   env=mpi_environment())
        try:
            children = wait_until(lambda: self.stopped_children(stopped.pid), "both to have stopped")
            os.kill(children["1"], signal.SIGKILL)
            os.kill(children["0"], signal.SIGCONT)
            out, err = stopped.communicate(timeout=PATIENCE_S)
        finally:
            stopped.kill()
        self.assertNotEqual(0, stopped.returncode)
        if IS_MPICH:  # Whose launcher tells on its output, where nothing of ours may stand.
            self.assertNotIn(b"WHERE THE TIME GOES", out)
            err, out = out, b""
        self.assertEqual(b"", out)
        self.assertIn(b"signal 9", err)

    def test_a_deadline_ends_all(self):
        # One process stays stopped, so that the other waits for it.
        done = subprocess.run([*MPIRUN, "-np", "2", "sh", "-c",
                               f'[ ${RANK_VARIABLE} = 0 ] || sleep 600; exec "$0" "$@"', PROGRAM, "analyze",
                               "--deadline", "1", self.job], capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE_S, env=mpi_environment())
        if IS_MPICH:  # Whose launcher tells the status of either: the one that gave up, or the one that it then killed.
            self.assertIn(done.returncode, (FAILED, signal.SIGKILL))
            self.assertNotIn(b"WHERE THE TIME GOES", done.stdout)
        else:
            self.assertEqual((FAILED, b""), (done.returncode, done.stdout))
        self.assertIn(b"lockstep-mpi: not done after 1 s", done.stderr)

    @staticmethod
    def stopped_children(parent):
        """Both processes by MPI rank, once both have stopped themselves. MPICH's launcher has them through another process."""
        found = {}
        parents = [parent]
        while parents:
            pids = [pid for children in pathlib.Path(f"/proc/{parents.pop()}/task").glob("*/children") for pid in children.read_text().split()]
            parents += pids
            for pid in pids:
                try:
                    if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "T":
                        continue
                    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                except OSError:  # It has just ended.
                    return None
                for variable in environment:
                    if variable.startswith(f"{RANK_VARIABLE}=".encode()):
                        found[variable.partition(b"=")[2].decode()] = int(pid)
        return found if len(found) == 2 else None


if __name__ == "__main__":
    unittest.main()
