"""Runs one unittest file for ctest: 0 passed, 1 failed, 77 when every test in it was skipped (the reasons are printed)."""

import importlib.util
import pathlib
import sys
import unittest

SKIPPED = 77


def main():
    path = pathlib.Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    # A class that skips in its setUpClass is in `skipped` by itself, and its tests are not counted.
    done = result.testsRun - sum(isinstance(test, unittest.TestCase) for test, _ in result.skipped)
    if not result.wasSuccessful() or (done == 0 and not result.skipped):
        return 1
    return SKIPPED if done == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
