#include <string>
#include <vector>

#include "analysis/kernel_profile/kernel_bounds.h"
#include "present/report/json_stream.h"
#include "present/report/kernel_profile/kernel_profile_report.h"

namespace lockstep::report {
namespace {

using model::KernelLaunch;

void OptionalDouble(JsonRow& row, const char* key, std::optional<double> value) {
  row.Key(key);
  value ? row.Double(*value) : row.Null();
}

void OptionalRank(JsonRow& row, const char* key, std::optional<int32_t> rank) {
  row.Key(key);
  rank ? row.Int(*rank) : row.Null();
}

void Roofline(JsonRow& row, const KernelLaunch& launch) {
  row.Key("roofline").StartArray();
  for (const analysis::RooflinePoint& point : analysis::RooflineOf(launch)) {
    row.StartObject().Key("precision").Text(analysis::PrecisionName(point.precision));
    row.Key("flops_per_s").Double(point.flops_per_s).Key("peak_flops_per_s").Double(point.peak_flops_per_s);
    row.Key("flops_per_byte").Double(point.flops_per_byte);
    row.Key("ridge_flops_per_byte").Double(point.ridge_flops_per_byte);
    row.Key("roof_flops_per_s").Double(point.roof_flops_per_s).Key("roof_ratio").Double(point.roof_ratio);
    row.Key("approximate").Bool(point.approximate).EndObject();
  }
  row.EndArray().Key("missing_metrics").StartArray();
  for (const std::string& name : launch.missing_metrics) row.Text(name);
  row.EndArray();
}

void LaunchRow(JsonRow& row, const KernelLaunch& launch) {
  row.Key("file").Text(launch.file);
  OptionalRank(row, "rank", launch.rank);
  row.Key("id").Uint(launch.id).Key("process").TextOrNull(launch.process).Key("kernel").Text(launch.kernel);
  row.Key("device").TextOrNull(launch.device).Key("compute_capability").TextOrNull(launch.compute_capability);
  row.Key("grid").TextOrNull(launch.grid).Key("block").TextOrNull(launch.block);
  row.Key("duration_ns");
  launch.duration_ns ? row.Int(*launch.duration_ns) : row.Null();
  row.Key("bound").Text(analysis::KernelBoundName(analysis::BoundOf(launch)));
  OptionalDouble(row, "compute_ratio", launch.compute_ratio);
  OptionalDouble(row, "memory_ratio", launch.memory_ratio);
  OptionalDouble(row, "dram_ratio", launch.dram_ratio);
  OptionalDouble(row, "occupancy_ratio", launch.occupancy_ratio);
  OptionalDouble(row, "dram_bytes_per_s", launch.dram_bytes_per_s);
  OptionalDouble(row, "dram_peak_bytes_per_s", launch.dram_peak_bytes_per_s);
  row.Key("measured_nothing").Bool(launch.measured_nothing);
  Roofline(row, launch);
  row.Key("rules").StartArray();
  for (const model::KernelRule& rule : launch.rules) {
    row.StartObject().Key("name").Text(rule.name).Key("type").Text(rule.type).Key("text").Text(rule.text);
    OptionalDouble(row, "speedup_ratio", rule.speedup_ratio);
    row.Key("speedup_is_local").Bool(rule.speedup_is_local).EndObject();
  }
  row.EndArray();
}

void SumRow(JsonRow& row, const analysis::NameOverRanks& sum) {
  row.Key("kind").Text(analysis::SummedKindName(sum.kind)).Key("name").Text(sum.name);
  row.Key("count").Uint(sum.count).Key("total_ns").Int(sum.total_ns);
  row.Key("min_ns").Int(sum.min_ns).Key("max_ns").Int(sum.max_ns).Key("reports").Uint(sum.report_count);
  OptionalDouble(row, "imbalance", sum.imbalance);
  OptionalRank(row, "most_rank", sum.most_rank);
}

}  // namespace

bool IsPartial(const model::KernelProfiles& profiles) {
  for (const model::LedgerEntry& entry : profiles.ledger.entries()) {
    if (entry.severity == model::Severity::kError || entry.code == "kernel_profile_cut") return true;
  }
  return false;
}

void WriteKernelJson(const model::KernelProfiles& profiles, std::ostream& out) {
  WriteDocument(out, "lockstep.kernels/1", IsPartial(profiles), [&](JsonDocument& json) {
    json.StartObject();
    json.Key("launches");
    json.StartArray();
    for (const KernelLaunch& launch : profiles.launches) {
      JsonRow row;
      LaunchRow(row, launch);
      WriteRow(json, row);
    }
    json.EndArray();
    json.Key("sums");
    json.StartArray();
    for (const analysis::NameOverRanks& sum : analysis::SumOverRanks(profiles)) {
      JsonRow row;
      SumRow(row, sum);
      WriteRow(json, row);
    }
    json.EndArray();
    json.EndObject();
    WriteLedger(json, profiles.ledger);
  });
}

}  // namespace lockstep::report
