#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/evidence/log_event.h"

namespace lockstep::ingest {

/// The failure that a line without prefixes reports, with what it names; nullopt = none. `kind` is never kException:
/// tracebacks have several lines. Source of the messages: docs/formats/rank-log.md.
std::optional<evidence::LogEvent> MatchLogLine(std::string_view line);

/// Lines of level error that only follow from others or have no content: "Some NCCL operations have failed ...".
bool IsMereConsequence(std::string_view line);

/// "[0, 3-5]" or "0, 3" as numbers; at most 65,536.
std::vector<int32_t> ReadRankList(std::string_view text);

/// "ALLREDUCE" as the recorder calls it: "all_reduce".
std::string OperationOfType(std::string_view type);

/// Of a name such as "Killed", "SIGKILL", "Segmentation fault"; 0 = none.
int32_t SignalOfName(std::string_view name);

/// Whether this is a file of the user's rather than of Python or of an installed package.
bool IsUserFile(std::string_view file);

}  // namespace lockstep::ingest
