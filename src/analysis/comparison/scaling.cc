#include "analysis/comparison/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/comparison/statistics.h"
#include "analysis/finding_context.h"

namespace lockstep::comparison {
namespace {

/// Distribution-free interval of a median from order statistics (binomial), on the effective number of values.
void IntervalOfMedian(const Series& series, double confidence, ScalingPoint* point) {
  Series sorted = series;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  const double spread = std::sqrt(n) / 2 * std::sqrt(n / EffectiveCount(series));
  const double z = NormalQuantile((1 - confidence) / 2);
  const double low = std::floor(n / 2 - z * spread);
  if (low < 0 || sorted.size() < 6) return;  // six values are the fewest that hold a median with 95 %
  point->low_ns = sorted[static_cast<size_t>(low)];
  point->high_ns = sorted[sorted.size() - 1 - static_cast<size_t>(low)];
}

/// Standard error of a median, robust: from the median of the distances to it.
double ErrorOfMedian(const Series& series) {
  if (series.size() < 3) return 0;
  const double middle = Median(series);
  Series distances;
  for (const double value : series) distances.push_back(std::abs(value - middle));
  // 1.4826 makes the median distance a standard deviation, 1.2533 its error that of a median (both for the normal law).
  return 1.4826 * 1.2533 * Median(distances) / std::sqrt(EffectiveCount(series));
}

Series WorkOf(const RunProfile& profile) {
  Series work = profile.step_ns;
  const Series& exposed = profile.mean_parts[static_cast<size_t>(Part::kExposedCommunication)];
  for (size_t i = 0; i < work.size(); ++i) work[i] = std::max(0.0, work[i] - exposed[i]);
  return work;
}

ScalingPoint PointOf(const ScalingInput& run, double confidence) {
  const RunProfile& profile = run.profile;
  ScalingPoint point;
  point.label = profile.label;
  point.ranks = run.ranks;
  point.step_count = profile.steps.size();
  point.step_ns = Median(profile.step_ns);
  IntervalOfMedian(profile.step_ns, confidence, &point);
  point.communication_ns = Median(profile.mean_parts[static_cast<size_t>(Part::kExposedCommunication)]);
  point.work_ns = Median(WorkOf(profile));
  point.communication_ratio = point.step_ns > 0 ? point.communication_ns / point.step_ns : 0;
  std::map<int32_t, size_t> slowest;
  for (const int32_t rank : profile.slowest_rank) ++slowest[rank];
  size_t most = 0;
  for (const auto& [rank, count] : slowest) {
    if (count <= most) continue;
    most = count;
    point.slowest_rank = rank;
  }
  point.slowest_share = static_cast<double>(most) / static_cast<double>(profile.slowest_rank.size());
  return point;
}

std::vector<FitPoint> FitPoints(const std::vector<ScalingInput>& runs) {
  std::vector<FitPoint> points;
  for (const ScalingInput& run : runs) {
    const Series work = WorkOf(run.profile);
    const Series& communication = run.profile.mean_parts[static_cast<size_t>(Part::kExposedCommunication)];
    points.push_back({static_cast<double>(run.ranks), Median(work), Median(communication), ErrorOfMedian(work),
                      ErrorOfMedian(communication)});
  }
  return points;
}

std::string Percent(double ratio) {
  return std::abs(ratio) < 0.0995 ? fmt::format("{:.1f}", ratio * 100) : fmt::format("{:.0f}", ratio * 100);
}

std::string Time(double ns) { return analysis::TimeText(std::llround(ns)); }

void Judge(ScalingCurve* curve) {
  const ScalingPoint& first = curve->points.front();
  const ScalingPoint& last = curve->points.back();
  curve->sentence = fmt::format(
      "{} ranks run at {} % {} efficiency: {} a step against {} on {}; exposed communication takes {} % of it",
      last.ranks, Percent(curve->efficiency(last)), ScalingName(curve->options.kind), Time(last.step_ns),
      Time(first.step_ns), first.ranks == 1 ? "one" : fmt::format("{}", first.ranks),
      Percent(last.communication_ratio));
  for (const ScalingPoint& point : curve->points) {
    if (!point.low_ns) {
      curve->notes.push_back(
          fmt::format("{}: {} step(s), too few for an interval of its step time", point.label, point.step_count));
    }
    if (point.ranks > 2 && point.slowest_share > 0.8 && point.step_count >= 5) {
      curve->notes.push_back(fmt::format("{}: rank {} has the longest step in {} % of the steps", point.label,
                                         point.slowest_rank, Percent(point.slowest_share)));
    }
  }
  curve->notes.emplace_back(
      curve->options.kind == Scaling::kWeak
          ? "weak scaling: each rank's work is taken to be the same in every run (--strong: the job's is)"
          : "strong scaling: the job's work is taken to be the same in every run (--weak: each rank's is)");
  curve->notes.emplace_back("margins come from the noise between steps; other nodes and days are not in them");
}

}  // namespace

Result<ScalingCurve> MeasureScaling(std::vector<ScalingInput> runs, std::vector<ScalingInput> no_sync,
                                    const ScalingOptions& options) {
  const auto by_ranks = [](const ScalingInput& x, const ScalingInput& y) { return x.ranks < y.ranks; };
  std::stable_sort(runs.begin(), runs.end(), by_ranks);
  std::stable_sort(no_sync.begin(), no_sync.end(), by_ranks);
  for (const auto* inputs : {&runs, &no_sync}) {
    for (const ScalingInput& run : *inputs) {
      if (!run.profile.steps.empty()) continue;
      return Error{.code = ErrorCode::kFailedPrecondition,
                   .message = "no step with a known length; see lockstep analyze --section steps",
                   .file = run.profile.label};
    }
  }
  for (size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].ranks != runs[i - 1].ranks) continue;
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = fmt::format("{} and {} both have {} rank(s); a curve needs different sizes (say N=PATH where the "
                               "files do not state the world size, and use lockstep compare for equal ones)",
                               runs[i - 1].profile.label, runs[i].profile.label, runs[i].ranks)};
  }
  ScalingCurve curve;
  curve.options = options;
  for (const ScalingInput& run : runs) curve.points.push_back(PointOf(run, options.confidence));
  const ScalingPoint first = curve.points.front();
  for (ScalingPoint& point : curve.points) {
    const double faster = point.step_ns > 0 ? first.step_ns / point.step_ns : 0;
    const double larger = static_cast<double>(point.ranks) / first.ranks;
    point.weak_efficiency = faster;
    point.strong_efficiency = faster / larger;
    point.speed_up = options.kind == Scaling::kWeak ? faster * larger : faster;
    if (options.items_per_step && point.step_ns > 0) {
      const double items = *options.items_per_step * (options.kind == Scaling::kWeak ? point.ranks : 1);
      point.items_per_s = items / (point.step_ns / 1e9);
    }
  }
  for (const ScalingInput& run : no_sync) {
    const auto full =
        std::find_if(runs.begin(), runs.end(), [&](const ScalingInput& r) { return r.ranks == run.ranks; });
    if (full == runs.end()) {
      return Error{
          .code = ErrorCode::kFailedPrecondition,
          .message = fmt::format("has {} rank(s), and no run of this size was given to compare it with", run.ranks),
          .file = run.profile.label};
    }
    DirectOverhead row;
    row.label = run.profile.label;
    row.ranks = run.ranks;
    row.full_ns = Median(full->profile.step_ns);
    row.no_sync_ns = Median(run.profile.step_ns);
    if (const auto shift = EstimateShift(run.profile.step_ns, full->profile.step_ns, options.confidence)) {
      row.overhead_ns = shift->estimate;
      row.low_ns = shift->low;
      row.high_ns = shift->high;
    }
    row.ratio = row.full_ns > 0 ? row.overhead_ns / row.full_ns : 0;
    curve.direct.push_back(std::move(row));
  }
  curve.fit = FitScaling(options.kind, FitPoints(runs), options.confidence);
  for (const auto* inputs : {&runs, &no_sync}) {
    for (const ScalingInput& run : *inputs) {
      curve.partial = curve.partial || run.profile.partial;
      curve.ledgers.emplace_back(run.profile.label, run.profile.ledger);
    }
  }
  Judge(&curve);
  return curve;
}

}  // namespace lockstep::comparison
