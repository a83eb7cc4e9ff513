#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::timeline {

/// A line of a rank's log, for a timeline.
struct LogPoint {
  int64_t time_ns = 0;          ///< On the rank's own trace clock, which is its host's wall clock.
  std::string_view level = {};  ///< "warning"; of static storage.
  std::string source = {};      ///< "err", or who logged it; empty where the line does not say.
  std::string text = {};        ///< UTF-8.
};

/// By rank index of the run; sorted by time.
using RankLogs = std::vector<std::vector<LogPoint>>;

}  // namespace lockstep::timeline
