"""What liblockstep.so needs and shows."""

import os
import pathlib
import re
import subprocess
import unittest

LIBRARY = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "lib/liblockstep.so"
HEADER = pathlib.Path(os.environ["LOCKSTEP_SOURCE"]) / "include/lockstep/trace.h"
CALLED_BY_TOOLS = {"InitializeInjectionNvtx2"}


def read(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


class LibraryTest(unittest.TestCase):
    def test_it_needs_the_c_library_alone(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "-dW", LIBRARY))
        self.assertTrue(set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed)

    def test_it_stays_loaded(self):
        self.assertIn("NODELETE", read("readelf", "-dW", LIBRARY))

    def test_it_shows_what_the_header_says_and_nothing_else(self):
        shown = {line.split()[-1] for line in read("nm", "-D", "--defined-only", LIBRARY).splitlines()}
        declared = set(re.findall(r"LOCKSTEP_API [^;(]*?\b(lockstep_\w+)(?=[(;])", HEADER.read_text()))
        self.assertGreater(len(declared), 15)
        self.assertEqual(declared, shown - CALLED_BY_TOOLS)

    def test_the_headers_serve_c99_and_cxx11(self):
        for compiler, language, standard, header in (("gcc", "c", "c99", "trace.h"), ("g++", "c++", "c++11", "trace.hpp")):
            done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                   "-fsyntax-only", f"-I{HEADER.parents[1]}", "-"], text=True, capture_output=True,
                                  input=f"#include <lockstep/{header}>\n")
            self.assertEqual(0, done.returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
