#pragma once

#include <map>
#include <vector>

#include "ingest/logs/log_fold.h"

namespace lockstep::logs {

/// The first line of level error or worse of each rank. Lines must come in the order of their times.
class FirstErrors {
 public:
  void Add(const LogLine& line);
  /// In the order of their times: who was first stands first.
  const std::vector<FoldedLine>& lines() const { return lines_; }

 private:
  std::map<int32_t, bool> seen_;  ///< By rank; -1 = unknown.
  std::vector<FoldedLine> lines_;
};

}  // namespace lockstep::logs
