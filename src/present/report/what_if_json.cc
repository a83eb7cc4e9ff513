#include "present/report/what_if_json.h"

#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/what_if/pipeline_bubbles.h"
#include "analysis/what_if/what_if.h"
#include "present/report/flat_table.h"

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

void WriteOptional(JsonDocument& json, std::string_view key, const std::optional<double>& value) {
  json.Key(key);
  if (value && *value - *value == 0.0) {
    json.Double(*value);
  } else {
    json.Null();
  }
}

/// The study's own members; null for runs that are no operation trace.
void WriteStudy(JsonDocument& json, const StragglerStudy* study) {
  const auto of = [&](auto member) { return study == nullptr ? std::nullopt : std::optional<double>(study->*member); };
  WriteOptional(json, "slowdown", of(&StragglerStudy::slowdown));
  WriteOptional(json, "launch_slowdown", of(&StragglerStudy::launch_slowdown));
  WriteShares(json, "by_stage", study == nullptr ? nullptr : &study->by_stage);
  WriteShares(json, "by_dp_rank", study == nullptr ? nullptr : &study->by_data_rank);
  WriteShares(json, "by_operation", study == nullptr ? nullptr : &study->by_operation);
  WriteOptional(json, "slow_workers_ratio", study == nullptr ? std::nullopt : study->slow_workers_ratio);
  WriteOptional(json, "last_stage_ratio", study == nullptr ? std::nullopt : study->last_stage_ratio);
  json.Key("study");
  if (study == nullptr) {
    json.Null();
    return;
  }
  JsonRow row;
  row.Key("no_delay_step_ns").Int(study->no_delay_ns).Key("ideal_step_ns").Int(study->ideal_ns);
  row.Key("slow_workers").StartArray();
  for (const int32_t rank : study->slow_workers) row.Int(rank);
  row.EndArray().Key("slow_workers_fixed_step_ns").Int(study->slow_workers_fixed_ns);
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
  json.Key("observed_step_ns");
  json.Int(what_if.observed_step_ns);
  json.Key("simulated_step_ns");
  json.Int(what_if.simulated_step_ns);
  WriteOptional(json, "error_ratio", what_if.error_ratio);
  json.Key("replayed_step_ns");
  what_if.replayed_step_ns ? json.Int(*what_if.replayed_step_ns) : json.Null();
  WriteStudy(json, what_if.study ? &*what_if.study : nullptr);
  WriteTablesWithin(json, run, result, "what_if");
  json.Key("steps");
  json.StartArray();
  for (const analysis::WhatIfStep& step : what_if.steps) {
    JsonRow row;
    row.Key("step").Int(step.step).Key("observed_ns").Int(step.observed_ns);
    row.Key("simulated_ns").Int(step.simulated_ns).Key("ideal_ns").Optional(step.ideal_ns);
    WriteRow(json, row);
  }
  json.EndArray();
  json.EndObject();
}

void WriteBubbles(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result) {
  json.Key("bubbles");
  if (!result.Has<analysis::Bubbles>()) {
    json.Null();
    return;
  }
  json.StartObject();
  json.Key("steps");
  json.StartArray();
  for (const analysis::PipelineStepRow& step : result.Get<analysis::Bubbles>().steps) {
    JsonRow row;
    row.Key("step").Int(step.step).Key("dp_rank").Int(step.data_rank).Key("stage_count").Int(step.stage_count);
    row.Key("micro_batch_count").Int(step.micro_batch_count).Key("iteration_ns").Int(step.iteration_ns);
    row.Key("bubble_ratio").Double(step.bubble_ratio).Key("ideal_bubble_ratio").Double(step.ideal_bubble_ratio);
    row.Key("warm_up").Bool(step.warm_up);
    WriteRow(json, row);
  }
  json.EndArray();
  WriteTablesWithin(json, run, result, "bubbles");
  json.EndObject();
}

}  // namespace lockstep::report
