#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/log_line/level.h"

namespace lockstep::logs {

/// Which lines are wanted.
struct LogFilter {
  std::optional<Level> least = {};
  std::vector<std::pair<int64_t, int64_t>> ranks = {};  ///< Closed ranges; empty: all, those without a rank too.
  std::vector<std::string> texts = {};                  ///< One of them is in the text; empty: any text.

  bool Wants(Level level, std::optional<int32_t> rank, std::string_view text) const;
};

}  // namespace lockstep::logs
