"""No PyTorch: a process that has a rank's environment. Makes steps as long as it is told to, then waits for ever.

Arguments: length of each step in s ("0.1+": again and again until a line comes on standard input), "line" (waits for one), and at last
"stay" (waits in wait_for_peers when they are over) or "end".
"""

import select
import sys
import threading
import time


def wait_for_peers():
    threading.Event().wait()


def main():
    print("ready", flush=True)
    *steps, at_last = sys.argv[1:] or ["stay"]
    for step in steps:
        if step == "line":
            sys.stdin.readline()
            continue
        time.sleep(float(step.rstrip("+")))
        while step.endswith("+") and not select.select([sys.stdin], [], [], 0)[0]:
            time.sleep(float(step.rstrip("+")))
        if step.endswith("+"):
            sys.stdin.readline()
    if at_last == "stay":
        wait_for_peers()


if __name__ == "__main__":
    main()
