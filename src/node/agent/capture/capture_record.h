#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/agent/capture/capture_manager.h"
#include "node/control/api/capture.h"

namespace lockstep::agent {

/// State of one target that the manager keeps but does not show.
struct TargetPlace {
  std::string folder;      ///< Of OutputFolder; empty: none was made.
  std::string log_name;    ///< File name that Kineto was told.
  std::string final_name;  ///< File name that it makes of it.
  std::string trace_name;  ///< What it is downloaded under.
  bool foreign = false;    ///< In a folder that is not ours: never removed.
};

/// A capture with what is remembered beside it; the unit of the state on disk.
struct CaptureRecord {
  control::Capture capture;
  Caller caller;
  std::string foreign_log_file;     ///< ForeignOutput's; empty: a folder of ours for each target.
  std::vector<TargetPlace> places;  ///< As many as capture.targets, in their order.
  /// Processes that register until then and match are taken in.
  int64_t join_until_unix_ns = 0;
  /// While there are no targets: given up then.
  int64_t wait_until_unix_ns = 0;
  /// Was cancelled, or its traces were removed: what still comes is thrown away.
  bool discard = false;
};

/// docs/formats/capture-state.md.
std::string ToText(const CaptureRecord& record);
/// Errors: kCorruptData, kInvalidArgument; kUnsupported for a later version.
Result<CaptureRecord> ReadRecord(std::string_view text);

}  // namespace lockstep::agent
