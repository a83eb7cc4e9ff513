#include <string>
#include <vector>

#include "analysis/kernel_profile/kernel_bounds.h"
#include "present/report/json_stream.h"
#include "present/report/kernel_profile/kernel_profile_report.h"

namespace lockstep::report {
namespace {

using model::KernelLaunch;

void Roofline(JsonRow& row, const KernelLaunch& launch) {
  row.Key("roofline").Each(analysis::RooflineOf(launch), [&](const analysis::RooflinePoint& point) {
    row.Key("precision").Text(analysis::PrecisionName(point.precision));
    row.Key("flops_per_s").Double(point.flops_per_s).Key("peak_flops_per_s").Double(point.peak_flops_per_s);
    row.Key("flops_per_byte").Double(point.flops_per_byte);
    row.Key("ridge_flops_per_byte").Double(point.ridge_flops_per_byte);
    row.Key("roof_flops_per_s").Double(point.roof_flops_per_s).Key("roof_ratio").Double(point.roof_ratio);
    row.Key("approximate").Bool(point.approximate);
  });
  row.Key("missing_metrics").List(launch.missing_metrics);
}

void LaunchRow(JsonRow& row, const KernelLaunch& launch) {
  row.Key("file").Text(launch.file).Key("rank").Optional(launch.rank);
  row.Key("id").Uint(launch.id).Key("process").TextOrNull(launch.process).Key("kernel").Text(launch.kernel);
  row.Key("device").TextOrNull(launch.device).Key("compute_capability").TextOrNull(launch.compute_capability);
  row.Key("grid").TextOrNull(launch.grid).Key("block").TextOrNull(launch.block);
  row.Key("duration_ns").Optional(launch.duration_ns);
  row.Key("bound").Text(analysis::KernelBoundName(analysis::BoundOf(launch)));
  row.Key("compute_ratio").Optional(launch.compute_ratio).Key("memory_ratio").Optional(launch.memory_ratio);
  row.Key("dram_ratio").Optional(launch.dram_ratio).Key("occupancy_ratio").Optional(launch.occupancy_ratio);
  row.Key("dram_bytes_per_s").Optional(launch.dram_bytes_per_s);
  row.Key("dram_peak_bytes_per_s").Optional(launch.dram_peak_bytes_per_s);
  row.Key("measured_nothing").Bool(launch.measured_nothing);
  Roofline(row, launch);
  row.Key("rules").Each(launch.rules, [&](const model::KernelRule& rule) {
    row.Key("name").Text(rule.name).Key("type").Text(rule.type).Key("text").Text(rule.text);
    row.Key("speedup_ratio").Optional(rule.speedup_ratio);
    row.Key("speedup_is_local").Bool(rule.speedup_is_local);
  });
}

void SumRow(JsonRow& row, const analysis::NameOverRanks& sum) {
  row.Key("kind").Text(analysis::SummedKindName(sum.kind)).Key("name").Text(sum.name);
  row.Key("count").Uint(sum.count).Key("total_ns").Int(sum.total_ns);
  row.Key("min_ns").Int(sum.min_ns).Key("max_ns").Int(sum.max_ns).Key("reports").Uint(sum.report_count);
  row.Key("imbalance").Optional(sum.imbalance).Key("most_rank").Optional(sum.most_rank);
}

void WriteData(JsonDocument& json, const model::KernelProfiles& profiles) {
  json.StartObject();
  WriteTable(json, "launches", profiles.launches, LaunchRow);
  WriteTable(json, "sums", analysis::SumOverRanks(profiles), SumRow);
  json.EndObject();
}

}  // namespace

bool IsPartial(const model::KernelProfiles& profiles) {
  for (const model::LedgerEntry& entry : profiles.ledger.entries()) {
    if (entry.severity == model::Severity::kError || entry.code == "kernel_profile_cut") return true;
  }
  return false;
}

std::string KernelDataJson(const model::KernelProfiles& profiles) {
  return JsonText([&](JsonDocument& json) { WriteData(json, profiles); });
}

void WriteKernelJson(const model::KernelProfiles& profiles, std::ostream& out) {
  WriteDocument(out, "lockstep.kernels/1", IsPartial(profiles), [&](JsonDocument& json) {
    WriteData(json, profiles);
    WriteLedger(json, profiles.ledger);
  });
}

}  // namespace lockstep::report
