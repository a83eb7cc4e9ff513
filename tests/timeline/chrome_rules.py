"""The rules of Chrome's trace event format that a viewer relies on, and a reading of its slices."""

import collections
import decimal

PHASES = {"B", "E", "X", "i", "I", "C", "M", "s", "t", "f"}


def broken_rules(document):
    """Sentences about what is wrong with a trace; empty when nothing is."""
    wrong = []
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        return ["no list of traceEvents"]
    if document.get("displayTimeUnit") not in ("ms", "ns"):
        wrong.append("displayTimeUnit is neither ms nor ns")
    open_slices = collections.Counter()
    flows = collections.defaultdict(list)
    spans = collections.defaultdict(list)
    for number, event in enumerate(document["traceEvents"]):
        where = f"event {number}: "
        phase = event.get("ph")
        if phase not in PHASES:
            wrong.append(where + f"phase {phase!r}")
            continue
        if not isinstance(event.get("name"), str) or not isinstance(event.get("pid"), int):
            wrong.append(where + "no name or no pid")
        if phase == "M":
            if not isinstance(event.get("args"), dict):
                wrong.append(where + "metadata without args")
            continue
        if not isinstance(event.get("ts"), (int, float, decimal.Decimal)) or isinstance(event.get("ts"), bool):
            wrong.append(where + "ts is not a number")
            continue
        if phase != "C" and not isinstance(event.get("tid"), int):
            wrong.append(where + "no tid")
        place = (event.get("pid"), event.get("tid"))
        if phase == "B":
            open_slices[place] += 1
        elif phase == "E":
            open_slices[place] -= 1
            if open_slices[place] < 0:
                wrong.append(where + "an end without a begin")
        elif phase == "X":
            if not isinstance(event.get("dur"), (int, float, decimal.Decimal)) or event["dur"] < 0:
                wrong.append(where + "dur is not a number or negative")
            else:
                spans[place].append((event["ts"], event["ts"] + event["dur"]))
        elif phase == "C":
            if not event.get("args") or not all(isinstance(value, (int, float, decimal.Decimal)) for value in event["args"].values()):
                wrong.append(where + "a counter without numbers")
        elif phase in "stf":
            if "id" not in event:
                wrong.append(where + "a flow without id")
            else:
                flows[(event.get("cat"), event["id"])].append((phase, event["ts"], place))
                if phase == "f" and event.get("bp") != "e":
                    wrong.append(where + "a flow's end does not bind to the slice around it")
    wrong += [f"{count} slices of {place} are not ended" for place, count in open_slices.items() if count > 0]
    starts = {place: {start for start, _ in slices} for place, slices in spans.items()}
    for name, points in flows.items():
        phases = sorted(point[0] for point in points)
        if phases.count("s") != 1 or phases.count("f") != 1:
            wrong.append(f"flow {name}: {phases}")
        for _, ts, place in points:
            if ts not in starts.get(place, ()):
                wrong.append(f"flow {name}: no slice at {ts} on {place}")
    for place, slices in spans.items():
        stack = []
        for start, end in sorted(slices, key=lambda span: (span[0], -span[1])):
            while stack and stack[-1] <= start:
                stack.pop()
            if stack and end > stack[-1]:
                wrong.append(f"slices of {place} cross at {start}")
                break
            stack.append(end)
    return wrong


def slices(document):
    """Counter of (pid, track name, name, start ns, duration ns); times are exact."""
    names = {(event["pid"], event["tid"]): event["args"]["name"]
             for event in document["traceEvents"] if event["ph"] == "M" and event["name"] == "thread_name"}
    base = document["baseTimeNanoseconds"]
    found = collections.Counter()
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            start = base + int(event["ts"] * 1000)
            found[(event["pid"], names[(event["pid"], event["tid"])], event["name"], start, int(event["dur"] * 1000))] += 1
    return found
