#include "analysis/comparison/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::comparison {
namespace {

Series OwnTime(const RankProfile& rank) {
  Series own = rank.parts[static_cast<size_t>(Part::kStep)];
  const Series& exposed = rank.parts[static_cast<size_t>(Part::kExposedCommunication)];
  for (size_t i = 0; i < own.size(); ++i) own[i] -= exposed[i];
  return own;
}

void CompareRanks(Comparison* comparison) {
  const double confidence = comparison->options.confidence;
  const double minimum = comparison->options.minimum_effect;
  std::map<int32_t, const RankProfile*> in_b;
  for (const RankProfile& rank : comparison->b.ranks) in_b[rank.rank] = &rank;
  for (const RankProfile& rank : comparison->a.ranks) {
    const auto found = in_b.find(rank.rank);
    if (found == in_b.end()) {
      comparison->only_a.push_back(rank.rank);
      continue;
    }
    RankDelta row;
    row.rank = rank.rank;
    for (size_t p = 0; p < kPartCount; ++p) {
      row.parts[p] = CompareSeries(rank.parts[p], found->second->parts[p], comparison->step.a, minimum, confidence);
    }
    row.own = CompareSeries(OwnTime(rank), OwnTime(*found->second), comparison->step.a, minimum, confidence);
    comparison->ranks.push_back(std::move(row));
    in_b.erase(found);
  }
  for (const auto& entry : in_b) comparison->only_b.push_back(entry.first);
  std::stable_sort(comparison->ranks.begin(), comparison->ranks.end(), [](const RankDelta& x, const RankDelta& y) {
    return std::abs(x.own.b - x.own.a) > std::abs(y.own.b - y.own.a);
  });
}

}  // namespace

const char* ChangeName(Change change) {
  static constexpr const char* kNames[] = {"none", "faster", "slower", "added", "removed", "unknown"};
  return kNames[static_cast<size_t>(change)];
}

const char* FindingStateName(FindingDelta::State state) {
  static constexpr const char* kNames[] = {"appeared", "disappeared", "stayed"};
  return kNames[static_cast<size_t>(state)];
}

std::optional<double> Delta::ratio() const {
  if (!shift || a == 0) return std::nullopt;
  return shift->estimate / a;
}

Delta CompareSeries(const Series& a, const Series& b, double whole, double minimum, double confidence) {
  Delta delta;
  delta.a = Median(a);
  delta.b = Median(b);
  delta.shift = EstimateShift(a, b, confidence);
  if (!delta.shift || !delta.shift->low) return delta;
  const double scale = whole > 0 ? whole : delta.a;
  const bool counts = std::abs(delta.shift->estimate) >= minimum * scale && delta.shift->differs();
  delta.change = !counts ? Change::kNone : delta.shift->estimate > 0 ? Change::kSlower : Change::kFaster;
  return delta;
}

Comparison Compare(RunProfile a, RunProfile b, const CompareOptions& options) {
  Comparison comparison;
  comparison.options = options;
  comparison.a = std::move(a);
  comparison.b = std::move(b);
  comparison.step =
      CompareSeries(comparison.a.step_ns, comparison.b.step_ns, 0, options.minimum_effect, options.confidence);
  for (size_t p = 0; p < kPartCount; ++p) {
    comparison.parts[p] = CompareSeries(comparison.a.mean_parts[p], comparison.b.mean_parts[p], comparison.step.a,
                                        options.minimum_effect, options.confidence);
  }
  CompareRanks(&comparison);
  CompareNames(&comparison);
  CompareCollectives(&comparison);
  CompareMemory(&comparison);
  CompareFindings(&comparison);
  Judge(&comparison);
  return comparison;
}

}  // namespace lockstep::comparison
