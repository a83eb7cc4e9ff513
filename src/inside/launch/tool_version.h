#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inside/launch/environment.h"

namespace lockstep::launch {

/// "2023.4.4": of nsys and ncu alike.
struct ToolVersion {
  int year = 0;
  int release = 0;
  int patch = 0;

  auto operator<=>(const ToolVersion&) const = default;
};
std::string ToText(const ToolVersion& version);

/// From what `nsys --version` ("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0") and `ncu --version`
/// ("Version 2024.1.1.0 (build 33998838)") print. Errors: kCorruptData.
Result<ToolVersion> ParseToolVersion(std::string_view output);

/// Where a tool lies: `given` (a path, or a name looked for in PATH) when not empty, else `name` in PATH, else in the
/// folders that NVIDIA's packages use, the newest first. Errors: kNotFound with what to do.
Result<std::string> FindTool(const std::string& name, const std::string& given, const Environment& environment);

/// Asks the tool itself. Errors: kNotFound, kPermissionDenied, kCancelled (no answer), kCorruptData (another answer).
Result<ToolVersion> AskToolVersion(const std::string& path);

}  // namespace lockstep::launch
