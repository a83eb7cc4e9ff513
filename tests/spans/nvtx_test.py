"""A program that is annotated with NVTX is recorded with no change and without Nsight: pip's nvtx, NVIDIA's own headers."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from span_files import counts, query

LIBRARY = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "lib/liblockstep.so"
PROGRAM = '''
import threading, time
import nvtx

@nvtx.annotate("decorated", domain="train")
def decorated():
    time.sleep(0.002)

with nvtx.annotate("outer"):
    for _ in range(3):
        decorated()
    nvtx.mark("here")
    across = nvtx.start_range("across", domain="io")
    thread = threading.Thread(target=lambda: nvtx.end_range(across))
    thread.start()
    thread.join()
    # Domains have stacks of their own: this ends the range of the default one, which is not on top.
    nvtx.push_range("first")
    nvtx.push_range("second", domain="train")
    nvtx.pop_range()
    time.sleep(0.002)
    nvtx.pop_range(domain="train")
for i in range(12):
    with nvtx.annotate(f"step {i}"):
        time.sleep(0.001)
nvtx.push_range("größer")
nvtx.pop_range()
nvtx.pop_range()  # One too many.
print("done")
'''


class NvtxTest(unittest.TestCase):
    def launch(self, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_TRACE")}
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**environment, "NVTX_INJECTION64_PATH": str(LIBRARY), **variables})
        self.assertEqual((0, "done\n"), (done.returncode, done.stdout), done.stderr)

    def test_every_range_and_mark_is_a_span(self):
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            self.launch(LOCKSTEP_TRACE=folder, RANK="0")
            [path] = pathlib.Path(folder).iterdir()
            self.assertEqual({"outer": 1, "train:decorated": 3, "here": 1, "io:across": 1, "first": 1, "train:second": 1,
                              "größer": 1, **{f"step {i}": 1 for i in range(12)}}, counts(path))
            [lengths] = query(path, "select (select start_ns + duration_ns from events where name = 'first') as first_end, "
                                    "(select start_ns + duration_ns from events where name = 'train:second') as second_end, "
                                    "(select duration_ns from events where name = 'train:second') as second, "
                                    "(select min(duration_ns) from events where name = 'train:decorated') as decorated")
            self.assertGreater(lengths["second"], 2_000_000)
            self.assertGreater(lengths["decorated"], 2_000_000)
            self.assertLess(lengths["first_end"], lengths["second_end"] - 2_000_000)
            self.assertEqual([{"n": 12}], query(path, "select count(*) as n from steps"))

    def test_without_a_folder_nothing_is_recorded(self):
        self.launch()


if __name__ == "__main__":
    unittest.main()
