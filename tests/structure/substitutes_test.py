"""What the product does not use, since base/ has something in its place."""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


def product_files():
    files = [path for path in (SOURCE / "src").rglob("*") if path.suffix in (".h", ".cc") and "_test." not in path.name
             and "_for_test." not in path.name]
    return {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in files}


class InsteadTest(unittest.TestCase):
    def test_files_are_read_by_what_cannot_throw(self):
        """std::istreambuf_iterator throws where reading fails, as of a process that ends and of a folder, and a daemon that it
        is thrown in ends. base/small_file.h is there instead."""
        files = product_files()
        self.assertGreater(len(files), 500)
        self.assertEqual([], [name for name, text in files.items() if "istreambuf_iterator<" in text])

    def test_locks_are_those_that_clang_checks(self):
        """clang's thread safety analysis knows base/mutex.h alone, and no lock that one thread may take twice."""
        plain = re.compile(r"std::(?:shared_)?(?:timed_)?mutex\b")
        self.assertEqual(["src/base/mutex.h"], [name for name, text in product_files().items() if plain.search(text)])


if __name__ == "__main__":
    unittest.main()
