#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/evidence/log_event.h"
#include "model/log_line/level.h"

namespace lockstep::agent {

constexpr size_t kLogLevels = 6;

/// What logs of one rank have said.
struct LogCounts {
  std::array<uint64_t, kLogLevels> lines = {};  ///< By logs::Level.
  uint64_t errors = 0;                          ///< Messages of level error or worse; a traceback is one.
  std::map<evidence::LogEventKind, uint64_t> events;
  uint64_t skipped_bytes = 0;  ///< That came faster than they are read.
};

/// Reads one log as it grows, line by line. Not thread-safe.
class LogMeter {
 public:
  /// Where a line of this rank is counted (nullopt: it does not say whose it is).
  using CountsOf = std::function<LogCounts*(std::optional<int32_t> rank)>;

  /// What has come, cut anywhere; a line counts when its end has come. `skips_own`: lines that have our head are left
  /// out, because another log of the rank has them.
  void Take(std::string_view bytes, bool skips_own, const CountsOf& counts_of);
  /// What comes next does not go on with what came before.
  void Break();

 private:
  void TakeLine(std::string_view line, bool skips_own, const CountsOf& counts_of);

  std::string begun_;  ///< Of a line whose end has not come; at most kMostLineBytes.
  logs::LevelReader levels_;
  bool in_traceback_ = false;
  std::string colourless_;
  std::string json_text_;
};

}  // namespace lockstep::agent
