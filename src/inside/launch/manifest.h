#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "inside/launch/rank_environment.h"

namespace lockstep::launch {

/// What is known of one rank's profile besides the profile: docs/formats/launch-manifest.md.
struct ManifestEntry {
  RankIdentity identity = {};
  std::string host = {};
  int32_t pid = 0;        ///< Of `lockstep run`, the profiler's parent.
  std::string tool = {};  ///< "nsys", "ncu".
  std::string tool_version = {};
  std::string visible_devices = {};  ///< CUDA_VISIBLE_DEVICES; empty: all.
  std::string job = {};              ///< The scheduler's id; empty: none.
  int64_t start_unix_ns = 0;
  std::optional<int64_t> end_unix_ns = {};  ///< Unset while it runs, and for ever when it was killed.
  std::optional<int32_t> exit_code = {};
  std::string command = {};             ///< One line, what looks like a secret replaced.
  std::vector<std::string> files = {};  ///< Reports, beside the manifest.
};

/// One line of JSON, with its newline.
std::string ToJsonLine(const ManifestEntry& entry);

/// Replaces the file at once, so that no reader sees half a line. One file for each rank: appending to one file from
/// several nodes loses lines on network file systems. Errors: kIo, kPermissionDenied.
Status WriteManifest(const std::string& path, const ManifestEntry& entry);

}  // namespace lockstep::launch
