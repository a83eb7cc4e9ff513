#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::analysis {

/// What part of the waiting for a late rank goes to one first cause.
struct Weight {
  uint32_t root = 0;
  double direct = 0;      ///< What the late rank did itself.
  double propagated = 0;  ///< What it waited for.
  double sum() const { return direct + propagated; }
};

/// Adds weights up by root, each in O(1) whatever the number of roots.
class WeightSum {
 public:
  void Add(const Weight& added) {
    if (added.root >= place_.size()) place_.resize(added.root + 1, kNone);
    uint32_t& place = place_[added.root];
    if (place == kNone) {
      place = static_cast<uint32_t>(weights_.size());
      weights_.push_back(added);
      return;
    }
    weights_[place].direct += added.direct;
    weights_[place].propagated += added.propagated;
  }

  /// Returns the sums of at least `least`, by root, and resets them.
  std::vector<Weight> Take(double least) {
    for (const Weight& weight : weights_) place_[weight.root] = kNone;
    std::vector<Weight> taken;
    for (const Weight& weight : weights_) {
      if (weight.sum() >= least) taken.push_back(weight);
    }
    weights_.clear();
    std::sort(taken.begin(), taken.end(), [](const Weight& a, const Weight& b) { return a.root < b.root; });
    return taken;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> place_;  // by root: where in weights_
  std::vector<Weight> weights_;
};

}  // namespace lockstep::analysis
