#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "launch/environment.h"

namespace lockstep::launch::recorded {

/// The variables that a real launcher set for one rank, from the shared data sets (LOCKSTEP_DATA, or ../shared/data
/// beside `source`); nullopt where they are not.
inline std::optional<Environment> Variables(const std::filesystem::path& source, const std::string& name) {
  const char* data = std::getenv("LOCKSTEP_DATA");
  const std::filesystem::path root = data != nullptr ? std::filesystem::path(data) : source / "../shared/data";
  std::ifstream file(root / "schedulers" / name);
  if (!file) return std::nullopt;
  std::vector<std::string> entries;
  for (std::string line; std::getline(file, line);) entries.push_back(line);
  return Environment::FromEntries(entries);
}

}  // namespace lockstep::launch::recorded
