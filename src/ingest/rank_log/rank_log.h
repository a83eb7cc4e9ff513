#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/evidence/log_event.h"

namespace lockstep::ingest {

struct RankLogEvents {
  std::vector<evidence::LogEvent> events;  ///< In the file's order; at most 1,000, the first and the last of each kind.
  uint64_t line_count = 0;
  uint64_t dropped_count = 0;           ///< Events beyond the limit.
  std::optional<int32_t> world_size;    ///< As the launcher, NCCL or Gloo's connecting says, the largest told.
  std::vector<int32_t> prefixed_ranks;  ///< Ranks whose prefix some line has, ascending; two or more: a mixed log.
};

/// Finds signs of failures in a rank's standard output and error, or in all ranks' mixed (prefixes of torchrun,
/// srun --label, Open MPI, kubectl are read; then events carry their rank). Never fails: any bytes are a log.
/// Cost: O(bytes), one pass. Source of the messages: docs/formats/rank-log.md.
RankLogEvents ReadRankLog(std::string_view text, std::string_view file_name);

}  // namespace lockstep::ingest
