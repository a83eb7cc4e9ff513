#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::hang {

/// What one look saw of one process: counts that only grow while it lives.
struct ProgressSample {
  std::string process;  ///< Names it for its whole life: host, pid, start.
  std::optional<int32_t> rank;
  int64_t main_switches = 0;   ///< Context switches of its main thread.
  int64_t main_cpu_ns = 0;     ///< Processor time of its main thread.
  int64_t threads_cpu_ns = 0;  ///< Of its other threads: a backward pass runs in one of them.
};

struct ProgressOptions {
  int64_t least_silence_ns = 5'000'000'000;   ///< Shorter gaps never count as silence.
  int64_t first_silence_ns = 30'000'000'000;  ///< Before a rhythm is known: loading and compiling take time.
  int64_t longest_gap_factor = 3;             ///< Of the longest gap among those remembered.
  int64_t spread_factor = 10;                 ///< Of the median absolute deviation, on top of the median.
  size_t remembered_count = 50;               ///< Gaps.
  size_t known_count = 5;                     ///< Gaps from which on the rhythm is known.
  int64_t least_cpu_ns = 500'000;             ///< Less processor time between two looks is not movement.
  /// The same of other threads, some of which poll for ever: this share of the time between the looks, and so much.
  double least_threads_ratio = 0.1;
  int64_t least_threads_cpu_ns = 20'000'000;
};

enum class ProgressState : uint8_t {
  kMoving,
  kSilent,  ///< Nothing has moved for longer than the job's own rhythm explains.
  kEnded,   ///< There was a process, and there is none any more.
};

/// Learns how often a job makes progress, and reports when there was no progress for too long. A slow job has long gaps
/// and so gets more time; there is no fixed time-out. Pure: time and samples are arguments. Source of the rule:
/// docs/watch.md.
class ProgressTracker {
 public:
  explicit ProgressTracker(const ProgressOptions& options = {}) : options_(options) {}

  /// Takes one look at all processes of the job. `now_ns` never goes back.
  ProgressState Look(int64_t now_ns, const std::vector<ProgressSample>& samples);
  /// The processes have been disturbed (stopped to copy their stacks): the next look only sets a new baseline.
  void Rebase() { is_rebased_ = true; }
  /// A silence was not a hang: silence of this length will not be reported again.
  void Excuse(int64_t silence_ns);

  int64_t silence_ns() const { return silence_ns_; }  ///< Since the last movement, at the last look.
  int64_t limit_ns() const;                           ///< Longer silence is kSilent.
  bool is_rhythm_known() const { return gaps_ns_.size() >= options_.known_count; }
  std::optional<int64_t> median_gap_ns() const;
  std::optional<int64_t> longest_gap_ns() const;
  /// Processes that moved between the last two looks.
  size_t moving_count() const { return moving_count_; }
  /// Ranks (or, without a rank, -1) of processes that were there before the last look and are not any more.
  const std::vector<int32_t>& gone_ranks() const { return gone_ranks_; }

 private:
  struct Counts {
    std::optional<int32_t> rank;
    int64_t main_switches = 0;
    int64_t main_cpu_ns = 0;
    int64_t threads_cpu_ns = 0;
  };
  bool TakeSamples(int64_t elapsed_ns, const std::vector<ProgressSample>& samples);
  int64_t MedianOf(std::vector<int64_t> values) const;

  const ProgressOptions options_;
  std::map<std::string, Counts> counts_;
  std::deque<int64_t> gaps_ns_;  ///< Between looks at which something had moved, the newest last.
  std::optional<int64_t> moved_at_ns_;
  std::optional<int64_t> looked_at_ns_;
  int64_t silence_ns_ = 0;
  int64_t excused_ns_ = 0;
  size_t moving_count_ = 0;
  bool is_rebased_ = false;
  bool had_process_ = false;
  std::vector<int32_t> gone_ranks_;
};

}  // namespace lockstep::hang
