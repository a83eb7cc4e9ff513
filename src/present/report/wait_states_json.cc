#include "present/report/wait_states_json.h"

#include "analysis/analysis_result.h"
#include "analysis/collectives.h"
#include "analysis/wait_states/chain_text.h"
#include "analysis/wait_states/wait_states.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::RootCauseRow;

JsonRow& RankOf(JsonRow& row, const model::Run& run, size_t rank_index) {
  return row.Int(run.ranks[rank_index].rank.value);
}

void WriteCause(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result,
                const RootCauseRow& cause) {
  JsonRow row;
  row.Key("cause").Text(RootCauseName(cause.cause)).Key("rank");
  cause.rank_index ? RankOf(row, run, *cause.rank_index) : row.Null();
  row.Key("window").Int(run.ranks[cause.rank_indices.front()].window).Key("ranks").StartArray();
  for (const size_t rank_index : cause.rank_indices) RankOf(row, run, rank_index);
  row.EndArray().Key("name").TextOrNull(cause.name);
  row.Key("own_ns").Int(cause.own_ns).Key("peers_ns").Int(cause.peers_ns);
  row.Key("direct_wait_ns").Int(cause.direct_wait_ns).Key("propagated_wait_ns").Int(cause.propagated_wait_ns);
  row.Key("wait_ratio").Double(cause.wait_ratio).Key("collective_count").Uint(cause.collective_count);
  row.Key("delay_ns").Int(cause.delay_ns).Key("pattern").Text(WaitPatternName(cause.pattern));
  row.Key("period_steps").Optional(cause.period_steps).Key("step_count").Int(cause.step_count);
  row.Key("steps").StartArray();
  for (const int64_t step : cause.steps) row.Int(step);
  row.EndArray().Key("text").Text(CauseText(run, cause)).Key("chains").StartArray();
  for (const analysis::WaitChain& chain : cause.chains) {
    row.StartObject().Key("rank");
    RankOf(row, run, chain.victim_rank_index).Key("wait_ns").Int(chain.wait_ns);
    row.Key("text").Text(ChainText(run, result.Get<analysis::Collectives>(), cause, chain)).Key("hops").StartArray();
    WriteHops(row, run, result.Get<analysis::Collectives>(), chain);
    row.EndArray().EndObject();
  }
  row.EndArray();
  WriteRow(json, row);
}

void WriteCulprit(JsonDocument& json, const model::Run& run, const analysis::WaitCulprit& culprit) {
  JsonRow row;
  row.Key("rank");
  culprit.rank_index ? RankOf(row, run, *culprit.rank_index) : row.Null();
  row.Key("window").Int(run.ranks[culprit.rank_indices.front()].window).Key("ranks").StartArray();
  for (const size_t rank_index : culprit.rank_indices) RankOf(row, run, rank_index);
  row.EndArray().Key("causes").StartArray();
  for (const size_t cause : culprit.causes) row.Uint(cause);
  row.EndArray().Key("wait_ns").Int(culprit.wait_ns).Key("wait_ratio").Double(culprit.wait_ratio);
  row.Key("chance").Double(culprit.chance).Key("delay_ns").Int(culprit.delay_ns);
  WriteRow(json, row);
}

}  // namespace

void WriteHops(JsonRow& row, const model::Run& run, const analysis::Collectives& collectives,
               const analysis::WaitChain& chain) {
  for (const analysis::WaitHop& hop : chain.hops) {
    const analysis::CollectiveInstance& instance = collectives.instances[hop.instance];
    row.StartObject().Key("group").Text(instance.group).Key("sequence").Int(instance.sequence);
    row.Key("name").Text(instance.name).Key("rank");
    RankOf(row, run, hop.victim_rank_index).Key("late_rank");
    RankOf(row, run, hop.late_rank_index).Key("wait_ns").Int(hop.wait_ns).EndObject();
  }
}

void WriteWaitStates(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result) {
  json.Key("wait_states");
  if (!result.Has<analysis::WaitStates>()) {
    json.Null();
    return;
  }
  json.StartObject();
  json.Key("wait_ns");
  json.Int(result.Get<analysis::WaitStates>().wait_ns);
  json.Key("text");
  json.Text(WaitVerdictText(run, result.Get<analysis::WaitStates>()));
  json.Key("states");
  json.StartArray();
  for (const analysis::WaitStateRow& state : result.Get<analysis::WaitStates>().rows) {
    JsonRow row;
    const model::RankTrace& trace = run.ranks[state.rank_index];
    row.Key("rank").Int(trace.rank.value).Key("window").Int(trace.window);
    row.Key("kind").Text(WaitStateKindName(state.kind)).Key("count").Uint(state.count);
    row.Key("wait_ns").Int(state.wait_ns);
    WriteRow(json, row);
  }
  json.EndArray();
  json.Key("causes");
  json.StartArray();
  for (const RootCauseRow& cause : result.Get<analysis::WaitStates>().causes) WriteCause(json, run, result, cause);
  json.EndArray();
  json.Key("culprits");
  json.StartArray();
  for (const analysis::WaitCulprit& culprit : result.Get<analysis::WaitStates>().culprits)
    WriteCulprit(json, run, culprit);
  json.EndArray();
  json.Key("late_start");
  JsonRow late_start;
  late_start.Key("wait_ns").Int(result.Get<analysis::WaitStates>().late_start.wait_ns);
  late_start.Key("wait_ratio").Double(result.Get<analysis::WaitStates>().late_start.wait_ratio);
  late_start.Key("spread_ns").Int(result.Get<analysis::WaitStates>().late_start.spread_ns);
  WriteRow(json, late_start);
  json.EndObject();
}

}  // namespace lockstep::report
