#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/what_if/pipeline_bubbles.h"
#include "analysis/what_if/what_if.h"
#include "present/report/flat_table.h"
#include "present/report/surroundings_json.h"
namespace lockstep::report {
namespace {

using analysis::StragglerStudy;
using analysis::StudyShare;
using analysis::WhatIf;

void WriteShares(JsonDocument& json, std::string_view key, const std::vector<StudyShare>* shares) {
  json.Key(key);
  if (shares == nullptr) {
    json.Null();
    return;
  }
  JsonRow row;
  for (const StudyShare& share : *shares) row.Key(share.name).Double(share.slowdown);
  WriteRow(json, row);
}

/// The study's own members; null for runs that are no operation trace.
void WriteStudy(JsonDocument& json, const StragglerStudy* study) {
  const auto of = [&](auto member) { return study == nullptr ? std::nullopt : std::optional<double>(study->*member); };
  json.Key("slowdown").Optional(of(&StragglerStudy::slowdown));
  json.Key("launch_slowdown").Optional(of(&StragglerStudy::launch_slowdown));
  WriteShares(json, "by_stage", study == nullptr ? nullptr : &study->by_stage);
  WriteShares(json, "by_dp_rank", study == nullptr ? nullptr : &study->by_data_rank);
  WriteShares(json, "by_operation", study == nullptr ? nullptr : &study->by_operation);
  json.Key("slow_workers_ratio").Optional(study == nullptr ? std::nullopt : study->slow_workers_ratio);
  json.Key("last_stage_ratio").Optional(study == nullptr ? std::nullopt : study->last_stage_ratio);
  json.Key("study");
  if (study == nullptr) {
    json.Null();
    return;
  }
  JsonRow row;
  row.Key("no_delay_step_ns").Int(study->no_delay_ns).Key("ideal_step_ns").Int(study->ideal_ns);
  row.Key("slow_workers").List(study->slow_workers).Key("slow_workers_fixed_step_ns").Int(study->slow_workers_fixed_ns);
  row.Key("last_stage").Int(study->last_stage);
  row.Key("last_stage_fixed_step_ns").Int(study->last_stage_fixed_ns);
  WriteRow(json, row);
}

}  // namespace

void WriteWhatIf(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result) {
  json.Key("what_if");
  if (!result.Has<analysis::WhatIf>()) {
    json.Null();
    return;
  }
  const WhatIf& what_if = result.Get<analysis::WhatIf>();
  json.StartObject();
  json.Key("observed_step_ns").Int(what_if.observed_step_ns).Key("simulated_step_ns").Int(what_if.simulated_step_ns);
  json.Key("error_ratio").Double(what_if.error_ratio);
  json.Key("replayed_step_ns").Optional(what_if.replayed_step_ns);
  WriteStudy(json, what_if.study ? &*what_if.study : nullptr);
  WriteTablesWithin(json, run, result, "what_if");
  WriteTable(json, "steps", what_if.steps, [&](JsonRow& row, const analysis::WhatIfStep& step) {
    row.Key("step").Int(step.step).Key("observed_ns").Int(step.observed_ns);
    row.Key("simulated_ns").Int(step.simulated_ns).Key("ideal_ns").Optional(step.ideal_ns);
  });
  json.EndObject();
}

void WriteBubbles(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result) {
  json.Key("bubbles");
  if (!result.Has<analysis::Bubbles>()) {
    json.Null();
    return;
  }
  json.StartObject();
  WriteTable(
      json, "steps", result.Get<analysis::Bubbles>().steps, [&](JsonRow& row, const analysis::PipelineStepRow& step) {
        row.Key("step").Int(step.step).Key("dp_rank").Int(step.data_rank).Key("stage_count").Int(step.stage_count);
        row.Key("micro_batch_count").Int(step.micro_batch_count).Key("iteration_ns").Int(step.iteration_ns);
        row.Key("bubble_ratio").Double(step.bubble_ratio).Key("ideal_bubble_ratio").Double(step.ideal_bubble_ratio);
        row.Key("warm_up").Bool(step.warm_up);
      });
  WriteTablesWithin(json, run, result, "bubbles");
  json.EndObject();
}

}  // namespace lockstep::report
