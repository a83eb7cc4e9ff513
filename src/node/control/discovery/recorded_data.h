#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/checkout.h"
#include "node/control/discovery/hosts.h"

// For tests: what schedulers answered when it was recorded (shared data; its README says what was recorded where).

namespace lockstep::control::recorded {

/// A file below schedulers/; nullopt where the shared data are absent.
inline std::optional<std::string> File(const std::string& name) {
  std::ifstream file(SharedData() / "schedulers" / name, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// What followed "$ COMMAND" in a recording, up to the next command.
inline std::string Output(const std::string& recording, const std::string& command) {
  const std::string prompt = "$ " + command + "\n";
  const size_t at = recording.starts_with(prompt) ? 0 : recording.find("\n" + prompt);
  if (at == std::string::npos) return "(not recorded: " + command + ")";
  const size_t begin = recording.find('\n', recording.find("$ ", at)) + 1;
  const size_t end = recording.find("\n$ ", begin - 1);
  return end == std::string::npos ? recording.substr(begin) : recording.substr(begin, end + 1 - begin);
}

inline std::vector<std::string> Hosts(const JobNodes& job) {
  std::vector<std::string> hosts;
  for (const JobNode& node : job.nodes) hosts.push_back(node.host);
  return hosts;
}

}  // namespace lockstep::control::recorded
