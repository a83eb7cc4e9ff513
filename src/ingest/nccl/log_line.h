#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ingest {

enum class NcclLevel : uint8_t { kInfo, kWarn, kTrace, kCall, kAbort, kVersion };

/// One line of NCCL's, taken apart. Views point into the line that was given.
struct NcclLogLine {
  std::string_view prefix;  ///< What launchers put before it, and the time: "[1,3]<stdout>:".
  std::string_view host;
  int64_t pid = 0;
  int64_t tid = 0;
  int32_t device = -1;  ///< The thread's current device; wrong for many proxy threads.
  NcclLevel level = NcclLevel::kInfo;
  std::string_view source;  ///< "misc/cudawrap.cc:271", of WARN; "" = none.
  std::string_view message;
};

/// Finds "host:pid:tid [device] ... NCCL LEVEL message" anywhere in a line without colours; nullopt = none there.
std::optional<NcclLogLine> ParseNcclLogLine(std::string_view line);

/// The rank that a launcher's prefix tells: "[1,3]<stdout>:" (Open MPI), "3: " (srun), "[rank3]:". Local ranks, as
/// torchrun's "[default3]:", are none.
std::optional<int32_t> LauncherRank(std::string_view prefix);

/// The last "2026-11-21 03:35:23[.5]" or "2026-11-21T03:35:23" of a prefix, taken as UTC.
std::optional<int64_t> PrefixTime(std::string_view prefix);

/// Removes terminal control sequences (ESC [ ... letter) and a final carriage return. Returns `line` itself where
/// there are none, else a view of `storage`.
std::string_view WithoutColours(std::string_view line, std::string& storage);

}  // namespace lockstep::ingest
