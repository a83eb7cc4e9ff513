"""`lockstep stages --job` of jobs that run: asked of real daemons, of several nodes, and of answers that are wrong."""

import base64
import http.server
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import threading
import unittest

import faulty_job
from pytorch import JobCase, job_environment, torchrun
from waiting import PATIENCE_S, wait_until

sys.path.insert(0, str(pathlib.Path(os.environ["LOCKSTEP_SOURCE"]) / "tests" / "daemon"))
from daemon_process import Daemon  # noqa: E402

BINARY = os.environ["LOCKSTEP_BINARY"]
RECORDING_RANK = pathlib.Path(BINARY).with_name("lockstep_recording_rank")
STAND_IN_RANKS = pathlib.Path(__file__).resolve().parents[1] / "support/stand_in_ranks.py"
DONE, FAILED, MISUSED, PARTIAL = 0, 1, 2, 4
FORWARD, OPTIMIZER, COMMUNICATION = 2, 4, 5  # Of the stages, in their order.


def stages(*words):
    clean = {name: value for name, value in os.environ.items() if name not in ("LOCKSTEP_SOCKET", "http_proxy")}
    return subprocess.run([BINARY, "stages", *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=clean,
                          timeout=PATIENCE_S, check=False)


def live(*words, codes=(DONE,)):
    """The answer's document; None where the command has ended otherwise."""
    done = stages("--json", *words)
    return json.loads(done.stdout) if done.returncode in codes else None


def ledger_codes(document):
    return [row["code"] for row in document["ledger"]]


class LiveJobTest(JobCase):
    def test_a_running_job_is_answered_and_again_after_the_daemon_was_killed(self):
        job_id = f"live{secrets.token_hex(4)}"
        command = [BINARY, "run", f"--stages={self.folder / job_id}", "--",
                   *torchrun(self.python, 3, "--rdzv-id", job_id, faulty_job.HERE / "faulty_training.py", "100000", "backward:1:60:every")]
        job = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=job_environment())
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        daemon = Daemon(self)

        def answered(least):
            document = live("--job", job_id, "--socket", daemon.path, "--last", 1000)
            return document if document and len(document["data"]["ranks"]) == 3 and document["data"]["step_count"] >= least else None

        def check(document):
            verdict = document["data"]["verdict"]
            self.assertEqual(("straggler", 1, "backward"), (verdict["answer"], verdict["rank"], verdict["stage"]), verdict["sentence"])
            self.assertFalse(document["partial"])
            self.assertEqual([], document["ledger"])
            return document["data"]

        before = check(wait_until(lambda: answered(20), "20 steps of three ranks", job))
        text = stages("--job", job_id, "--socket", daemon.path)
        self.assertEqual(DONE, text.returncode, text.stderr)
        self.assertIn("Rank 1 costs the job", text.stdout)
        daemon.process.kill()
        daemon.process.wait()
        gone = stages("--job", job_id, "--socket", daemon.path)
        self.assertEqual(FAILED, gone.returncode, gone.stderr)
        self.assertIn("lockstepd", gone.stderr)
        # What was kept is gone with it, and what the files hold is kept again.
        daemon = Daemon(self, folder=daemon.folder)
        after = check(wait_until(lambda: answered(before["step_count"] + 10), "the same steps and ten more", job))
        self.assertEqual(before["steps"][0]["step"], after["steps"][0]["step"])
        self.assertEqual([rank["process_id"] for rank in before["ranks"]], [rank["process_id"] for rank in after["ranks"]])
        few = live("--job", job_id, "--socket", daemon.path, "--last", 10)
        self.assertLessEqual(few["data"]["step_count"], 10)
        self.assertGreater(few["data"]["steps"][0]["step"], after["steps"][0]["step"])
        self.assertIsNone(job.poll())


class NodesTest(unittest.TestCase):
    """Two nodes: process tables of this machine, each with a daemon and four ranks of one job."""

    def setUp(self):
        self.inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        if os.getuid() != 0 or subprocess.run([*self.inside, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("process namespaces cannot be made: run as root, in a container with CAP_SYS_ADMIN")
        scratch = tempfile.TemporaryDirectory(prefix="lkl-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.job = f"nodes{secrets.token_hex(4)}"
        self.daemons, self.ranks = [], []
        for node in (0, 1):
            daemon = Daemon(self, wrapper=self.inside)
            child = pathlib.Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text(encoding="ascii").split()[0]
            ranks = subprocess.Popen(
                ["nsenter", "-t", child, "--pid", "--mount", "--", sys.executable, STAND_IN_RANKS, RECORDING_RANK, self.job, str(4 * node), "4", "8",
                 scratch.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for step in (ranks.stdin.close, ranks.stdout.close, ranks.wait, ranks.kill):
                self.addCleanup(step)
            self.assertEqual("ready\n", ranks.stdout.readline())
            self.daemons.append(daemon)
            self.ranks.append(ranks)
        self.hosts = [f"127.0.0.1:{daemon.ports[0]}" for daemon in self.daemons]

    def step(self, line):
        for ranks in self.ranks:
            ranks.stdin.write(line + "\n")
            ranks.stdin.flush()
        for ranks in self.ranks:
            self.assertEqual("done\n", ranks.stdout.readline())

    def test_ranks_of_all_nodes_are_one_job_and_what_is_missing_is_said(self):
        self.step("30 10 5 6 20")
        both = ("--job", self.job, "--host", ",".join(self.hosts))

        def whole():
            document = live(*both)
            return document if document and document["data"]["step_count"] == 30 else None
        document = wait_until(whole, "thirty steps of eight ranks")
        verdict = document["data"]["verdict"]
        self.assertEqual(("straggler", 6, "forward"), (verdict["answer"], verdict["rank"], verdict["stage"]), verdict["sentence"])
        self.assertEqual(list(range(8)), [rank["rank"] for rank in document["data"]["ranks"]])
        self.assertEqual([], document["ledger"])
        # A node alone: its ranks are told, and that the others are missing.
        one = live("--job", self.job, "--host", self.hosts[0], codes=(PARTIAL,))
        self.assertEqual(["rank_without_stages"], ledger_codes(one))
        self.assertEqual([4, 4], [len(one["data"]["ranks"]), one["ledger"][0]["count"]])
        other = stages("--job", "another", "--host", self.hosts[0])
        self.assertEqual(FAILED, other.returncode)
        self.assertIn("no running rank of job another", " ".join(other.stderr.split()))
        # Without an id: there is one job.
        self.assertEqual(8, len(live("--host", ",".join(self.hosts))["data"]["ranks"]))
        self.daemons[1].process.kill()
        self.daemons[1].process.wait()
        half = live(*both, codes=(PARTIAL,))
        self.assertEqual({"node_without_answer", "rank_without_stages"}, set(ledger_codes(half)))
        self.assertTrue(half["partial"])


def varint(value):
    packed = b""
    while value >= 0x80:
        packed, value = packed + bytes([value & 0x7F | 0x80]), value >> 7
    return packed + bytes([value])


def packed_step(number, start_ns, *spans):
    return varint(number * 2) + varint(start_ns * 2) + varint(len(spans)) + b"".join(varint(ns * 16 + stage) for stage, ns in spans)


def rank_of(rank, numbers, **members):
    """A rank of three that makes steps of 10 ms; rank 2 lets the others wait."""
    wait_ns = 0 if rank == 2 else 5_000_000
    steps = [packed_step(number, 10**18 + place * 10_000_000, (FORWARD, 9_000_000 - wait_ns), (COMMUNICATION, wait_ns + 100), (OPTIMIZER, 999_900))
             for place, number in enumerate(numbers)]
    return {"job_id": "4711", "user": "ada", "rank": rank, "world_size": 3, "pid": 100 + rank, "seen_step_count": len(steps),
            "kept_step_count": len(steps), "steps": base64.b64encode(b"".join(steps)).decode(), **members}


class MadeDaemon(http.server.ThreadingHTTPServer):
    """Answers every question alike; `answer` is JSON, or a text that is none. Its `asked` are the paths."""

    def __init__(self, test, answer, status=200):
        body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.asked = asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        thread = threading.Thread(target=self.serve_forever)
        thread.start()
        for step in (self.server_close, thread.join, self.shutdown):
            test.addCleanup(step)


class AnswersTest(unittest.TestCase):
    def ask(self, *rank_lists, flags=(), **options):
        daemons = [MadeDaemon(self, {"host": f"n{i}", "ranks": ranks}, **options) for i, ranks in enumerate(rank_lists)]
        return stages("--json", "--job", "4711", "--host", ",".join(daemon.host for daemon in daemons), *flags), daemons

    def document(self, *rank_lists, code=DONE, flags=()):
        done, _ = self.ask(*rank_lists, flags=flags)
        self.assertEqual(code, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_a_whole_job(self):
        document = self.document([rank_of(0, range(20)), rank_of(1, range(20))], [rank_of(2, range(20))])
        self.assertEqual(("straggler", 2), (document["data"]["verdict"]["answer"], document["data"]["verdict"]["rank"]))
        self.assertEqual(["n0", "n0", "n1"], [rank["host"] for rank in document["data"]["ranks"]])

    def test_what_a_daemon_had_no_room_for_is_said(self):
        few = rank_of(1, range(30, 50), seen_step_count=50)
        document = self.document([rank_of(0, range(50)), few, rank_of(2, range(50))], code=PARTIAL)
        self.assertEqual([("stage_steps_dropped", 1, 30)], [(row["code"], row["rank"], row["count"]) for row in document["ledger"]])
        self.assertEqual(20, document["data"]["step_count"])
        self.document([rank_of(0, range(50)), few, rank_of(2, range(50))], flags=("--last", 20))

    def test_numbers_that_begin_again_are_counted_from_the_ranks_begin(self):
        ranks = [rank_of(rank, [*range(10, 20), *range(20 - rank)], seen_step_count=100 - rank) for rank in range(3)]
        document = self.document(ranks, flags=("--last", 28))
        self.assertEqual(28, document["data"]["step_count"])
        self.assertEqual((70, 97), (document["data"]["steps"][0]["step"], document["data"]["steps"][-1]["step"]))

    def test_nodes_that_were_looked_at_far_apart_are_asked_for_all(self):
        ahead, behind = ([rank_of(rank, range(first, first + 20), kept_step_count=900, seen_step_count=2000) for rank in ranks]
                         for first, ranks in ((100, (0, 1)), (90, (2,))))
        done, daemons = self.ask(ahead, behind, flags=("--last", 20))
        self.assertEqual(DONE, done.returncode, done.stderr)
        for daemon in daemons:
            self.assertEqual(["/api/v1/stages?job=4711&last=20", "/api/v1/stages?job=4711&last=1024"], daemon.asked)

    def test_several_jobs_are_named(self):
        done, _ = self.ask([rank_of(0, range(5)), rank_of(1, range(5), job_id="4711.b"), rank_of(2, range(5), user="bob")])
        self.assertEqual(MISUSED, done.returncode)
        self.assertIn("--job 4711 of ada, --job 4711 of bob, --job 4711.b of ada", " ".join(done.stderr.split()))
        done, _ = self.ask([rank_of(0, range(5), job_id=None)], [rank_of(0, range(5), job_id=None)])
        self.assertIn("cannot be told apart", " ".join(done.stderr.split()))

    def test_a_rank_whose_bytes_are_no_steps(self):
        for wrong in ("AAAA////", base64.b64encode(packed_step(1, 1, (15, 5))).decode()):
            document = self.document([rank_of(0, range(20)), rank_of(1, range(20)), rank_of(2, [], steps=wrong)], code=PARTIAL)
            self.assertEqual(["unreadable_file", "rank_without_stages"], ledger_codes(document))

    def test_answers_that_are_none(self):
        for answer in ("", "[]", "{", '{"ranks": 3}', '{"ranks": [{"steps": "%"}]}', "\0"):
            daemon = MadeDaemon(self, answer)
            done = stages("--job", "4711", "--host", daemon.host)
            self.assertEqual(FAILED, done.returncode, answer)
            self.assertTrue(done.stderr.startswith("error:") or "lockstep" in done.stderr, done.stderr)
        done = stages("--host", MadeDaemon(self, {"error": {"code": "not_found", "message": "no such path"}}, status=404).host)
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("too old to tell stages", " ".join(done.stderr.split()))

    def test_misuse(self):
        for words in ((), ("--job", "1", "folder"), ("--host", "a", "folder"), ("--last", "5", "folder"), ("--job", "1", "--last", "0"),
                      ("--job", "1", "--last", "1025"), ("--job", "1", "--timeout", "0s")):
            self.assertEqual(MISUSED, stages(*words).returncode, words)


if __name__ == "__main__":
    unittest.main()
