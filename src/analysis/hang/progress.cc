#include "analysis/hang/progress.h"

#include <algorithm>
#include <utility>

#include "base/median.h"

namespace lockstep::hang {

bool ProgressTracker::TakeSamples(int64_t elapsed_ns, const std::vector<ProgressSample>& samples) {
  std::map<std::string, Counts> now;
  bool moved = false;
  moving_count_ = 0;
  const int64_t least_threads_ns =
      std::max(options_.least_threads_cpu_ns,
               static_cast<int64_t>(options_.least_threads_ratio * static_cast<double>(elapsed_ns)));
  for (const ProgressSample& sample : samples) {
    const Counts counts{sample.rank, sample.main_switches, sample.main_cpu_ns, sample.threads_cpu_ns};
    now[sample.process] = counts;
    const auto before = counts_.find(sample.process);
    const bool moves = before == counts_.end() || counts.main_switches != before->second.main_switches ||
                       counts.main_cpu_ns - before->second.main_cpu_ns >= options_.least_cpu_ns ||
                       counts.threads_cpu_ns - before->second.threads_cpu_ns >= least_threads_ns;
    if (!moves) continue;
    moved = true;
    ++moving_count_;
  }
  gone_ranks_.clear();
  for (const auto& [process, counts] : counts_) {
    if (!now.contains(process)) gone_ranks_.push_back(counts.rank.value_or(-1));
  }
  counts_ = std::move(now);
  return moved;
}

ProgressState ProgressTracker::Look(int64_t now_ns, const std::vector<ProgressSample>& samples) {
  const int64_t elapsed_ns = looked_at_ns_ ? now_ns - *looked_at_ns_ : 0;
  looked_at_ns_ = now_ns;
  const bool moved = TakeSamples(elapsed_ns, samples) && !std::exchange(is_rebased_, false);
  had_process_ = had_process_ || !samples.empty();
  if (samples.empty() && had_process_) return ProgressState::kEnded;
  if (moved || !moved_at_ns_) {
    if (moved_at_ns_) {
      gaps_ns_.push_back(now_ns - *moved_at_ns_);
      if (gaps_ns_.size() > options_.remembered_count) gaps_ns_.pop_front();
    }
    moved_at_ns_ = now_ns;
    silence_ns_ = 0;
    return ProgressState::kMoving;
  }
  silence_ns_ = now_ns - *moved_at_ns_;
  return silence_ns_ > limit_ns() ? ProgressState::kSilent : ProgressState::kMoving;
}

void ProgressTracker::Excuse(int64_t silence_ns) { excused_ns_ = std::max(excused_ns_, 2 * silence_ns); }

int64_t ProgressTracker::limit_ns() const {
  int64_t limit = std::max(options_.least_silence_ns, excused_ns_);
  if (!is_rhythm_known()) limit = std::max(limit, options_.first_silence_ns);
  if (gaps_ns_.empty()) return limit;
  const int64_t median = *median_gap_ns();
  std::vector<int64_t> deviations;
  for (const int64_t gap : gaps_ns_) deviations.push_back(gap > median ? gap - median : median - gap);
  limit = std::max(limit, options_.longest_gap_factor * *longest_gap_ns());
  return std::max(limit, median + options_.spread_factor * MedianOf(std::move(deviations)));
}

int64_t ProgressTracker::MedianOf(std::vector<int64_t> values) const { return UpperMedian(&values); }

std::optional<int64_t> ProgressTracker::median_gap_ns() const {
  if (gaps_ns_.empty()) return std::nullopt;
  return MedianOf({gaps_ns_.begin(), gaps_ns_.end()});
}

std::optional<int64_t> ProgressTracker::longest_gap_ns() const {
  if (gaps_ns_.empty()) return std::nullopt;
  return *std::max_element(gaps_ns_.begin(), gaps_ns_.end());
}

}  // namespace lockstep::hang
