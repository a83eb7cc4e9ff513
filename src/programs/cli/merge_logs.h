#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/logs/log_filter.h"
#include "model/run.h"
#include "present/export/timeline/rank_logs.h"

namespace lockstep::cli {

/// Lines of ranks' logs that belong on a timeline of the run, and what became of the others.
struct MergeLogs {
  timeline::RankLogs lines;       ///< By rank index of the run.
  uint64_t kept_count = 0;        ///< In `lines`.
  uint64_t outside_count = 0;     ///< Of times at which their rank was not traced, or of ranks without a trace.
  uint64_t undated_count = 0;     ///< Of ranks whose traces do not say when they were (no base of their times).
  uint64_t unplaced_count = 0;    ///< Without a known rank or time.
  uint64_t over_limit_count = 0;  ///< More than a timeline takes.
  uint64_t line_count() const { return kept_count + outside_count + undated_count + unplaced_count + over_limit_count; }
  std::vector<std::string> problems = {};  ///< Files that could not be read whole, one sentence each.
};

/// Reads the logs in `paths` and keeps the lines that `filter` wants and that were written while their rank was traced,
/// or within a second after that. At most a million lines; of a line the first 4 KiB. Errors: kNotFound (a path is not
/// there, or nothing is a log).
Result<MergeLogs> ReadMergeLogs(const std::vector<std::string>& paths, const logs::LogFilter& filter,
                                const model::Run& run);

}  // namespace lockstep::cli
