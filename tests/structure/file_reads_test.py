"""No file is read by std::istreambuf_iterator in src/: it throws where reading fails, as of a process that ends and of a
folder, and a daemon that it is thrown in ends. base/small_file.h is there instead."""

import os
import pathlib
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


class FileReadsTest(unittest.TestCase):
    def test_none_may_throw(self):
        files = [path for path in (SOURCE / "src").rglob("*") if path.suffix in (".h", ".cc") and "_test." not in path.name]
        self.assertGreater(len(files), 500)
        throwing = [str(path) for path in files if "istreambuf_iterator<" in path.read_text() and "_for_test." not in path.name]
        self.assertEqual([], throwing)


if __name__ == "__main__":
    unittest.main()
