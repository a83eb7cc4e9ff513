"""What libkineto does in a training process, as far as a daemon sees it: polls, takes a configuration, writes the file. The
real one is in tests/process; this one is quick, and can be told to misbehave. Message layout: docs/formats/kineto-ipc.md."""

import os
import pathlib
import secrets
import socket
import struct
import threading
import time

HEADER = struct.Struct("Q32s")


class KinetoClient:
    """One process's profiler. `configs` holds every text that it was given."""

    def __init__(self, daemon, job_id=0, pids=None, period_s=0.1):
        self.daemon = b"\0" + daemon.encode() + b"\0"
        self.job_id = job_id
        self.pids = pids or [os.getpid()]
        self.period_s = period_s
        self.configs = []
        self.written = []
        self.is_busy = False
        self._traces = []
        self._stop = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(b"\0dynoconfigclient" + secrets.token_hex(16).encode() + b"\0")
        self._socket.settimeout(2)
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def close(self):
        self._stop.set()
        self._thread.join()
        for trace in self._traces:
            trace.join()
        self._socket.close()

    def _poll(self):
        while not self._stop.wait(self.period_s):
            mask = 1 if self.is_busy else 3
            payload = struct.pack(f"iiq{len(self.pids)}i", mask, len(self.pids), self.job_id, *self.pids)
            try:
                self._socket.sendto(HEADER.pack(len(payload), b"req") + payload, self.daemon)
                reply = self._socket.recv(1 << 16)
            except TimeoutError:  # A busy machine: what would come too late is not sent. The next poll is another chance.
                continue
            size, _ = HEADER.unpack_from(reply)
            if size:
                text = reply[HEADER.size:HEADER.size + size].decode()
                self.configs.append(text)
                self._traces.append(threading.Thread(target=self._trace, args=(text,), daemon=True))
                self._traces[-1].start()

    def _trace(self, text):
        values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        start_s = int(values.get("PROFILE_START_TIME", 0)) / 1000
        time.sleep(max(0.0, start_s - time.time()))
        self.is_busy = True
        path = pathlib.Path(values["ACTIVITIES_LOG_FILE"])
        final = path.with_name(path.name.replace(".json", f"_{self.pids[0]}.json", 1))
        now_us = time.time_ns() / 1000
        temporary = pathlib.Path(str(final) + ".tmp")
        temporary.write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", '
                             f'"pid": {self.pids[0]}, "tid": 1, "ts": {now_us:.3f}, "dur": 100.000}}]}}', encoding="utf-8")
        time.sleep(3 * self.period_s)
        temporary.rename(final)
        self.written.append(final)
        self.is_busy = False
