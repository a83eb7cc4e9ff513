#include "analysis/frontier/over_time.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/median.h"

namespace lockstep::frontier {

using model::Stage;

namespace {

using Parts = std::span<const Accounting>;

constexpr double kSlowWindow = 1.10;  // Of the lower quartile.
constexpr double kLeastChange = 0.15;
constexpr int64_t kLeastNoises = 4;
constexpr double kLeastJobShare = 0.01;
constexpr int64_t kLeastChangedSteps = 5;

Accounting SumOf(Parts parts) {
  Accounting sum = parts.front();
  for (const Accounting& part : parts.subspan(1)) Add(part, &sum);
  return sum;
}

Window WindowOf(const Accounting& account) {
  Window window{.first_step = account.steps.front().number,
                .last_step = account.steps.back().number,
                .step_count = account.step_count,
                .ns = account.total_ns,
                .rank_cost_ns = std::vector<int64_t>(account.ranks.size()),
                .rank_stage = std::vector<Stage>(account.ranks.size(), Stage::kOther)};
  std::vector<int64_t> steps_ns;
  steps_ns.reserve(account.steps.size());
  for (const StepAccount& step : account.steps) steps_ns.push_back(step.ns);
  window.median_step_ns = Median(&steps_ns);
  for (const Stage stage : model::kStages) {
    const StageAccount& each = account.At(stage);
    model::At(window.frontier_ns, stage) = each.frontier_ns;
    if (each.frontier_ns > model::At(window.frontier_ns, window.largest_stage)) window.largest_stage = stage;
    for (size_t i = 0; i < each.cost.size(); ++i) {
      window.rank_cost_ns[i] += each.cost[i].ns;
      if (each.cost[i].ns > account.At(window.rank_stage[i]).cost[i].ns) window.rank_stage[i] = stage;
    }
  }
  const MostCost most = FindMostCost(account);
  window.cost_ns = most.ns;
  window.rank_idx = most.rank_idx;
  window.cost_stage = most.stage;
  return window;
}

/// At most `most` windows, of equally many parts.
std::vector<Window> Windows(Parts parts, size_t most) {
  const size_t count = std::min(most, parts.size());
  std::vector<Window> windows;
  windows.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = parts.size() * i / count;
    windows.push_back(WindowOf(SumOf(parts.subspan(begin, parts.size() * (i + 1) / count - begin))));
  }
  return windows;
}

/// Parts [begin, end).
struct Stretch {
  size_t begin;
  size_t end;
};

/// Of windows in a row that take longer than the faster ones.
std::vector<Stretch> SlowStretches(const std::vector<int64_t>& medians_ns) {
  std::vector<int64_t> sorted_ns = medians_ns;
  const auto quartile = sorted_ns.begin() + static_cast<ptrdiff_t>(sorted_ns.size() / 4);
  std::nth_element(sorted_ns.begin(), quartile, sorted_ns.end());
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < medians_ns.size(); ++i) {
    if (static_cast<double>(medians_ns[i]) <= kSlowWindow * static_cast<double>(*quartile)) continue;
    if (stretches.empty() || stretches.back().end != i) stretches.push_back({i, i});
    stretches.back().end = i + 1;
  }
  return stretches;
}

/// Without windows at its ends that are nearer to what is usual than to what most of it takes: a machine's noise just
/// before or behind.
Stretch Trimmed(Stretch stretch, const std::vector<int64_t>& medians_ns, int64_t usual_ns) {
  std::vector<int64_t> inside_ns(medians_ns.begin() + static_cast<ptrdiff_t>(stretch.begin),
                                 medians_ns.begin() + static_cast<ptrdiff_t>(stretch.end));
  const int64_t halfway_ns = usual_ns + (Median(&inside_ns) - usual_ns) / 2;
  while (stretch.end - stretch.begin > 1 && medians_ns[stretch.begin] < halfway_ns) ++stretch.begin;
  while (stretch.end - stretch.begin > 1 && medians_ns[stretch.end - 1] < halfway_ns) --stretch.end;
  return stretch;
}

/// By how much two windows in a row differ.
int64_t Noise(const std::vector<int64_t>& medians_ns) {
  std::vector<int64_t> differences_ns;
  for (size_t i = 1; i < medians_ns.size(); ++i) {
    differences_ns.push_back(std::abs(medians_ns[i] - medians_ns[i - 1]));
  }
  return differences_ns.empty() ? 0 : Median(&differences_ns);
}

/// What `part_ns` of `steps` is more than as many steps of the rest have.
double Excess(int64_t part_ns, int64_t steps, int64_t rest_ns, int64_t rest_steps) {
  return static_cast<double>(part_ns) -
         static_cast<double>(rest_ns) * static_cast<double>(steps) / static_cast<double>(rest_steps);
}

/// Who or what makes up half of the time that was lost.
void Explain(const Accounting& slow, const Accounting& rest, double lost_ns, Change* change) {
  double most_ns = lost_ns / 2;
  for (const Stage stage : model::kStages) {
    for (size_t i = 0; i < slow.ranks.size(); ++i) {
      const double ns = Excess(slow.At(stage).cost[i].ns, slow.step_count, rest.At(stage).cost[i].ns, rest.step_count);
      if (ns < most_ns) continue;
      most_ns = ns;
      change->rank_idx = i;
      change->stage = stage;
    }
  }
  if (change->rank_idx) return;
  for (const Stage stage : model::kStages) {
    const double ns = Excess(slow.At(stage).frontier_ns, slow.step_count, rest.At(stage).frontier_ns, rest.step_count);
    if (ns < most_ns) continue;
    most_ns = ns;
    change->stage = stage;
  }
}

Change MeasureChange(Parts parts, const Stretch& stretch, int64_t usual_step_ns) {
  Change change{.window = WindowOf(SumOf(parts.subspan(stretch.begin, stretch.end - stretch.begin))),
                .usual_step_ns = usual_step_ns};
  const int64_t longer_ns = change.window.median_step_ns - usual_step_ns;
  change.ratio = usual_step_ns > 0 ? static_cast<double>(longer_ns) / static_cast<double>(usual_step_ns) : 0;
  return change;
}

double LostNs(const Change& change) {
  return static_cast<double>(change.window.median_step_ns - change.usual_step_ns) *
         static_cast<double>(change.window.step_count);
}

bool IsChange(const Change& change, const Accounting& rest, int64_t noise_ns, int64_t job_ns) {
  return change.window.step_count >= kLeastChangedSteps && rest.step_count >= kLeastChangedSteps &&
         change.ratio >= kLeastChange &&
         (change.window.median_step_ns - change.usual_step_ns) / kLeastNoises >= noise_ns &&
         LostNs(change) >= kLeastJobShare * static_cast<double>(job_ns);
}

std::vector<Change> FindChanges(Parts parts, const std::vector<Window>& windows) {
  std::vector<int64_t> medians_ns;
  for (const Window& window : windows) medians_ns.push_back(window.median_step_ns);
  const std::vector<Stretch> stretches = SlowStretches(medians_ns);
  if (stretches.empty()) return {};
  std::vector<int64_t> usual_ns;
  std::optional<Accounting> rest;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_slow = std::any_of(stretches.begin(), stretches.end(),
                                     [i](const Stretch& slow) { return slow.begin <= i && i < slow.end; });
    if (is_slow) continue;
    usual_ns.push_back(medians_ns[i]);
    if (rest) {
      Add(parts[i], &*rest);
    } else {
      rest = parts[i];
    }
  }
  const int64_t usual_step_ns = Median(&usual_ns);  // A quarter of the windows is not slow.
  const int64_t noise_ns = Noise(medians_ns);
  int64_t job_ns = 0;
  for (const Window& window : windows) job_ns += window.ns;
  std::vector<std::pair<double, Change>> found;  // By the time that was lost.
  for (const Stretch& whole : stretches) {
    // Whether it is one is said of all of it: its slowest windows alone stand out by chance.
    if (!IsChange(MeasureChange(parts, whole, usual_step_ns), *rest, noise_ns, job_ns)) continue;
    const Stretch stretch = Trimmed(whole, medians_ns, usual_step_ns);
    Change change = MeasureChange(parts, stretch, usual_step_ns);
    const double lost_ns = LostNs(change);
    Explain(SumOf(parts.subspan(stretch.begin, stretch.end - stretch.begin)), *rest, lost_ns, &change);
    found.emplace_back(lost_ns, std::move(change));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (found.size() > kMostChanges) found.resize(kMostChanges);
  std::vector<Change> changes;
  for (auto& [lost_ns, change] : found) changes.push_back(std::move(change));
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.window.first_step < b.window.first_step; });
  return changes;
}

}  // namespace

OverTime FollowOverTime(const std::vector<Accounting>& parts) {
  OverTime over_time;
  if (parts.empty()) return over_time;
  over_time.windows = Windows(parts, parts.size());
  over_time.coarse = Windows(parts, kMostCoarseWindows);
  over_time.changes = FindChanges(parts, over_time.windows);
  return over_time;
}

}  // namespace lockstep::frontier
