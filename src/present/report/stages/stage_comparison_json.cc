#include "present/report/comparison_report.h"
#include "present/report/json_stream.h"
#include "present/report/stages/stage_comparison_report.h"

namespace lockstep::report {

using stage_comparison::Gate;
using stage_comparison::Side;
using stage_comparison::StageComparison;

namespace {

void SideRow(JsonRow& row, const Side& side) {
  const model::StageSummary& summary = side.summary;
  row.Key("label").Text(summary.source).Key("world_size").Int(summary.world_size).Key("workload").StartObject();
  for (const auto& [key, value] : summary.facts.workload) row.Key(key).Text(value);
  row.EndObject().Key("exit_status").Optional(summary.facts.exit_status).Key("verdict").Text(summary.verdict);
  row.Key("warm_up_step_count").Int(side.warm_up_steps).Key("step_count").Int(side.step_count);
  row.Key("mean_step_ns").Double(side.mean_step_ns).Key("median_step_ns").Double(side.median_step_ns);
  row.Key("window_step_ns").List(side.step_ns).Key("resident_bytes").Optional(summary.resident_bytes);
  row.Key("allocated_bytes").Optional(summary.allocated_bytes);
  row.Key("reserved_bytes").Optional(summary.reserved_bytes);
}

void GateRow(JsonRow& row, const Gate& gate) {
  row.Key("allowed_ratio").Double(gate.allowed_ratio).Key("result").Text(GateResultName(gate.result));
  row.Key("sentence").Text(gate.sentence);
}

/// The member `key`: an object.
template <typename Fill>
void Member(JsonDocument& json, const char* key, const Fill& fill) {
  json.Key(key);
  JsonRow row;
  fill(row);
  WriteRow(json, row);
}

void WriteData(JsonDocument& json, const StageComparison& comparison, const std::optional<Gate>& gate) {
  json.StartObject();
  Member(json, "verdict", [&](JsonRow& row) { WriteVerdict(row, comparison.verdict, comparison.options.compare); });
  if (gate) {
    Member(json, "gate", [&](JsonRow& row) { GateRow(row, *gate); });
  } else {
    json.Key("gate").Null();
  }
  Member(json, "a", [&](JsonRow& row) { SideRow(row, comparison.a); });
  Member(json, "b", [&](JsonRow& row) { SideRow(row, comparison.b); });
  Member(json, "step", [&](JsonRow& row) { WriteDelta(row, "step_ns", comparison.step); });
  WriteTable(json, "stages", model::kStages, [&](JsonRow& row, model::Stage stage) {
    row.Key("stage").Text(StageName(stage));
    WriteDelta(row, "step_ns", comparison.stages[static_cast<size_t>(stage)]);
  });
  json.EndObject();
}

}  // namespace

std::string StageComparisonDataJson(const StageComparison& comparison, const std::optional<Gate>& gate) {
  return JsonText([&](JsonDocument& json) { WriteData(json, comparison, gate); });
}

void WriteStageComparisonJson(const StageComparison& comparison, const std::optional<Gate>& gate, std::ostream& out) {
  WriteDocument(out, "lockstep.stage_comparison/1", false, [&](JsonDocument& json) {
    WriteData(json, comparison, gate);
    WriteLedger(json, {});
  });
}

}  // namespace lockstep::report
