"""The one way in which tests wait."""

import time

# Longer than anything takes on the busiest machine: it ends a test that would wait for ever, and says nothing of speed.
PATIENCE_S = 240


def wait_until(condition, what, process=None, *, failed=lambda: None, patience_s=PATIENCE_S, every_s=0.05):
    """What `condition()` returns, once that is true. AssertionError with `what` was waited for: when the patience is over, when
    `process` (a Popen) has ended, or when `failed()` says why it will never be. `what` may be a function that is called then."""
    end = time.monotonic() + patience_s
    while not (found := condition()):
        reason = failed()
        if not reason and process is not None and process.poll() is not None:
            reason = f"the process ended with {process.returncode}"
        if not reason and time.monotonic() > end:
            reason = f"not within {patience_s} s"
        if reason:
            raise AssertionError(f"{what() if callable(what) else what}: {reason}")
        time.sleep(every_s)
    return found
