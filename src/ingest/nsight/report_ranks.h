#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ingest/nsight/process_events.h"
#include "ingest/nsight/report_events.h"
#include "ingest/nsight/report_facts.h"

namespace lockstep::ingest::nsight {

/// One rank of a report.
struct ReportRank {
  std::unique_ptr<ProcessEvents> events;
  std::optional<int32_t> rank = {};  ///< Absent: the report does not say.
  std::optional<int32_t> world_size = {};
};

/// Which processes of the report are ranks, and which: those that used a device, or that MPI knows; where there are
/// none, those with ranges, calls, anything. What other processes did goes with the only rank there is, or is left out.
/// Empties `events`. Out: in order of rank, or of devices where no rank is known, which is a guess and noted.
std::vector<ReportRank> FindRanks(const ReportFacts& facts, ReportEvents* events, ReportNotes* notes);

}  // namespace lockstep::ingest::nsight
