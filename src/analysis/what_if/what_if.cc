#include "analysis/what_if/what_if.h"

#include <algorithm>
#include <tuple>

namespace lockstep::analysis {

void RankLevers(WhatIf* what_if) {
  const int64_t now_ns = what_if->simulated_step_ns;
  for (Lever& lever : what_if->levers) {
    lever.gain_ns = now_ns - lever.step_ns;
    lever.gain_ratio = now_ns > 0 ? static_cast<double>(lever.gain_ns) / static_cast<double>(now_ns) : 0;
  }
  std::sort(what_if->levers.begin(), what_if->levers.end(),
            [](const Lever& a, const Lever& b) { return std::tie(b.gain_ns, a.id) < std::tie(a.gain_ns, b.id); });
}

}  // namespace lockstep::analysis
