#!/usr/bin/env python3
"""The hidden-rank test: real Gloo jobs, each with a fault in one rank and stage or none; whom does `lockstep stages` name?

    hidden_rank.py BINARY PYTHON FOLDER [ROWS]

The faults are drawn by a fixed seed and kept in FOLDER/answers.json, which nothing reads before all jobs are over. A row counts as
right where rank and stage are both named, a healthy one where nobody is. A rank with fewer cores may be named in any stage in which it
computes.
"""

import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import faulty_job  # noqa: E402

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


def main():
    binary, python, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    answers = draw(int(sys.argv[4]) if len(sys.argv) > 4 else 80)
    folder.mkdir(parents=True)
    (folder / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
    right = {"hidden": [0, 0], "healthy": [0, 0]}
    for row, answer in enumerate(answers):
        _, summary = faulty_job.run(binary, python, folder / f"row{row}", answer["ranks"], STEPS, answer["fault"])
        verdict = summary["data"]["verdict"]
        good = is_right(answer, verdict)
        kind = right["healthy" if answer["fault"] == "none" else "hidden"]
        kind[0] += good
        kind[1] += 1
        print(f"{row:3} {'right' if good else 'WRONG'} {answer['ranks']} ranks {answer['fault']:28} {verdict['sentence']} "
              f"(confidence {verdict['confidence']:.2f})", flush=True)
    print(", ".join(f"{kind}: {good} of {count}" for kind, (good, count) in right.items()))


if __name__ == "__main__":
    main()
