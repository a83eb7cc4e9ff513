"""`lockstep.logging`: what Python's standard logging writes with it, alone, in jobs, over forks, and on disks that are bad."""

import contextlib
import gzip
import io
import json
import logging
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

from lockstep_program import BINARY, SOURCE
from waiting import PATIENCE_S, wait_until

sys.path.insert(0, str(SOURCE / "python"))
import lockstep.logging

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z \d+\.\d{9} ([TDIWEF]) rank(-|\d+) ([\w.-]+) ([\w.-]+): (.*)")


class LoggingTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "logs"
        self.logger = logging.getLogger(f"test.{self.id()}")
        self.logger.propagate = False

    def setup_logging(self, folder=None, **options):
        options.setdefault("rank", 3)
        handler = lockstep.logging.setup(folder or self.folder, logger=self.logger, console="none", **options)
        self.addCleanup(handler.close)
        return handler

    def lines(self):
        """Level and text of all files, the older first."""
        found = []
        for path in sorted(self.folder.iterdir(), key=lambda path: -int(path.suffix[1:]) if path.suffix[1:].isdigit() else 0):
            for line in path.read_text(encoding="utf-8").splitlines():
                match = LINE.fullmatch(line)
                self.assertTrue(match, line)
                self.assertEqual("3", match[2])
                found.append((match[1], match[5]))
        return found

    def run_python(self, code, **variables):
        inherited = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCKSTEP_LOG_DIR")}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              stdin=subprocess.DEVNULL, env={**inherited, "PYTHONPATH": str(SOURCE / "python"), **variables})

    def test_lines_carry_level_rank_and_text(self):
        self.setup_logging(level="DEBUG")
        self.logger.debug("low %d", 1)
        self.logger.info("täglich")
        try:
            raise ValueError("planted")
        except ValueError:
            self.logger.exception("it broke")
        lines = self.lines()
        self.assertEqual([("D", "low 1"), ("I", "täglich"), ("E", "it broke"), ("E", "Traceback (most recent call last):")], lines[:4])
        self.assertEqual(("E", "ValueError: planted"), lines[-1])

    def test_lockstep_logs_reads_what_it_writes_in_both_forms(self):
        for is_json in (False, True):
            self.setup_logging(json=is_json)
            self.logger.warning('form %s "quoted"\nsecond', is_json)
        done = subprocess.run([BINARY, "logs", str(self.folder), "--json"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        found = [json.loads(line) for line in done.stdout.splitlines()][:-1]
        self.assertEqual(['form False "quoted"', "second", 'form True "quoted"\nsecond'], [line["text"] for line in found])
        self.assertEqual({("warning", (3,))}, {(line["level"], tuple(line["ranks"])) for line in found})

    def unpacked(self, handler):
        """Texts of all files of a handler, the older first, whatever they are by now."""
        texts = []
        stem = pathlib.Path(handler.path)
        for age in range(999, -1, -1):
            plain = stem.with_name(stem.name + (f".{age}" if age else ""))
            packed = plain.with_name(plain.name + ".gz")
            data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes()) if packed.exists() else b""
            texts += [LINE.fullmatch(line)[5] for line in data.decode().splitlines()]
        return texts

    def test_rotated_files_are_compressed_where_that_is_asked_for(self):
        handler = self.setup_logging(max_bytes=20_000, files=100, compress=True)
        for i in range(2000):
            self.logger.info("line %d", i)
        more = 2000

        def are_compressed():
            nonlocal more
            if sum(path.suffix == ".gz" for path in self.folder.iterdir()) >= 5:
                return True
            self.logger.info("line %d", more)
            more += 1
            return False
        wait_until(are_compressed, "compressed files")
        self.assertEqual([f"line {i}" for i in range(more)], self.unpacked(handler))
        done = subprocess.run([BINARY, "logs", str(self.folder), "--no-fold"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.assertEqual([f"line {i}" for i in range(more)], [line.partition(": ")[2] for line in done.stdout.splitlines()])
        handler.close()
        self.assertFalse(list(self.folder.glob("*.tmp")))

    def test_a_reader_knows_a_compressed_file_again(self):
        handler = self.setup_logging(max_bytes=20_000, files=5, compress=True)
        rotated = pathlib.Path(handler._folder)  # Until there is a file.
        while not rotated.is_file():
            self.logger.info("a line that is as long as they are")
            rotated = pathlib.Path(f"{handler.path}.1")
        inode = rotated.stat().st_ino

        def is_packed():  # It gets its new name with a line that is logged, not before; and another number when others follow.
            self.logger.info("another")
            return any(b"lockstep inode %d\0" % inode in path.read_bytes()[:64] for path in self.folder.glob("*.gz"))
        wait_until(is_packed, "the compressed file", every_s=0.1)
        self.assertNotIn(inode, [path.stat().st_ino for path in self.folder.iterdir()])

    def test_a_forked_child_compresses_nothing(self):
        code = f"""
import logging, os, sys
import lockstep.logging
lockstep.logging.setup({str(self.folder)!r}, console="none", max_bytes=2000, files=50, compress=True, rank=3)
for i in range(100): logging.info("parent %d", i)
child = os.fork()
if child == 0:
    for i in range(100): logging.info("child %d", i)
    os._exit(0)
os.waitpid(child, 0)
print(child)
"""
        done = self.run_python(code)
        self.assertEqual(0, done.returncode, done.stderr)
        of_child = [path.name for path in self.folder.iterdir() if f"pid{done.stdout.strip()}." in path.name]
        self.assertGreater(len(of_child), 3)
        self.assertFalse([name for name in of_child if name.endswith((".gz", ".tmp"))])
        shown = subprocess.run([BINARY, "logs", str(self.folder), "--no-fold"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        texts = [line.partition(": ")[2] for line in shown.stdout.splitlines()]
        self.assertEqual([f"parent {i}" for i in range(100)], [text for text in texts if text.startswith("parent")])
        self.assertEqual([f"child {i}" for i in range(100)], [text for text in texts if text.startswith("child")])

    def test_files_are_rotated(self):
        self.setup_logging(max_bytes=1000, files=3)
        for i in range(40):
            self.logger.info("line %d", i)
        self.assertEqual(3, len(list(self.folder.iterdir())))
        self.assertLessEqual(max(path.stat().st_size for path in self.folder.iterdir()), 1000)
        lines = self.lines()
        self.assertEqual([("I", f"line {i}") for i in range(40 - len(lines), 40)], lines)

    def test_where_no_new_file_is_to_be_had_each_old_one_is_kept(self):
        handler = self.setup_logging(max_bytes=100, files=3)
        for i in range(3):
            self.logger.info("line %d", i)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest = os.dup(0)
        with mock.patch.object(lockstep.logging, "_RETRY_S", 0), contextlib.redirect_stderr(io.StringIO()):
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
            try:
                for i in range(5):
                    self.logger.info("lost %d", i)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
                os.close(lowest)
        self.assertEqual((5, 3), (handler.lost_count, len(list(self.folder.iterdir()))))
        self.assertEqual([("I", f"line {i}") for i in range(3)], self.lines())

    def test_a_child_has_a_file_of_its_own(self):
        handler = self.setup_logging()
        self.logger.info("parent")
        noisy = threading.Event()
        other = threading.Thread(target=lambda: [self.logger.info("noise") for _ in iter(noisy.is_set, True)])
        other.start()
        try:
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    self.logger.info("child")
                    os._exit(0 if handler.path and f"pid{os.getpid()}." in handler.path else 1)
                self.assertEqual(0, os.waitpid(child, 0)[1])
        finally:
            noisy.set()
            other.join()
        texts = [text for _, text in self.lines()]
        self.assertEqual((1, 5, 6), (texts.count("parent"), texts.count("child"), len(list(self.folder.iterdir()))))

    def test_a_folder_that_cannot_be_made_is_said_once_and_breaks_nothing(self):
        done = self.run_python("import logging, lockstep.logging as l; h = l.setup('/proc/no/such', console='none');"
                               "[logging.info('x') for _ in range(3)]; print(h.lost_count)")
        self.assertEqual((0, "3\n"), (done.returncode, done.stdout))
        self.assertEqual(1, done.stderr.count("\n"), done.stderr)
        self.assertIn("lines of the log are lost", done.stderr)

    def test_what_was_lost_is_counted_and_said(self):
        # A limit of the files' size stands for a full disk.
        code = f"""
import logging, resource, signal, lockstep.logging as l
h = l.setup({str(self.folder)!r}, rank=3, console='none')
logging.info('first')
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
old = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (h._size + 10, old[1]))
logging.info('lost'); logging.info('lost')
resource.setrlimit(resource.RLIMIT_FSIZE, old)
h._next_try = 0
logging.info('again')
"""
        done = self.run_python(code)
        self.assertEqual(0, done.returncode, done.stderr)
        lines = self.lines()
        self.assertEqual([("I", "first"), ("I", "again")], [lines[0], lines[-1]])
        self.assertRegex(lines[1][1], r"^2 lines were lost here: .*File too large")

    def test_rank_zero_alone_is_on_the_console(self):
        code = f"import logging, lockstep.logging as l; l.setup({str(self.folder)!r}); logging.warning('hello')"
        self.assertRegex(self.run_python(code, RANK="0").stderr, r"^\S+ \S+ W rank0 \S+ root: hello\n$")
        self.assertEqual("", self.run_python(code, RANK="1").stderr)

    def test_importing_it_loads_neither_numpy_nor_the_compiled_part(self):
        done = self.run_python("import sys, lockstep.logging; print([n for n in sys.modules if n.split('.')[0] in ('numpy', 'torch')"
                               " or n == 'lockstep._native'])")
        self.assertEqual("[]\n", done.stdout)

    def test_under_lockstep_run_there_is_one_log_and_it_keeps_levels_and_names(self):
        code = "import logging, lockstep.logging as l; l.setup(); logging.getLogger('trainer').error('no'); print('plain')"
        done = subprocess.run([BINARY, "run", "--profile", "none", "--logs", str(self.folder), "--", sys.executable, "-c", code],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PYTHONPATH": str(SOURCE / "python"), "RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "4"})
        self.assertEqual(0, done.returncode, done.stderr)
        (path,) = self.folder.iterdir()
        matches = [LINE.fullmatch(line) for line in path.read_text().splitlines()]
        self.assertEqual({("E", "trainer", "no"), ("I", "out", "plain")}, {(match[1], match[4], match[5]) for match in matches})


if __name__ == "__main__":
    unittest.main()
