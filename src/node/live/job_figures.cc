#include "node/live/job_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/median.h"
#include "base/nanoseconds.h"

namespace lockstep::live {
namespace {

constexpr size_t kMostMissing = 4096;
constexpr size_t kMostNamed = 3;
// A rank is slow whose own time is so much above the median, and one waits for it that communicates by so much of a
// step longer.
constexpr double kSlowRatio = 1.1;
constexpr double kWaitRatio = 0.1;
constexpr int64_t kStuckSteps = 10;
constexpr int64_t kLeastStuckNs = 5 * kSecondNs;
constexpr int64_t kOpenCollectiveNs = kSecondNs;
// Thresholds of the rules for Prometheus.
constexpr double kCommunicationAlarm = 0.30;
constexpr double kInputAlarm = 0.10;
constexpr double kStragglerAlarm = 1.20;
constexpr double kMemoryAlarm = 0.20;
constexpr int64_t kNoProgressNs = 120 * kSecondNs;
constexpr int64_t kCollectiveAlarmNs = 60 * kSecondNs;

bool Counts(const RankView& rank) { return rank.state != RankState::kUnheard; }

/// The lower of two in the middle: of two ranks the slower one is the one that sticks out.
template <typename T>
std::optional<T> Median(std::vector<T> values) {
  if (values.empty()) return std::nullopt;
  return LowerMedian(&values);
}

template <typename T>
std::optional<T> MedianOf(const JobView& job, std::optional<T> RankView::*field) {
  std::vector<T> values;
  for (const RankView& rank : job.ranks) {
    if (Counts(rank) && rank.*field) values.push_back(*(rank.*field));
  }
  return Median(std::move(values));
}

std::optional<double> SumOf(const JobView& job, std::optional<double> RankView::*field) {
  std::optional<double> sum;
  for (const RankView& rank : job.ranks) {
    if (Counts(rank) && rank.*field) sum = sum.value_or(0) + *(rank.*field);
  }
  return sum;
}

/// A share of the step time of all ranks together.
std::optional<double> ShareOf(const JobView& job, std::optional<double> RankView::*field) {
  double part = 0;
  double whole = 0;
  for (const RankView& rank : job.ranks) {
    if (!Counts(rank) || !rank.step_ns || !(rank.*field)) continue;
    part += static_cast<double>(*rank.step_ns) * *(rank.*field);
    whole += static_cast<double>(*rank.step_ns);
  }
  if (whole <= 0) return std::nullopt;
  return part / whole;
}

std::optional<double> MfuOf(const JobView& job) {
  double flops = 0;
  double peak = 0;
  for (const RankView& rank : job.ranks) {
    if (!Counts(rank) || !rank.model_flops_per_s || !rank.reading.peak_flops_per_s) continue;
    flops += *rank.model_flops_per_s;
    peak += *rank.reading.peak_flops_per_s;
  }
  if (peak <= 0) return std::nullopt;
  return flops / peak;
}

void NameMissing(JobView* job) {
  if (!job->world_size) return;
  std::set<uint64_t> there;
  for (const RankView& rank : job->ranks) {
    if (const auto number = RankNumber(rank.rank)) there.insert(*number);
  }
  for (uint64_t rank = 0; rank < *job->world_size && job->missing_ranks.size() < kMostMissing; ++rank) {
    if (!there.contains(rank)) job->missing_ranks.push_back(rank);
  }
}

void CountBehind(JobView* job) {
  uint64_t most = 0;
  for (const RankView& rank : job->ranks) {
    if (Counts(rank)) most = std::max(most, rank.step_count.value_or(0));
  }
  for (RankView& rank : job->ranks) {
    if (rank.step_count) rank.behind_steps = most - std::min(most, *rank.step_count);
  }
}

void FindSlowest(JobView* job) {
  const RankView* slowest = nullptr;
  size_t count = 0;
  for (const RankView& rank : job->ranks) {
    if (!Counts(rank) || !rank.own_ns) continue;
    ++count;
    if (slowest == nullptr || *rank.own_ns > *slowest->own_ns) slowest = &rank;
  }
  if (count < 2 || job->own_ns.value_or(0) <= 0) return;
  const double ratio = static_cast<double>(*slowest->own_ns) / static_cast<double>(*job->own_ns);
  if (ratio < kSlowRatio) return;
  job->slowest_rank = slowest->rank;
  job->slowest_ratio = ratio;
}

double CommunicationNs(const RankView& rank) {
  return static_cast<double>(rank.step_ns.value_or(0)) * rank.communication_ratio.value_or(0);
}

/// Of each group, those that have put more operations into their streams wait for the one that has put fewest.
void WaitByCollectives(JobView* job) {
  struct Group {
    const RankView* last = nullptr;
    double fewest = 0;
    size_t count = 0;
  };
  std::map<std::string_view, Group> groups;
  for (const RankView& rank : job->ranks) {
    if (!Counts(rank)) continue;
    for (const auto& [name, reading] : rank.reading.groups) {
      if (!reading.enqueued) continue;
      Group& group = groups[name];
      if (group.count++ == 0 || *reading.enqueued < group.fewest) {
        group.fewest = *reading.enqueued;
        group.last = &rank;
      }
    }
  }
  for (RankView& rank : job->ranks) {
    double longest_s = static_cast<double>(kOpenCollectiveNs) / 1e9;
    for (const auto& [name, reading] : rank.reading.groups) {
      if (!Counts(rank) || !reading.enqueued || reading.oldest_inflight_s.value_or(0) < longest_s) continue;
      const Group& group = groups[name];
      if (group.last == nullptr || *reading.enqueued <= group.fewest) continue;
      longest_s = *reading.oldest_inflight_s;
      rank.waits_for_rank = group.last->rank;
    }
  }
}

/// The ranks that do not wait while most of a stuck job's do: as the rule of Prometheus for it names them.
std::vector<const RankView*> OutsideOfWaits(const JobView& job) {
  std::vector<const RankView*> outside;
  size_t waiting = 0;
  for (const RankView& rank : job.ranks) {
    if (rank.state != RankState::kStuck || !rank.open_phase_ns) continue;
    rank.reading.open_phase == model::Stage::kCommunication ? void(++waiting) : outside.push_back(&rank);
  }
  if (waiting < outside.size()) outside.clear();
  return outside;
}

/// Of a stuck job: by the phase that each rank is in. Where several do not wait, they may have one cause, and nobody is
/// waited for alone.
void WaitByPhases(JobView* job) {
  const std::vector<const RankView*> outside = OutsideOfWaits(*job);
  if (outside.size() != 1) return;
  for (RankView& rank : job->ranks) {
    if (rank.reading.open_phase != model::Stage::kCommunication || rank.state != RankState::kStuck) continue;
    if (!rank.waits_for_rank) rank.waits_for_rank = outside.front()->rank;
  }
}

/// Where no collective and no phase says it: by how much longer a rank communicates than the slowest one, or by steps
/// when nothing moves.
void WaitBySteps(JobView* job) {
  const RankView* slowest = nullptr;
  const RankView* furthest_behind = nullptr;
  for (const RankView& rank : job->ranks) {
    if (!Counts(rank)) continue;
    if (job->slowest_rank && rank.rank == *job->slowest_rank) slowest = &rank;
    if (rank.state == RankState::kStuck && rank.behind_steps.value_or(0) > 0 &&
        (furthest_behind == nullptr || *rank.behind_steps > *furthest_behind->behind_steps)) {
      furthest_behind = &rank;
    }
  }
  for (RankView& rank : job->ranks) {
    if (!Counts(rank) || rank.waits_for_rank || !rank.step_ns) continue;
    if (rank.state == RankState::kStuck) {
      if (rank.open_phase_ns && rank.reading.open_phase != model::Stage::kCommunication) continue;
      if (furthest_behind != nullptr && *rank.behind_steps < *furthest_behind->behind_steps) {
        rank.waits_for_rank = furthest_behind->rank;
      }
    } else if (slowest != nullptr && &rank != slowest) {
      const double excess_ns = CommunicationNs(rank) - CommunicationNs(*slowest);
      if (excess_ns >= kWaitRatio * static_cast<double>(*rank.step_ns)) rank.waits_for_rank = slowest->rank;
    }
  }
}

std::string Age(int64_t ns) { return fmt::format("{:.0f} s", static_cast<double>(ns) / 1e9); }
std::string Percent(double ratio) { return fmt::format("{:.0f} %", ratio * 100); }

class AlarmList {
 public:
  explicit AlarmList(JobView* job) : job_(*job) {}
  void Add(AlarmSeverity severity, const char* kind, std::string text, std::optional<std::string> rank = {}) {
    job_.alarms.push_back({kind, severity, std::move(text), std::move(rank)});
  }
  void Sort() {
    std::stable_sort(job_.alarms.begin(), job_.alarms.end(),
                     [](const Alarm& a, const Alarm& b) { return a.severity > b.severity; });
  }

 private:
  JobView& job_;
};

void AlarmProgress(const JobView& job, AlarmList* alarms) {
  std::optional<int64_t> newest_ns;
  const RankView* open = nullptr;
  for (const RankView& rank : job.ranks) {
    if (!Counts(rank)) continue;
    if (rank.progress_age_ns) newest_ns = std::min(newest_ns.value_or(INT64_MAX), *rank.progress_age_ns);
    if (rank.oldest_collective_ns.value_or(0) > kCollectiveAlarmNs &&
        (open == nullptr || *rank.oldest_collective_ns > *open->oldest_collective_ns)) {
      open = &rank;
    }
  }
  const int64_t patience_ns =
      std::max(kStuckSteps * std::min<int64_t>(job.step_ns.value_or(0), INT64_MAX / 100), kNoProgressNs);
  if (newest_ns && *newest_ns > patience_ns) {
    const std::vector<const RankView*> outside = OutsideOfWaits(job);
    std::string text = "no rank has ended a step for " + Age(*newest_ns);
    for (size_t i = 0; i < outside.size() && i < kMostNamed; ++i) {
      text += fmt::format("{} rank {} {} for {}", i == 0 ? ";" : ",", outside[i]->rank, PhaseWords(*outside[i]),
                          Age(*outside[i]->open_phase_ns));
    }
    if (outside.size() > kMostNamed) text += fmt::format(" and {} more", outside.size() - kMostNamed);
    alarms->Add(AlarmSeverity::kCritical, "no_progress", std::move(text),
                outside.size() == 1 ? std::optional(outside.front()->rank) : std::nullopt);
  }
  if (open != nullptr) {
    alarms->Add(AlarmSeverity::kCritical, "collective_stuck",
                fmt::format("a collective of rank {} is open for {}", open->rank, Age(*open->oldest_collective_ns)),
                open->rank);
  }
}

void AlarmMemory(const JobView& job, AlarmList* alarms) {
  std::optional<double> least;
  double most = 0;
  for (const RankView& rank : job.ranks) {
    if (!Counts(rank) || !rank.reading.torch_reserved_bytes) continue;
    const double bytes = *rank.reading.torch_reserved_bytes;
    least = std::min(least.value_or(bytes), bytes);
    most = std::max(most, bytes);
  }
  if (!least || most <= 0 || (most - *least) / most <= kMemoryAlarm) return;
  alarms->Add(AlarmSeverity::kInfo, "memory_imbalance",
              "memory that PyTorch holds differs between ranks by " + Percent((most - *least) / most));
}

}  // namespace

void FinishJob(JobView* job) {
  std::sort(job->ranks.begin(), job->ranks.end(), [](const RankView& a, const RankView& b) {
    if (a.rank != b.rank) return RankComesBefore(a.rank, b.rank);
    return a.host < b.host;
  });
  NameMissing(job);
  CountBehind(job);
  job->step_ns = MedianOf(*job, &RankView::step_ns);
  job->own_ns = MedianOf(*job, &RankView::own_ns);
  const int64_t patience_ns =
      std::max(kStuckSteps * std::min<int64_t>(job->step_ns.value_or(0), INT64_MAX / 100), kLeastStuckNs);
  for (RankView& rank : job->ranks) {
    if (!Counts(rank) || !rank.step_count) continue;
    rank.state = rank.progress_age_ns.value_or(0) > patience_ns ? RankState::kStuck : RankState::kRuns;
    if (rank.state != RankState::kStuck) continue;
    for (auto* rate : {&rank.steps_per_s, &rank.samples_per_s, &rank.tokens_per_s, &rank.model_flops_per_s}) {
      if (*rate) *rate = 0;
    }
    if (rank.mfu_ratio) rank.mfu_ratio = 0;
  }
  job->steps_per_s = MedianOf(*job, &RankView::steps_per_s);
  job->compute_ratio = ShareOf(*job, &RankView::compute_ratio);
  job->communication_ratio = ShareOf(*job, &RankView::communication_ratio);
  job->input_ratio = ShareOf(*job, &RankView::input_ratio);
  job->mfu_ratio = MfuOf(*job);
  job->samples_per_s = SumOf(*job, &RankView::samples_per_s);
  job->tokens_per_s = SumOf(*job, &RankView::tokens_per_s);
  FindSlowest(job);
  WaitByCollectives(job);
  WaitByPhases(job);
  WaitBySteps(job);
  for (RankView& rank : job->ranks) {
    if (rank.state != RankState::kRuns) continue;
    if (job->slowest_rank && rank.rank == *job->slowest_rank) {
      rank.state = RankState::kSlow;
    } else if (rank.waits_for_rank) {
      rank.state = RankState::kWaits;
    }
  }
}

void AddAlarms(JobView* job, const std::set<std::string>& gone, bool is_whole_job) {
  AlarmList alarms(job);
  AlarmProgress(*job, &alarms);
  for (const std::string& rank : gone) {
    alarms.Add(AlarmSeverity::kCritical, "rank_gone", fmt::format("rank {} has ended and the others still run", rank),
               rank);
  }
  if (is_whole_job && !job->missing_ranks.empty() && gone.empty()) {
    const size_t count = job->missing_ranks.size();
    alarms.Add(AlarmSeverity::kCritical, "rank_missing",
               fmt::format("{} of {} ranks {} on none of the job's nodes, the first is {}", count, *job->world_size,
                           count == 1 ? "is" : "are", job->missing_ranks.front()));
  }
  if (job->communication_ratio.value_or(0) > kCommunicationAlarm) {
    alarms.Add(AlarmSeverity::kWarning, "exposed_communication",
               Percent(*job->communication_ratio) + " of step time is exposed communication");
  }
  if (job->slowest_ratio.value_or(0) > kStragglerAlarm) {
    alarms.Add(
        AlarmSeverity::kWarning, "straggler",
        fmt::format("rank {} takes {:.2f} times the median rank's own time", *job->slowest_rank, *job->slowest_ratio),
        job->slowest_rank);
  }
  if (job->input_ratio.value_or(0) > kInputAlarm) {
    alarms.Add(AlarmSeverity::kInfo, "input_bound", Percent(*job->input_ratio) + " of step time is waiting for input");
  }
  AlarmMemory(*job, &alarms);
  alarms.Sort();
}

}  // namespace lockstep::live
