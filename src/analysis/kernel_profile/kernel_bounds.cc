#include "analysis/kernel_profile/kernel_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace lockstep::analysis {
namespace {

constexpr double kBusy = 0.6;  // below it nothing is near its limit: Nsight Compute's own rule
constexpr double kAhead = 0.1;

/// Sums of a hostile table end at the largest number.
template <typename T>
void AddTo(T* sum, T added) {
  if (__builtin_add_overflow(*sum, added, sum)) *sum = std::numeric_limits<T>::max();
}

}  // namespace

KernelBound BoundOf(const model::KernelLaunch& launch) {
  if (!launch.compute_ratio || !launch.memory_ratio || launch.measured_nothing) return KernelBound::kUnknown;
  const double compute = *launch.compute_ratio;
  const double memory = *launch.memory_ratio;
  if (compute < kBusy && memory < kBusy) return KernelBound::kLatency;
  if (compute >= memory + kAhead) return KernelBound::kCompute;
  if (memory >= compute + kAhead) return KernelBound::kMemory;
  return KernelBound::kBalanced;
}

const char* KernelBoundName(KernelBound bound) {
  switch (bound) {
    case KernelBound::kCompute: return "compute";
    case KernelBound::kMemory: return "memory";
    case KernelBound::kBalanced: return "balanced";
    case KernelBound::kLatency: return "latency";
    case KernelBound::kUnknown: break;
  }
  return "unknown";
}

const char* PrecisionName(model::Precision precision) {
  switch (precision) {
    case model::Precision::kFp64: return "fp64";
    case model::Precision::kFp16: return "fp16";
    case model::Precision::kTensor: return "tensor";
    case model::Precision::kFp32: break;
  }
  return "fp32";
}

const char* SummedKindName(model::SummedKind kind) {
  switch (kind) {
    case model::SummedKind::kApi: return "api";
    case model::SummedKind::kMemory: return "memory";
    case model::SummedKind::kRange: return "range";
    case model::SummedKind::kKernel: break;
  }
  return "kernel";
}

std::vector<RooflinePoint> RooflineOf(const model::KernelLaunch& launch) {
  std::vector<RooflinePoint> points;
  if (!launch.dram_bytes_per_s || !launch.dram_peak_bytes_per_s) return points;
  for (const model::FlopRate& rate : launch.rates) {
    if (rate.flops_per_s <= 0 || rate.peak_flops_per_s <= 0) continue;
    RooflinePoint point;
    point.precision = rate.precision;
    point.flops_per_s = rate.flops_per_s;
    point.peak_flops_per_s = rate.peak_flops_per_s;
    point.flops_per_byte = rate.flops_per_s / *launch.dram_bytes_per_s;
    point.ridge_flops_per_byte = rate.peak_flops_per_s / *launch.dram_peak_bytes_per_s;
    point.roof_flops_per_s = std::min(rate.peak_flops_per_s, point.flops_per_byte * *launch.dram_peak_bytes_per_s);
    point.roof_ratio = rate.flops_per_s / point.roof_flops_per_s;
    point.approximate = rate.approximate;
    // A hostile table's numbers may leave the range of numbers.
    const bool sound = std::isfinite(point.roof_flops_per_s) && point.roof_flops_per_s > 0 &&
                       std::isfinite(point.roof_ratio) && std::isfinite(point.ridge_flops_per_byte) &&
                       point.ridge_flops_per_byte > 0 && point.flops_per_byte > 0;
    if (sound) points.push_back(point);
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const RooflinePoint& a, const RooflinePoint& b) { return a.flops_per_s > b.flops_per_s; });
  return points;
}

std::vector<NameOverRanks> SumOverRanks(const model::KernelProfiles& profiles) {
  struct Totals {
    NameOverRanks row;
    std::set<std::string> by_report;
    std::map<int32_t, int64_t> by_rank;
  };
  std::set<std::tuple<std::string, model::SummedKind, std::string, uint64_t, int64_t>> seen;
  std::map<std::pair<model::SummedKind, std::string>, Totals> by_name;
  std::map<model::SummedKind, std::set<int32_t>> ranks;  // that have a table of the kind
  for (const model::NameSum& sum : profiles.sums) {
    if (!seen.insert({sum.report, sum.kind, sum.name, sum.count, sum.total_ns}).second) continue;
    Totals& totals = by_name[{sum.kind, sum.name}];
    NameOverRanks& row = totals.row;
    const bool is_first = totals.by_report.empty();
    row.kind = sum.kind;
    row.name = sum.name;
    AddTo(&row.count, sum.count);
    AddTo(&row.total_ns, sum.total_ns);
    row.min_ns = is_first ? sum.min_ns : std::min(row.min_ns, sum.min_ns);
    row.max_ns = std::max(row.max_ns, sum.max_ns);
    totals.by_report.insert(sum.report);
    if (!sum.rank) continue;
    AddTo(&totals.by_rank[*sum.rank], sum.total_ns);
    ranks[sum.kind].insert(*sum.rank);
  }
  std::vector<NameOverRanks> rows;
  for (auto& [key, totals] : by_name) {
    NameOverRanks& row = totals.row;
    row.report_count = totals.by_report.size();
    const auto most = std::max_element(totals.by_rank.begin(), totals.by_rank.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    int64_t of_ranks_ns = 0;
    for (const auto& [rank, total_ns] : totals.by_rank) AddTo(&of_ranks_ns, total_ns);
    // A rank without the name has none of its time: that is imbalance as well.
    const size_t rank_count = ranks[row.kind].size();
    if (rank_count > 1 && of_ranks_ns > 0) {
      row.imbalance =
          static_cast<double>(most->second) * static_cast<double>(rank_count) / static_cast<double>(of_ranks_ns);
      row.most_rank = most->first;
    }
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const NameOverRanks& a, const NameOverRanks& b) {
    return std::tie(a.kind, b.total_ns) < std::tie(b.kind, a.total_ns);
  });
  return rows;
}

}  // namespace lockstep::analysis
