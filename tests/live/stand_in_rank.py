"""No PyTorch: a process that has a rank's environment. Makes steps as long as it is told to, then waits for ever.

Arguments: length of each step in s, and "stay" (waits in wait_for_peers when they are over) or "end".
"""

import sys
import threading
import time


def wait_for_peers():
    threading.Event().wait()


def main():
    print("ready", flush=True)
    *steps, at_last = sys.argv[1:] or ["stay"]
    for step in steps:
        time.sleep(float(step))
    if at_last == "stay":
        wait_for_peers()


if __name__ == "__main__":
    main()
