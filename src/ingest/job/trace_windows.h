#pragma once

#include <vector>

#include "ingest/job/rank_assignment.h"
#include "model/ledger.h"

namespace lockstep::ingest {

/// Numbers the windows of every rank (see AssignRanks) and sets aside what overlaps an earlier trace of the same rank.
/// Of two that overlap the one in the deeper folder goes, else the later one. A span trace is not set aside: it joins
/// every trace of its rank that a profiler wrote and that it overlaps, else the span trace of its rank that it
/// overlaps. In: ranks are decided. A trace without any timed event has no time of its own: beside another one it is
/// set aside.
void AssignWindows(std::vector<LoadedTrace>* traces, model::Ledger* ledger);

}  // namespace lockstep::ingest
