#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::model {

/// What a job was started for, as whoever started it declared: "model=gpt2-medium". Only runs of equal workloads are
/// compared.
using Workload = std::map<std::string, std::string>;

/// Characters of a key, beside letters and digits; one to kMostWorkloadKeyBytes of them.
inline constexpr std::string_view kWorkloadKeyAlso = "_.-";
inline constexpr size_t kMostWorkloadKeyBytes = 64;
inline constexpr size_t kMostWorkloadValueBytes = 1000;
inline constexpr size_t kMostWorkloadKeys = 64;

/// What is known of a job beside its steps.
struct StageJob {
  Workload workload = {};
  std::optional<int> exit_status = {};  ///< Of its command; 128 + N: signal N ended it. Absent: nobody saw it end.
};

}  // namespace lockstep::model
