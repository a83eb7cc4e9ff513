#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/wait_states/late_reasons.h"
#include "analysis/wait_states/wait_plan.h"
#include "analysis/wait_states/wait_states.h"
#include "model/run.h"

namespace lockstep::analysis {

inline constexpr uint32_t kLinkRoot = 0;  ///< Slow links share one entry.

/// First causes while blame is being added up, by number. Number kLinkRoot is that of slow links.
class RootTable {
 public:
  RootTable() { roots_.emplace_back().cause = RootCause::kSlowLink; }

  struct Worst {
    int64_t wait_ns = -1;
    uint32_t instance = 0;
    int32_t node = -1;  ///< Late node the victim waited for; -1 where the transfer itself was slow.
  };
  struct Victim {
    double wait_ns = 0;
    Worst worst;
  };
  struct Root {
    RootCause cause = RootCause::kHost;
    uint32_t rank_index = 0;
    LateReason worst;  ///< With the largest excess.
    double direct_ns = 0;
    double propagated_ns = 0;
    std::set<uint32_t> instances;
    std::map<int64_t, int64_t> delay_by_step;
    std::map<size_t, double> wait_by_round;
    std::map<uint32_t, Victim> victims;
    std::map<size_t, double> passed_on_ns;  ///< By rank: waiting for it since it had waited for this cause.
  };

  uint32_t NumberOf(uint32_t rank_index, RootCause cause) {
    const auto [slot, is_new] = numbers_.emplace(std::pair(rank_index, cause), static_cast<uint32_t>(roots_.size()));
    if (is_new) {
      Root& root = roots_.emplace_back();
      root.cause = cause;
      root.rank_index = rank_index;
    }
    return slot->second;
  }
  Root& operator[](uint32_t number) { return roots_[number]; }
  size_t size() const { return roots_.size(); }

 private:
  std::vector<Root> roots_;
  std::map<std::pair<uint32_t, RootCause>, uint32_t> numbers_;
};

/// Steps in which a cause showed, and their pattern. In: delays by step number (-1 = outside of steps), the numbers of
/// all steps, ascending.
struct StepPattern {
  std::vector<int64_t> steps;
  WaitPattern pattern = WaitPattern::kIrregular;
  std::optional<int64_t> period_steps;
  int64_t delay_ns = 0;  ///< Over those steps.
};
StepPattern FindStepPattern(const std::map<int64_t, int64_t>& delay_by_step, const std::vector<int64_t>& all_steps,
                            int64_t floor_ns);

}  // namespace lockstep::analysis
