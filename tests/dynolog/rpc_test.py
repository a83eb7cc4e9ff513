"""Dynolog's RPC: requests as its own clients write them, byte for byte, answered by lockstepd; and lockstep capture --dynolog."""

import json
import os
import pathlib
import re
import secrets
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from kineto_client import KinetoClient
from waiting import PATIENCE_S, wait_until

BINARY = pathlib.Path(os.environ["LOCKSTEP_BINARY"])
DAEMON = BINARY.with_name("lockstepd")

# `dyno gputrace --log-file FILE`, as its source builds it: pids and job are pasted in, only newlines are escaped.
GPUTRACE = """
{
    "fn": "setKinetOnDemandRequest",
    "config": "PROFILE_START_TIME=0\\nACTIVITIES_LOG_FILE=%s\\nPROFILE_REPORT_INPUT_SHAPES=false\\nPROFILE_PROFILE_MEMORY=false\\nPROFILE_WITH_STACK=false\\nPROFILE_WITH_FLOPS=false\\nPROFILE_WITH_MODULES=false\\nACTIVITIES_DURATION_MSECS=%d",
    "job_id": %d,
    "pids": [%s],
    "process_limit": %d
}"""


class DynologRpcTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkdyn-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.name = f"lockstep-test-{secrets.token_hex(4)}"
        self.daemon = subprocess.Popen(
            [DAEMON, "--socket", self.folder / "s.sock", "--state", self.folder / "state", "--output", self.folder / "output",
             "--port", "none", "--kineto-name", self.name, "--allow-unsafe", "--dynolog-rpc=0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.daemon.stderr.close)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.terminate)
        said = self.daemon.stderr.readline()
        self.port = int(re.search(r"dynolog-rpc:(\d+)", said)[1])

    def client(self, **options):
        client = KinetoClient(self.name, **options)
        self.addCleanup(client.close)
        return client

    def exchange(self, body, in_pieces=False):
        """What dyno does: length and body, then the answer's; None where the connection was closed without one."""
        data = body if isinstance(body, bytes) else body.encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            length = struct.pack("=i", len(data))
            if in_pieces:  # dyno writes the length and the text in two calls
                connection.sendall(length)
                time.sleep(0.05)
                connection.sendall(data)
            else:
                connection.sendall(length + data)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        if not answer:
            return None
        self.assertEqual(len(answer) - 4, struct.unpack_from("=i", answer)[0])
        return answer[4:].decode()

    def triggered(self, body):
        """Asks again until something matches: a process registers with its first poll."""
        def ask():
            answer = json.loads(self.exchange(body))
            return answer if answer["processesMatched"] else None
        return wait_until(ask, "a match")

    def test_status_and_version_are_answered_in_one_line(self):
        self.assertEqual('{"status":1}', self.exchange('{"fn":"getStatus"}'))
        version = self.exchange('{"fn":"getVersion"}', in_pieces=True)
        self.assertRegex(version, r'^\{"version":"\d+\.\d+\.\d+[^"\n]*"\}$')
        self.assertEqual('{"status":false}', self.exchange('{"fn":"dcgmProfResume"}'))
        self.assertEqual('{"status":false}', self.exchange('{"fn":"dcgmProfPause","duration_s":300}'))

    def test_without_processes_a_trace_request_matches_none(self):
        self.assertEqual('{"activityProfilersBusy":0,"activityProfilersTriggered":[],"eventProfilersBusy":0,'
                         '"eventProfilersTriggered":[],"processesMatched":[]}',
                         self.exchange(GPUTRACE % ("/tmp/libkineto_trace.json", 500, 0, "0", 3)))

    def test_gputrace_puts_the_trace_where_dyno_says_it_will_be(self):
        client = self.client()
        pid = os.getpid()
        log_file = self.folder / "libkineto_trace.json"
        answer = self.triggered(GPUTRACE % (log_file, 200, 0, "0", 3))
        self.assertEqual([pid], answer["processesMatched"])
        self.assertEqual([pid], answer["activityProfilersTriggered"])
        self.assertEqual(0, answer["activityProfilersBusy"])
        self.assertEqual([], answer["eventProfilersTriggered"])
        self.assertRegex(answer["captureId"], r"^[a-z0-9]{16}$")
        traced = self.folder / f"libkineto_trace_{pid}.json"  # dyno prints this name
        wait_until(traced.exists, "the trace")
        self.assertEqual(1, len(client.configs))
        self.assertIn(f"ACTIVITIES_LOG_FILE={log_file}\n", client.configs[0])
        self.assertIn("ACTIVITIES_DURATION_MSECS=200\n", client.configs[0])

    def test_iterations_are_passed_on(self):
        client = self.client()
        body = json.dumps({"fn": "setKinetOnDemandRequest", "pids": [os.getpid()], "job_id": 0, "process_limit": 3, "config":
                           f"ACTIVITIES_LOG_FILE={self.folder}/i.json\nPROFILE_START_ITERATION=0\n"
                           "PROFILE_START_ITERATION_ROUNDUP=1000\nACTIVITIES_ITERATIONS=4\nPROFILE_WITH_STACK=true"})
        self.triggered(body)
        wait_until(lambda: client.configs, "the configuration")
        lines = client.configs[0].splitlines()
        for line in ("PROFILE_START_ITERATION_ROUNDUP=1000", "ACTIVITIES_ITERATIONS=4", "PROFILE_WITH_STACK=true"):
            self.assertIn(line, lines)

    def test_a_file_outside_the_allowed_folders_is_not_written(self):
        client = self.client()
        outside = pathlib.Path("/var/tmp") / f"{self.name}.json"
        answer = self.triggered(GPUTRACE % (outside, 100, 0, "0", 3))
        self.assertIn("is not in a folder that this daemon allows", answer["error"])
        self.assertEqual([os.getpid()], answer["activityProfilersTriggered"])  # traced all the same, to our own folder
        wait_until(lambda: client.written, "the trace")
        self.assertEqual([], list(outside.parent.glob(f"{self.name}*")))

    def test_a_link_on_the_way_is_refused(self):
        self.client()
        (self.folder / "real").mkdir()
        (self.folder / "link").symlink_to("real")
        answer = self.triggered(GPUTRACE % (self.folder / "link" / "t.json", 100, 0, "0", 3))
        self.assertEqual([], answer["activityProfilersTriggered"])
        self.assertIn("error", answer)
        self.assertEqual([], list((self.folder / "real").iterdir()))

    def test_keys_that_kineto_would_obey_and_nobody_asked_for_are_dropped(self):
        client = self.client()
        self.triggered(GPUTRACE % (f"{self.folder}/k.json\\nACTIVITIES_MANIFOLD_PATH=elsewhere\\nSAMPLES_PER_REPORT=1", 100, 0, "0", 3))
        wait_until(lambda: client.configs, "the configuration")
        self.assertNotIn("MANIFOLD", client.configs[0])
        self.assertNotIn("SAMPLES_PER_REPORT", client.configs[0])

    def test_the_limit_and_the_job_are_obeyed(self):
        self.client()
        self.triggered(GPUTRACE % (self.folder / "a.json", 100, 0, "0", 0))
        answer = json.loads(self.exchange(GPUTRACE % (self.folder / "a.json", 100, 0, "0", 0)))
        self.assertEqual([os.getpid()], answer["processesMatched"])
        self.assertEqual([], answer["activityProfilersTriggered"])
        answer = json.loads(self.exchange(GPUTRACE % (self.folder / "a.json", 100, 4242, "0", 3)))
        self.assertEqual([], answer["processesMatched"])
        answer = json.loads(self.exchange(GPUTRACE % (self.folder / "a.json", 100, 0, "999999999", 3)))
        self.assertEqual([], answer["processesMatched"])

    @unittest.skipUnless(os.geteuid() == 0, "another user's request needs root to make")
    def test_another_users_process_does_not_match(self):
        self.client()
        body = GPUTRACE % (self.folder / "o.json", 100, 0, "0", 3)
        self.triggered(GPUTRACE % (self.folder / "o.json", 100, 0, "0", 0))  # it is there, and root's
        script = ("import socket,struct,sys\n"
                  "data=sys.stdin.buffer.read()\n"
                  f"c=socket.create_connection(('127.0.0.1',{self.port}))\n"
                  "c.sendall(struct.pack('=i',len(data))+data)\n"
                  "answer=b''\n"
                  "while piece:=c.recv(65536): answer+=piece\n"
                  "print(answer[4:].decode())")
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c",
                               script], input=body.encode(), capture_output=True, timeout=PATIENCE_S, check=True)
        self.assertEqual([], json.loads(done.stdout)["processesMatched"])

    def test_wrong_fields_are_answered_as_dynolog_does_where_it_survives_them(self):
        self.assertEqual('{"status":"failed"}', self.exchange('{"fn":"setKinetOnDemandRequest","pids":[0]}'))
        self.assertIn("failed with exception", self.exchange('{"fn":"setKinetOnDemandRequest","config":1,"pids":[0]}'))
        self.assertIn("failed with exception", self.exchange('{"fn":"dcgmProfPause","duration_s":"x"}'))  # ends a Dynolog
        self.assertEqual('{"status":1}', self.exchange('{"fn":"getStatus"}'))

    def test_what_is_no_request_is_closed_without_an_answer(self):
        for body in (b"", b"{", b"[]", b'{"fn":"getHosts"}', b"\xff\xfe", b"[" * 60000):
            with self.subTest(body=body[:20]):
                self.assertIsNone(self.exchange(body))

    def test_a_lying_length_costs_nothing(self):
        for length in (-1, 2**31 - 1, 70_000):
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
                connection.sendall(struct.pack("=i", length))
                self.assertEqual(b"", connection.recv(1))
        self.assertEqual('{"status":1}', self.exchange('{"fn":"getStatus"}'))

    def test_a_silent_client_does_not_hold_up_the_others(self):
        silent = [socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) for _ in range(20)]
        self.assertEqual('{"status":1}', self.exchange('{"fn":"getStatus"}'))
        for connection in silent:
            self.assertEqual(b"", connection.recv(1))  # its deadline
            connection.close()

    def capture(self, *arguments, allow=("--allow-unsafe",)):
        return subprocess.run([BINARY, "capture", "--dynolog", f"127.0.0.1:{self.port}", *allow, *map(str, arguments)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def test_lockstep_captures_through_it(self):
        client = self.client()
        self.triggered(GPUTRACE % (self.folder / "x.json", 100, 0, "0", 0))
        folder = self.folder / "traces"
        done = self.capture("--duration", "100ms", "--start-in", "now", "-o", folder, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        traces = sorted(path.name for path in folder.glob("*.json.gz"))
        self.assertEqual(1, len(traces), os.listdir(folder))
        self.assertRegex(traces[0], rf"^127\.0\.0\.1-pid{os.getpid()}-.*-100ms\.json\.gz$")
        self.assertEqual([], list(folder.glob("dynolog-*")))
        self.assertIn("ACTIVITIES_DURATION_MSECS=100\n", client.configs[0])

    def test_without_processes_capture_says_what_to_look_at(self):
        done = self.capture("-o", self.folder / "none")
        self.assertEqual(1, done.returncode)
        self.assertIn("KINETO_USE_DAEMON=1", done.stderr)
        self.assertFalse((self.folder / "none").exists())

    def test_ranks_are_refused_since_dynolog_does_not_know_them(self):
        done = self.capture("--ranks", "0", "-o", self.folder / "none")
        self.assertEqual(2, done.returncode)
        self.assertIn("Dynolog cannot select ranks", done.stderr)

    def test_that_kineto_may_end_a_process_is_asked_of_the_user(self):
        done = self.capture("-o", self.folder / "none", allow=())
        self.assertEqual(1, done.returncode)
        self.assertIn("--allow-unsafe", done.stderr)


if __name__ == "__main__":
    unittest.main()
