#include "analysis/wait_states/chain_text.h"
#include "analysis/wait_states/wait_states.h"
#include "present/report/flat_table.h"
#include "present/report/surroundings_json.h"
namespace lockstep::report {

void WriteWaitStates(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result) {
  json.Key("wait_states");
  if (!result.Has<analysis::WaitStates>()) {
    json.Null();
    return;
  }
  const analysis::WaitStates& states = result.Get<analysis::WaitStates>();
  json.StartObject();
  json.Key("wait_ns").Int(states.wait_ns).Key("text").Text(WaitVerdictText(run, states));
  WriteTablesWithin(json, run, result, "wait_states");
  json.Key("late_start");
  JsonRow late_start;
  late_start.Key("wait_ns").Int(states.late_start.wait_ns).Key("wait_ratio").Double(states.late_start.wait_ratio);
  late_start.Key("spread_ns").Int(states.late_start.spread_ns);
  WriteRow(json, late_start);
  json.EndObject();
}

}  // namespace lockstep::report
