#include "inside/launch/environment.h"

#include <unistd.h>

#include "base/text_scan.h"

namespace lockstep::launch {

Environment Environment::FromEntries(const std::vector<std::string>& entries) {
  Environment environment;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) environment.variables_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

Environment Environment::Own() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return FromEntries(entries);
}

std::string_view Environment::Get(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::string_view() : found->second;
}

std::optional<int32_t> Environment::Number(std::string_view name) const {
  const auto number = WholeNumber<int32_t>(Get(name));
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace lockstep::launch
