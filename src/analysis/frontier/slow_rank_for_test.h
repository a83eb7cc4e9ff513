#pragma once

#include <cstdint>
#include <vector>

#include "base/nanoseconds.h"
#include "model/stages/rank_stages.h"

namespace lockstep::frontier {

/// Three ranks that meet once a step, the second of which takes twice as long in forward: a straggler.
inline std::vector<model::RankStages> SlowSecondRank(int64_t step_count) {
  constexpr int64_t kForwardNs = 10 * kMillisecondNs;
  std::vector<model::RankStages> ranks;
  for (int32_t number = 0; number < 3; ++number) {
    model::RankStages& rank = ranks.emplace_back(model::RankStages{.rank = number});
    for (int64_t step = 0; step < step_count; ++step) {
      model::StepStages& stages =
          rank.steps.emplace_back(model::StepStages{.number = step, .duration_ns = 2 * kForwardNs + 1000});
      const int64_t forward_ns = number == 1 ? 2 * kForwardNs : kForwardNs;
      stages.spans.push_back({model::Stage::kForward, forward_ns});
      stages.spans.push_back({model::Stage::kCommunication, stages.duration_ns - forward_ns});
    }
  }
  return ranks;
}

}  // namespace lockstep::frontier
