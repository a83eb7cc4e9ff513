#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::analysis {

enum class FindingSeverity : uint8_t { kInfo, kWarning, kCritical };
const char* FindingSeverityName(FindingSeverity severity);

/// A number that supports a finding.
struct Evidence {
  std::string name;  ///< snake_case with unit, such as "wait_given_ns".
  double value = 0;
  std::string text;  ///< For people: "the other ranks waited 46.8 ms for rank 7 in 5 of 8 collectives".
};

/// What is wrong, for whom, how we know, what to do, what it would gain.
struct Finding {
  std::string id;  ///< "straggler", "exposed_communication", "host_bound", ... (docs/metrics.md#findings).
  FindingSeverity severity = FindingSeverity::kInfo;
  std::vector<int32_t> ranks;  ///< Global ranks concerned, worst first; empty = the whole job.
  std::string title;
  std::vector<Evidence> evidence;
  std::vector<std::string> advice;
  std::optional<int64_t> gain_ns_per_step;  ///< Upper bound on what the fix saves; per window when there are no steps.
  std::optional<double>
      gain_ratio;           ///< Of the step that it was reckoned with: the mean of the ranks', or the simulated.
  bool is_premise = false;  ///< It says what all others are worth, and comes before them.
};

/// Premises first, then by gain, severity and id.
void SortFindings(std::vector<Finding>* findings);

}  // namespace lockstep::analysis
