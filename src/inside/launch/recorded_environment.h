#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/checkout.h"
#include "inside/launch/environment.h"

namespace lockstep::launch::recorded {

/// The variables that a real launcher set for one rank, from the shared data sets; nullopt where they are not.
inline std::optional<Environment> Variables(const std::string& name) {
  std::ifstream file(SharedData() / "schedulers" / name);
  if (!file) return std::nullopt;
  std::vector<std::string> entries;
  for (std::string line; std::getline(file, line);) entries.push_back(line);
  return Environment::FromEntries(entries);
}

}  // namespace lockstep::launch::recorded
