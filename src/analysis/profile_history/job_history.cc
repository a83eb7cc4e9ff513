#include "analysis/profile_history/job_history.h"

#include <algorithm>
#include <cmath>

#include "analysis/comparison/statistics.h"

namespace lockstep::profile_history {
namespace {

using analysis::Finding;

constexpr size_t kRecent = 3;
constexpr size_t kMostSeries = 2 * kMostFigures;  // Kernels come and go.

bool IsWorse(const Figure& figure, const LevelChange& change) {
  return figure.is_worse_when_less() ? change.after < change.before : change.after > change.before;
}

std::optional<double> ValueOf(const CaptureRecord& record, const std::string& name) {
  for (const Figure& figure : record.figures) {
    if (figure.name == name) return figure.value;
  }
  return std::nullopt;
}

/// Ranks whose own time has grown by at least half of what the worst one's has. None where that is most of the job.
std::vector<int32_t> SlowerRanks(const CaptureRecord& before, const CaptureRecord& after) {
  std::map<int32_t, int64_t> own_before(before.own_ns.begin(), before.own_ns.end());
  std::vector<std::pair<int64_t, int32_t>> growth;
  int64_t usual_ns = 0;
  for (const auto& [rank, own_ns] : after.own_ns) {
    const auto found = own_before.find(rank);
    if (found == own_before.end()) continue;
    growth.emplace_back(own_ns - found->second, rank);
    usual_ns = std::max(usual_ns, found->second);
  }
  if (growth.size() < 2) return {};
  std::sort(growth.begin(), growth.end(),
            [](const auto& a, const auto& b) { return std::pair(-a.first, a.second) < std::pair(-b.first, b.second); });
  const int64_t worst_ns = growth.front().first;
  if (static_cast<double>(worst_ns) < 0.05 * static_cast<double>(usual_ns) || worst_ns <= 0) return {};
  std::vector<int32_t> ranks;
  for (const auto& [grown_ns, rank] : growth) {
    if (grown_ns * 2 >= worst_ns) ranks.push_back(rank);
  }
  if (ranks.size() * 2 > growth.size()) return {};
  return ranks;
}

/// The finding that would now save most more than before.
std::optional<Finding> NewCost(const CaptureRecord& before, const CaptureRecord& after) {
  const auto gain_before = [&](const Finding& finding) -> int64_t {
    for (const Finding& each : before.findings) {
      const bool same_rank = each.ranks.empty() == finding.ranks.empty() &&
                             (each.ranks.empty() || each.ranks.front() == finding.ranks.front());
      if (each.id == finding.id && same_rank) return each.gain_ns_per_step.value_or(0);
    }
    return 0;
  };
  std::optional<Finding> best;
  int64_t most_ns = 0;
  for (const Finding& finding : after.findings) {
    const int64_t more_ns = finding.gain_ns_per_step.value_or(0) - gain_before(finding);
    if (more_ns <= most_ns) continue;
    most_ns = more_ns;
    best = finding;
  }
  return best;
}

}  // namespace

void JobHistory::Forget() {
  series_.clear();
  reference_.reset();
  called_at_.reset();
  capture_count_ = 0;
  regression_count_ = 0;
}

FigureChange JobHistory::ChangeOf(const Series& series) const {
  const LevelChange& change = series.detector.change();
  FigureChange result{.figure = series.last.name,
                      .unit = series.last.unit,
                      .before = change.before,
                      .after = change.after,
                      .rank = series.last.rank,
                      .since_capture = {},
                      .since_unix_ns = 0};
  const size_t back = std::min(change.value_count, series.recent_from.size());
  if (back > 0) {
    const auto& from = series.recent_from[series.recent_from.size() - back];
    result.since_capture = from.first;
    result.since_unix_ns = from.second;
  }
  return result;
}

void JobHistory::Settle(const Figure& figure, Series& series, Judgement* judgement) {
  FigureChange& called = *series.regression;
  ++series.since_count;
  const double now = comparison::Median({series.recent.begin(), series.recent.end()});
  const double middle = (called.before + called.after) / 2;
  const bool is_back = called.after > called.before ? now < middle : now > middle;
  called.rank = figure.rank;
  if (is_back && series.since_count + 1 >= kRecent) {
    called.after = now;
    judgement->recovered.push_back(called);
    series.regression.reset();
  } else if (series.since_count >= options_.accepted_count) {
    called.after = now;
    judgement->accepted.push_back(called);
    series.regression.reset();
  }
}

Regression JobHistory::Explain(std::vector<FigureChange> changes, const CaptureRecord& record) const {
  const double step = ValueOf(record, "step").value_or(0);
  const auto weight = [&](const FigureChange& change) {
    if (change.figure == "step") return 1e18;
    if (change.unit == "ns" && step > 0) return std::abs(change.after - change.before) / step;
    return std::abs(change.ratio()) / 10;  // Not time: behind what is.
  };
  std::stable_sort(changes.begin(), changes.end(),
                   [&](const FigureChange& a, const FigureChange& b) { return weight(a) > weight(b); });
  Regression regression;
  regression.since_capture = changes.front().since_capture;
  regression.since_unix_ns = changes.front().since_unix_ns;
  if (reference_) {
    regression.reference = reference_->capture;
    regression.ranks = SlowerRanks(*reference_, record);
    regression.finding = NewCost(*reference_, record);
  }
  regression.figures = std::move(changes);
  return regression;
}

Judgement JobHistory::Observe(const CaptureRecord& record) {
  Judgement judgement;
  if (record.figures.empty()) return judgement;
  if (record.job_id != job_id_ || record.world_size != world_size_) {
    Forget();
    job_id_ = record.job_id;
    world_size_ = record.world_size;
  }
  ++capture_count_;
  judgement.is_warm_up = capture_count_ <= options_.warm_up_count;
  if (judgement.is_warm_up) return judgement;

  std::vector<FigureChange> called;
  bool has_worse = false;
  bool is_ordinary = true;
  for (const Figure& figure : record.figures) {
    const auto place = series_.find(figure.name);
    if (place == series_.end() && series_.size() >= kMostSeries) continue;
    Series& series = series_.try_emplace(figure.name, options_.level).first->second;
    series.last = figure;
    series.recent.push_back(figure.value);
    if (series.recent.size() > kRecent) series.recent.pop_front();
    series.recent_from.emplace_back(record.capture, record.time_unix_ns);
    if (series.recent_from.size() > options_.level.sustained_count) series.recent_from.pop_front();
    const LevelState state = series.detector.Observe(figure.value, figure.whole);
    series.is_suspect = state == LevelState::kSuspect;
    is_ordinary = is_ordinary && (state == LevelState::kSteady || state == LevelState::kLearning);
    if (state == LevelState::kChanged && IsWorse(figure, series.detector.change())) {
      called.push_back(ChangeOf(series));
      has_worse = true;
    }
  }
  // What one figure shows for certain, others that were about to be called show too.
  for (auto& [name, series] : series_) {
    if (!has_worse || !series.is_suspect || !series.detector.AcceptSuspects()) continue;
    series.is_suspect = false;
    if (IsWorse(series.last, series.detector.change())) called.push_back(ChangeOf(series));
  }
  for (const FigureChange& change : called) {
    Series& series = series_.at(change.figure);
    // A second one on top of the first is still measured from where the job was at first.
    const double before = series.regression ? series.regression->before : change.before;
    series.regression = change;
    series.regression->before = before;
    series.since_count = 0;
  }
  for (const Figure& figure : record.figures) {
    const auto place = series_.find(figure.name);
    if (place == series_.end() || !place->second.regression) continue;
    const bool is_new = std::any_of(called.begin(), called.end(),
                                    [&](const FigureChange& change) { return change.figure == figure.name; });
    if (!is_new) Settle(figure, place->second, &judgement);
  }
  if (!called.empty()) {
    const bool follows = called_at_ && capture_count_ - *called_at_ <= options_.follow_count;
    if (!follows) {
      called_at_ = capture_count_;
      ++regression_count_;
      judgement.regression = Explain(std::move(called), record);
    }
  }
  if (is_ordinary) reference_ = record;
  return judgement;
}

std::map<std::string, FigureState> JobHistory::figures() const {
  std::map<std::string, FigureState> states;
  for (const auto& [name, series] : series_) {
    FigureState state{.unit = series.last.unit, .value = series.last.value};
    if (series.detector.is_known()) state.level = series.detector.level();
    state.regression = series.regression;
    states.emplace(name, std::move(state));
  }
  return states;
}

}  // namespace lockstep::profile_history
