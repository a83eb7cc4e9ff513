#!/usr/bin/env python3
"""The hidden-rank test: real Gloo jobs, each with a fault in one rank and stage or none; whom does `lockstep stages` name?

    hidden_rank.py BINARY PYTHON FOLDER [--rows 80] [--traceml PYTHON]

The faults are drawn by a fixed seed and kept in FOLDER/answers.json, which nothing reads before all jobs are over. A row counts as
right where rank and stage are both named, a healthy one where nobody is. A rank with fewer cores may be named in any stage in which it
computes.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import faulty_job  # noqa: E402
from pytorch import job_environment  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

STAGE_OF = {"data": "input", "forward": "forward", "backward": "backward", "optimizer": "optimizer", "checkpoint": "checkpoint", "gc": "gc"}
STEP_MS = 38
STEPS = 40


def draw(rows):
    chance = random.Random(26)
    answers = []
    for row in range(rows):
        ranks = (2, 4, 8)[row % 3]
        if row % 4 == 3:
            answers.append({"ranks": ranks, "fault": "none"})
            continue
        stage = chance.choice([*STAGE_OF, "cores"])
        rank = chance.randrange(ranks)
        when = chance.choice(["every", "every", "4", "once"])
        if stage == "checkpoint":
            when = "10"
        # A single fault is as long as a step, one of each K-th step half of it at least.
        least = {"every": 10, "4": 40, "10": 60, "once": 100}[when]
        percent = chance.randrange(least, 101)
        answers.append({"ranks": ranks, "fault": f"{stage}:{rank}:{STEP_MS * percent / 100:.1f}:{when}", "stage": stage, "rank": rank,
                        "percent": percent, "when": when})
    return answers


def is_right(answer, verdict):
    if answer["fault"] == "none":
        return verdict["answer"] != "straggler"
    if verdict["answer"] != "straggler" or verdict["rank"] != answer["rank"]:
        return False
    return answer["stage"] == "cores" or verdict["stage"] == STAGE_OF[answer["stage"]]


def named_by_traceml(python, folder, answer):
    """What TraceML says of the steps of the same row: its kind, and the rank that it names as the culprit."""
    folder.mkdir(parents=True)
    here = pathlib.Path(__file__).resolve().parent
    command = [python.parent / "traceml", "run", "--logs-dir", folder, "--run-name", "row", "--nproc-per-node", answer["ranks"],
               here / "traced_by_traceml.py", "--args", here / "faulty_training.py", STEPS, answer["fault"]]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=PATIENCE_S,
                          env=job_environment())
    files = list(folder.rglob("final_summary.json"))
    if done.returncode != 0 or not files:
        raise AssertionError(done.stdout + done.stderr)
    summary = json.loads(files[0].read_text(encoding="utf-8"))
    diagnosis = summary["step_time"]["diagnosis"]
    return diagnosis["kind"], diagnosis["evidence"].get("culprit_rank")


def is_traceml_right(answer, kind, rank):
    if answer["fault"] == "none":
        return not kind.endswith("STRAGGLER")
    stage_kinds = {"data": {"INPUT_STRAGGLER"}, "forward": {"COMPUTE_STRAGGLER"}}
    # It has no name for the other stages: the rank is enough.
    return rank == answer["rank"] and kind in stage_kinds.get(answer["stage"], {"STRAGGLER", "COMPUTE_STRAGGLER"})


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("binary")
    arguments.add_argument("python", help="with PyTorch")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--rows", type=int, default=80)
    arguments.add_argument("--traceml", type=pathlib.Path, metavar="PYTHON", help="with PyTorch and traceml-ai: the same rows through TraceML")
    arguments = arguments.parse_args()
    answers = draw(arguments.rows)
    arguments.folder.mkdir(parents=True)
    (arguments.folder / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
    right = {"hidden": [0, 0, 0], "healthy": [0, 0, 0]}
    for row, answer in enumerate(answers):
        _, summary = faulty_job.run(arguments.binary, arguments.python, arguments.folder / f"row{row}", answer["ranks"], STEPS, answer["fault"])
        verdict = summary["data"]["verdict"]
        good = is_right(answer, verdict)
        kind = right["healthy" if answer["fault"] == "none" else "hidden"]
        kind[0] += 1
        kind[1] += good
        theirs = ""
        if arguments.traceml:
            diagnosis, culprit = named_by_traceml(arguments.traceml, arguments.folder / f"traceml{row}", answer)
            its_good = is_traceml_right(answer, diagnosis, culprit)
            kind[2] += its_good
            theirs = f" | TraceML {'right' if its_good else 'WRONG'}: {diagnosis} {'-' if culprit is None else culprit}"
        print(f"{row:3} {'right' if good else 'WRONG'} {answer['ranks']} ranks {answer['fault']:28} {verdict['sentence']} "
              f"(confidence {verdict['confidence']:.2f}){theirs}", flush=True)
    for kind, (count, ours, theirs) in right.items():
        print(f"{kind}: {ours} of {count}" + (f", TraceML {theirs}" if arguments.traceml else ""))


if __name__ == "__main__":
    main()
