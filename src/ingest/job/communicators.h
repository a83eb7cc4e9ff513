#pragma once

#include <vector>

#include "ingest/job/rank_assignment.h"
#include "ingest/torch_trace/trace_reader.h"
#include "model/run.h"

namespace lockstep::ingest {

/// Of rings whose ranks are assigned: which ranks of the job are in each communicator (RankTrace::groups, in the
/// communicator's order), from what all rings of the job say of their places. Of one that not all rings of were read,
/// only where it has as many ranks as the job, and every place that is known is the job's: then all are. Peers of
/// records become ranks of the job, or unknown. Memory: 256 MiB of members at most, beyond which they are unknown.
void ResolveCommunicators(std::vector<LoadedTrace>* traces);

/// The second part, of a trace whose groups are resolved: `communicators` is parallel to them.
void ResolvePeers(const std::vector<CommunicatorPlace>& communicators, model::RankTrace* trace);

}  // namespace lockstep::ingest
