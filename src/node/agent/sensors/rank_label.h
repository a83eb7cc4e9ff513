#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::agent {

/// What the label job_id says of a process; where no scheduler or launcher names its job, its pid does.
inline std::string JobLabel(const std::string& job_id, int32_t pid) {
  return job_id.empty() ? "pid-" + std::to_string(pid) : job_id;
}

/// The same of the label rank.
inline std::string RankLabel(std::optional<int32_t> rank, int32_t pid) {
  return rank ? std::to_string(*rank) : "pid-" + std::to_string(pid);
}

}  // namespace lockstep::agent
