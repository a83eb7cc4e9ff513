"""Errors are exceptions that name file, rank and remedy; partial runs warn."""

import gzip
import os
import pathlib
import pickle
import tempfile
import unittest
import warnings

import lockstep
from samples import RECORDED, recorded, trace, write_job


class ErrorsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def raised(self, kind, *paths, **options):
        with self.assertRaises(kind) as context:
            lockstep.load(*paths, **options)
        return context.exception

    def test_a_path_that_is_not_there(self):
        error = self.raised(lockstep.NotFoundError, self.folder / "nowhere")
        self.assertIsInstance(error, FileNotFoundError)
        self.assertIsInstance(error, lockstep.Error)
        self.assertEqual((error.code, error.rank, error.byte_offset), ("not_found", None, None))
        self.assertTrue(error.file.endswith("nowhere"))
        self.assertEqual(error.filename, error.file)
        self.assertIn("nowhere", str(error))
        self.assertIn("check the path", str(error))

    def test_a_folder_without_traces(self):
        self.assertIsInstance(self.raised(lockstep.NotFoundError, self.folder), OSError)

    def test_a_file_that_is_no_trace(self):
        path = self.folder / "rank3.json"
        path.write_text("[1, 2", encoding="utf-8")
        error = self.raised(lockstep.Error, path)
        self.assertIn("rank3.json", str(error))
        self.assertIsInstance(self.raised(lockstep.CorruptDataError, path), ValueError)

    def test_a_compression_that_is_not_read(self):
        path = self.folder / "rank0.json.bz2"
        path.write_bytes(b"BZh91AY&SY" + b"\0" * 64)
        error = self.raised(lockstep.UnsupportedError, path)
        self.assertEqual(error.code, "unsupported")
        self.assertIn("rank0.json.bz2", str(error))

    def test_a_bomb_is_stopped_at_the_limit(self):
        path = self.folder / "rank0.json.gz"
        path.write_bytes(gzip.compress(b" " * (1 << 20)))
        error = self.raised(lockstep.LimitExceededError, path, max_json_bytes=100_000)
        self.assertEqual((error.code, error.file), ("limit_exceeded", str(path)))
        self.assertIn("max_json_bytes", str(error))
        self.assertNotIn("--max-json-size", str(error))

    def test_a_rank_that_is_not_there_names_those_that_are(self):
        with self.assertRaises(lockstep.InvalidArgumentError) as context:
            recorded().events(11)
        self.assertEqual(context.exception.rank, 11)
        self.assertIsInstance(context.exception, ValueError)
        self.assertIn("0, 1, 2, 3", str(context.exception))
        with self.assertRaisesRegex(lockstep.InvalidArgumentError, "rank 1: has no window 4"):
            recorded().tracks(1, window=4)
        with self.assertRaisesRegex(lockstep.InvalidArgumentError, "device_annotation"):
            recorded().events(1, lane="gpu")

    def test_an_unknown_pass_is_told_before_anything_is_read(self):
        error = self.raised(lockstep.InvalidArgumentError, self.folder / "nowhere", passes=["kernel"])
        self.assertIn("did you mean 'kernels'", str(error))

    def test_a_table_whose_pass_was_left_out(self):
        run = lockstep.load(RECORDED, passes=["kernels"])
        with self.assertRaises(lockstep.FailedPreconditionError) as context:
            run.memory()
        self.assertIn("passes=", str(context.exception))
        self.assertEqual(run.job.passes, ("kernels",))
        self.assertNotIn("memory", run.analyze())

    def test_misuse_is_told(self):
        self.raised(lockstep.InvalidArgumentError)
        self.raised(lockstep.InvalidArgumentError, RECORDED, passes="kernels")
        self.raised(TypeError, 7)
        self.raised(TypeError, RECORDED, threads="many")
        with self.assertRaises(lockstep.InvalidArgumentError):
            recorded().to_text(width=3)

    def test_errors_travel_between_processes(self):
        error = self.raised(lockstep.NotFoundError, self.folder / "nowhere")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(copy), str(copy), copy.code, copy.file), (type(error), str(error), error.code, error.file))

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_a_file_that_may_not_be_read(self):
        path = self.folder / "rank0.json"
        path.write_text(trace(0, 1), encoding="utf-8")
        path.chmod(0)
        self.assertIsInstance(self.raised(lockstep.PermissionDeniedError, path), PermissionError)


class PartialTest(unittest.TestCase):
    def test_the_warning_names_what_is_missing(self):
        with tempfile.TemporaryDirectory() as name:
            folder = write_job(name, world_size=3)
            text = (folder / "rank1.json").read_text(encoding="utf-8")
            (folder / "rank1.json").write_text(text[: len(text) * 2 // 3], encoding="utf-8")
            (folder / "rank2.json").unlink()
            with self.assertWarns(lockstep.PartialWarning) as caught:
                run = lockstep.load(folder)
            text = str(caught.warning)
            self.assertIn("rank1.json", text)
            self.assertIn("1 of 3 ranks are missing: 2", text)
            self.assertEqual(caught.filename, __file__)
            self.assertTrue(run.partial)
            self.assertIn("truncated_file", [row["code"] for row in run.ledger])

    def test_a_whole_run_does_not_warn(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertFalse(lockstep.load(RECORDED).partial)


if __name__ == "__main__":
    unittest.main()
