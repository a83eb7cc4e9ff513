#include "analysis/fabric/fabric.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/analysis_result.h"
#include "analysis/pass.h"
#include "analysis/quantiles.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

/// By what name the benchmark measures it.
std::string_view MeasuredName(std::string_view name) {
  return name == "send" || name == "recv" ? std::string_view("send_recv") : name;
}

/// busbw at `bytes`: straight between neighbours over the logarithm of the size; beyond the ends that of the end.
std::optional<double> BandwidthAt(const model::Fabric& fabric, std::string_view operation, int64_t bytes) {
  const model::FabricPoint* below = nullptr;
  const model::FabricPoint* above = nullptr;
  for (const model::FabricPoint& point : fabric.points) {
    if (point.operation != operation) continue;
    if (point.bytes <= bytes) below = &point;
    if (point.bytes >= bytes && above == nullptr) above = &point;
  }
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below == nullptr) return above->busbw_bytes_per_s;
  if (above == nullptr || above->bytes == below->bytes) return below->busbw_bytes_per_s;
  const double width = std::log2(static_cast<double>(above->bytes) / static_cast<double>(below->bytes));
  const double at = std::log2(static_cast<double>(bytes) / static_cast<double>(below->bytes)) / width;
  return below->busbw_bytes_per_s + at * (above->busbw_bytes_per_s - below->busbw_bytes_per_s);
}

}  // namespace

std::vector<FabricRow> CompareWithFabric(const Collectives& collectives, const model::Fabric& fabric) {
  struct Values {
    int64_t transfer_ns = 0;
    std::vector<double> busbw;
  };
  std::map<std::tuple<std::string, std::optional<int32_t>, int64_t>, Values> by_key;
  for (const CollectiveInstance& instance : collectives.instances) {
    if (!instance.bytes || *instance.bytes <= 0 || !instance.busbw_bytes_per_s || !instance.transfer_ns) continue;
    Values& values = by_key[{instance.name, instance.group_size, *instance.bytes}];
    values.busbw.push_back(*instance.busbw_bytes_per_s);
    values.transfer_ns += *instance.transfer_ns;
  }
  std::vector<FabricRow> rows;
  for (auto& [key, values] : by_key) {
    FabricRow row;
    std::tie(row.name, row.group_size, row.bytes) = key;
    const auto fabric_busbw = BandwidthAt(fabric, MeasuredName(row.name), row.bytes);
    if (!fabric_busbw) continue;
    row.count = values.busbw.size();
    row.transfer_ns = values.transfer_ns;
    row.busbw_median_bytes_per_s = FiveNumbers(&values.busbw)[2];
    row.fabric_busbw_bytes_per_s = *fabric_busbw;
    row.ratio = row.busbw_median_bytes_per_s / *fabric_busbw;
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const FabricRow& a, const FabricRow& b) { return a.transfer_ns > b.transfer_ns; });
  return rows;
}

std::optional<double> FabricRatio(const std::vector<FabricRow>& rows) {
  double taken_ns = 0;
  double needed_ns = 0;
  for (const FabricRow& row : rows) {
    taken_ns += static_cast<double>(row.transfer_ns);
    needed_ns += static_cast<double>(row.transfer_ns) * row.ratio;
  }
  if (taken_ns <= 0) return std::nullopt;
  return needed_ns / taken_ns;
}

void AddFabric(const model::Fabric& fabric, AnalysisResult* result) {
  result->Edit<FabricComparison>() = {CompareWithFabric(result->Get<Collectives>(), fabric), fabric};
}

namespace {

std::vector<RowColumn<FabricRow>> FabricColumns() {
  using Row = FabricRow;
  return {
      Field<&Row::name>("name", "", "Operation."),
      Field<&Row::group_size>("group_size", "count", "Ranks of the group.", "not known"),
      Field<&Row::bytes>("bytes", "bytes", "Size in nccl-tests' convention."),
      Field<&Row::count>("count", "count", "Collectives."),
      Field<&Row::transfer_ns>("transfer_ns", "ns", "Sum of their transfers, waiting not included."),
      Field<&Row::busbw_median_bytes_per_s>("busbw_median_bytes_per_s", "bytes/s", "Median of their bus bandwidths."),
      Field<&Row::fabric_busbw_bytes_per_s>("fabric_busbw_bytes_per_s", "bytes/s",
                                            "Bus bandwidth that `lockstep bench collectives` measured."),
      Field<&Row::ratio>("ratio", "ratio", "The job's over the fabric's."),
  };
}

}  // namespace

Pass FabricPass() {
  return RunPass<FabricComparison>(
      {.question = "How much of what the fabric can do do the collectives get? (--fabric)",
       .needs = {"collectives"},
       .kind = PassKind::kOnRequest,
       .tables = {DeclareTable(
           "fabric", "", "Collectives of one operation and size beside what `--fabric` says that the fabric can do",
           &FabricComparison::rows, FabricColumns())}},
      [](PassContext&) { return FabricComparison{}; });  // AddFabric fills it: the fabric is not part of the run.
}

}  // namespace lockstep::analysis
