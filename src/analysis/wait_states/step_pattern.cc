#include <algorithm>

#include "analysis/wait_states/root_table.h"

namespace lockstep::analysis {
namespace {

constexpr size_t kMinimumPeriods = 3;
constexpr int64_t kMinimumShareOfWorst = 5;  // steps with less than a fifth of the worst one are not told apart from it

/// k where the steps are every k-th of all, from first to last.
std::optional<int64_t> PeriodOf(const std::vector<int64_t>& steps, const std::vector<int64_t>& all) {
  if (steps.size() < kMinimumPeriods) return std::nullopt;
  const int64_t period = steps[1] - steps[0];
  if (period < 2) return std::nullopt;
  for (size_t i = 2; i < steps.size(); ++i) {
    if (steps[i] - steps[i - 1] != period) return std::nullopt;
  }
  const bool covers_all = steps.front() - all.front() < period && all.back() - steps.back() < period;
  return covers_all ? std::optional(period) : std::nullopt;
}

}  // namespace

StepPattern FindStepPattern(const std::map<int64_t, int64_t>& delay_by_step, const std::vector<int64_t>& all_steps,
                            int64_t floor_ns) {
  StepPattern result;
  int64_t worst_ns = 0;
  for (const auto& [step, delay_ns] : delay_by_step) worst_ns = std::max(worst_ns, delay_ns);
  const int64_t least_ns = std::max(floor_ns, worst_ns / kMinimumShareOfWorst);
  for (const auto& [step, delay_ns] : delay_by_step) {
    if (delay_ns < least_ns) continue;
    result.delay_ns += delay_ns;
    if (step >= 0) result.steps.push_back(step);
  }
  if (all_steps.empty() || result.steps.empty()) return result;
  result.period_steps = PeriodOf(result.steps, all_steps);
  if (result.period_steps) {
    result.pattern = WaitPattern::kPeriodic;
  } else if (all_steps.size() >= 2 && 2 * result.steps.size() > all_steps.size()) {
    result.pattern = WaitPattern::kChronic;
  } else if (result.steps.size() == 1) {
    result.pattern = WaitPattern::kOneOff;
  }
  return result;
}

}  // namespace lockstep::analysis
