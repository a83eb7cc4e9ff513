# %% [markdown]
# # Looking at a job from Python
#
# Cells are marked `# %%`: editors and Jupyter run them one by one, and `python examples/explore.py [TRACES]` runs them all.
# Without an argument it looks at the recorded job, of whose four ranks one is slow. Needs pandas.

# %%
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import lockstep

here = Path(__file__).parent if "__file__" in globals() else Path("examples")
traces = sys.argv[1] if len(sys.argv) > 1 else str(here / "recorded")
run = lockstep.load(traces)
print(run)

# %% [markdown]
# ## What to do first
# Findings come with the numbers behind them and an upper bound on what the fix saves.

# %%
for finding in run.findings().to_dicts()[:3]:
    gain = finding["gain_ns_per_step"]
    print(f"{finding['severity']}: {finding['title']}" + (f" (up to {gain / 1e6:.1f} ms a step)" if gain else ""))
    print("   ", finding["advice"][0])

# %% [markdown]
# ## Where the time of a step goes, per rank
# Columns are in ns; the unit is in the name and in `frame.attrs["units"]`.

# %%
steps: pd.DataFrame = run.steps().to_pandas()
parts = ["compute_ns", "exposed_communication_ns", "idle_ns", "span_ns"]
print((steps.groupby("rank")[parts].mean() / 1e6).astype(float).round(1).rename(columns=lambda name: name[:-3] + " (ms)"))

# %% [markdown]
# ## Who waits for whom
# A row for each rank of each collective: waiting ends when the last rank arrives.

# %%
members = run.collective_members().to_pandas()
waits = members.groupby("rank")["wait_ns"].sum() / 1e6
print("waiting for others, ms:", waits.astype(float).round(1).to_dict())
late = run.stragglers().to_dicts()
if late and late[0]["wait_given_ns"] > 0:
    worst = late[0]
    print(f"rank {worst['rank']} was last in {worst['last_count']} of {worst['collective_count']} collectives;", end=" ")
    print("meanwhile it did more of:", ", ".join(activity["name"] for activity in worst["activities"]))

# %% [markdown]
# ## Down to single events
# The run's own columns, without a copy: NumPy works on them as they lie in memory.

# %%
rank = int(run.ranks["rank"][0])
track = max(run.tracks(rank), key=len)
events = track.events
longest = int(np.argmax(events["duration_ns"] * (events["category"].matches("cpu_op") | events["category"].matches("kernel"))))
print(f"{len(events)} events on {track.lane} of rank {rank};", end=" ")
print(f"the longest operator or kernel: {events['name'][longest]}, {events['duration_ns'][longest] / 1e6:.2f} ms")

by_name = run.events(rank).to_pandas().groupby("name", observed=True)["duration_ns"].agg(["count", "sum"])
print(by_name.sort_values("sum", ascending=False).head(5))

# %% [markdown]
# ## The whole answer
# The same bytes as `lockstep analyze --json`; and any library that speaks Arrow takes `run.steps()` as it is.

# %%
print(f"{len(run.to_json()):,} bytes of JSON; ledger: {len(run.ledger)} rows; partial: {run.partial}")
