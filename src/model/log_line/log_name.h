#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/log_line/line.h"

namespace lockstep::logs {

/// What names the log of one process: no two processes of a user's jobs have the same.
struct LogName {
  std::optional<int32_t> rank = {};  ///< Nullopt: of several ranks.
  std::string host = {};
  std::string job = {};  ///< The scheduler's id, "" = none.
  int64_t start_unix_ns = 0;
  int64_t pid = 0;
  LineForm form = LineForm::kText;

  /// "rank3.node0.job4711.20261123T021503Z.pid812.log": "all" where there is no rank, no job where there is none, and
  /// ".jsonl" of JSON lines. Source: docs/formats/rank-log.md#names.
  std::string ToText() const;
};

/// Whether ToText may have made it, also with a number behind where that name was taken ("….pid812-2.log").
bool IsOwnLogName(std::string_view name);

/// What a file's name says of its place in a log that is rotated: "x.log" is 0, "x.log.1" the next older, "x.log.2.gz".
struct RotatedName {
  std::string_view stem;  ///< "x.log"
  int32_t age = 0;        ///< 0: the one that is written.
};
RotatedName ReadRotatedName(std::string_view name);

/// This machine's name, to the first dot.
std::string HostName();

}  // namespace lockstep::logs
