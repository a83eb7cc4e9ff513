"""Runs one unittest file for ctest: run_python_test.py FILE [--only|--without METHOD...], the test methods to run or to leave to another run.

0 passed, 1 failed, 77 when every test in it was skipped (the reasons are printed)."""

import faulthandler
import importlib.util
import os
import pathlib
import sys
import unittest

SKIPPED = 77
# Before ctest kills a test, whose words then end in the middle of a line: what its threads were doing.
LAST_WORDS_S = 20


def chosen(suite, only, names):
    """The cases of `suite` that `names` has, or without `only` those that it has not. A name that no case has is a mistake."""
    cases = []
    for part in suite:
        cases += chosen(part, only, None) if isinstance(part, unittest.TestSuite) else [part]
    if names is None:
        return cases

    def method(case):
        return case.id().rpartition(".")[2]

    unknown = set(names) - {method(case) for case in cases}
    if unknown:
        sys.exit(f"run_python_test.py: no such test: {', '.join(sorted(unknown))}")
    return [case for case in cases if (method(case) in names) == only]


def main():
    if limit_s := int(os.environ.get("LOCKSTEP_TEST_LIMIT_S", 0)):
        faulthandler.dump_traceback_later(limit_s - LAST_WORDS_S, file=sys.stdout)
    path = pathlib.Path(sys.argv[1]).resolve()
    sys.path[0:0] = [str(path.parent), str(pathlib.Path(__file__).resolve().parent / "support")]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    if len(sys.argv) > 2:
        suite = unittest.TestSuite(chosen(suite, sys.argv[2] == "--only", sys.argv[3:]))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    # A class that skips in its setUpClass is in `skipped` by itself, and its tests are not counted.
    done = result.testsRun - sum(isinstance(test, unittest.TestCase) for test, _ in result.skipped)
    if not result.wasSuccessful() or (done == 0 and not result.skipped):
        return 1
    return SKIPPED if done == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
