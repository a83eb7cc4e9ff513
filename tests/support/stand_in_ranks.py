#!/usr/bin/env python3
"""Ranks of a job without PyTorch, on one node: each is a lockstep_recording_rank, so many of them that a node may have.

    stand_in_ranks.py RECORDING_RANK JOB FIRST COUNT WORLD FOLDER

A line on standard input, "COUNT FORWARD_MS BACKWARD_MS SLOW_RANK MS", makes every rank do COUNT steps. The slow one's forward takes MS
longer, and for as long the others wait for a collective, as if they had met it. "done" is said when all have. Ends with its input.
"""

import os
import subprocess
import sys


def main():
    program, job, first, count, world, folder = sys.argv[1:]
    ranks = {}
    for rank in range(int(first), int(first) + int(count)):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": world, "LOCAL_RANK": str(rank - int(first)), "TORCHELASTIC_RUN_ID": job,
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "LOCKSTEP_TRACE": folder, "LOCKSTEP_TRACE_LIMIT_MIB": "4"}
        ranks[rank] = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0)
    print("ready", flush=True)
    for line in sys.stdin:
        steps, forward_ms, backward_ms, slow_rank, slow_ms = map(int, line.split())
        for _ in range(steps):
            for rank, process in ranks.items():
                is_slow = rank == slow_rank
                process.stdin.write(f"train 1 {forward_ms + slow_ms * is_slow} {backward_ms} {slow_ms * (not is_slow) + 2}\n".encode())
            for process in ranks.values():
                process.stdout.readline()
        print("done", flush=True)
    for process in ranks.values():
        process.stdin.close()
    for process in ranks.values():
        process.wait()


if __name__ == "__main__":
    main()
