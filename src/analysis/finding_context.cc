#include "analysis/finding_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "analysis/breakdown.h"

namespace lockstep::analysis {
namespace {

std::string ThreeDigits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

FindingContext::FindingContext(const RunContext& shared, const AnalysisResult& result)
    : shared_(shared), result_(result), steps_(shared.run->ranks.size(), 0) {
  const bool on_device = std::any_of(result.Get<Breakdown>().ranks.begin(), result.Get<Breakdown>().ranks.end(),
                                     [](const BreakdownRow& row) { return row.basis == Basis::kDevice; });
  for (const BreakdownRow& row : result.Get<Breakdown>().ranks) {
    if (!InFirstWindow(row.rank_index) || row.span_ns <= 0) continue;
    if (row.basis == (on_device ? Basis::kDevice : Basis::kCpu)) breakdown_.push_back(row);
  }
  for (const BreakdownRow& row : result.Get<Breakdown>().steps) {
    if (row.rank_index < steps_.size()) ++steps_[row.rank_index];
  }
  int64_t sum_ns = 0;
  for (const BreakdownRow& row : breakdown_) {
    step_count_ = std::max(step_count_, steps_[row.rank_index]);
    sum_ns += row.span_ns / StepsOf(row.rank_index);
  }
  if (!breakdown_.empty()) {
    step_ns_ = sum_ns / static_cast<int64_t>(breakdown_.size());
  } else {
    step_count_ = result.step_count;
    step_ns_ = result.job_span_ns / std::max<int64_t>(result.step_count, 1);
  }
}

FindingContext::Recorded FindingContext::recorded() const {
  Recorded recorded;
  std::set<int32_t> ranks;
  for (size_t i = 0; i < run().ranks.size(); ++i) {
    if (!InFirstWindow(i)) continue;
    recorded.world_size = std::max(recorded.world_size, int64_t{run().ranks[i].world_size.value_or(0)});
    ranks.insert(run().ranks[i].rank.value);
  }
  recorded.count = static_cast<int64_t>(ranks.size());
  recorded.world_size = std::max(recorded.world_size, recorded.count);
  return recorded;
}

bool FindingContext::InFirstWindow(size_t rank_index) const {
  return rank_index < run().ranks.size() && run().ranks[rank_index].window == run().ranks.front().window;
}

bool FindingContext::knows_compute() const {
  return std::any_of(breakdown_.begin(), breakdown_.end(), [](const BreakdownRow& row) {
    return row.basis != Basis::kDevice || row.busy_ns > row.communication_ns;
  });
}

int64_t FindingContext::StepsOf(size_t rank_index) const {
  if (rank_index < steps_.size() && steps_[rank_index] > 0) return steps_[rank_index];
  return std::max<int64_t>(step_count_, 1);
}

bool FindingContext::StepCountsAgree() const {
  return std::all_of(breakdown_.begin(), breakdown_.end(), [this](const BreakdownRow& row) {
    return steps_[row.rank_index] == steps_[breakdown_.front().rank_index];
  });
}

FindingSeverity FindingContext::SeverityOf(std::optional<int64_t> gain_ns) const {
  if (!gain_ns || step_ns_ <= 0) return FindingSeverity::kInfo;
  const double ratio = static_cast<double>(*gain_ns) / static_cast<double>(step_ns_);
  if (ratio >= 0.10) return FindingSeverity::kCritical;
  return ratio >= 0.01 ? FindingSeverity::kWarning : FindingSeverity::kInfo;
}

std::string TimeText(int64_t ns) {
  const double value = static_cast<double>(ns);
  const double size = std::abs(value);
  if (size >= 1e9) return ThreeDigits(value / 1e9) + " s";
  if (size >= 1e6) return ThreeDigits(value / 1e6) + " ms";
  if (size >= 1e3) return ThreeDigits(value / 1e3) + " us";
  return fmt::format("{} ns", ns);
}

std::string BytesText(double bytes) {
  if (bytes >= 1e9) return ThreeDigits(bytes / 1e9) + " GB";
  if (bytes >= 1e6) return ThreeDigits(bytes / 1e6) + " MB";
  if (bytes >= 1e3) return ThreeDigits(bytes / 1e3) + " kB";
  return fmt::format("{:.0f} bytes", bytes);
}

std::string PercentText(double ratio) {
  return std::abs(ratio) < 0.00995 ? fmt::format("{:.1f} %", ratio * 100) : fmt::format("{:.0f} %", ratio * 100);
}

std::string RanksText(const std::vector<int32_t>& ranks) {
  static constexpr size_t kMaxNamed = 8;
  if (ranks.empty()) return "all ranks";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  std::string text = "ranks ";
  const size_t named = ranks.size() <= kMaxNamed ? ranks.size() - 1 : kMaxNamed;
  for (size_t i = 0; i < named; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() <= kMaxNamed) return text + fmt::format(" and {}", ranks.back());
  return text + fmt::format(" and {} more", ranks.size() - named);
}

}  // namespace lockstep::analysis
