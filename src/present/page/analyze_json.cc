#include "present/page/analyze_json.h"

#include <set>

#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "present/page/analyze_tables.h"
#include "present/page/depth_tables.h"
#include "present/report/job_facts.h"
#include "present/report/verdict.h"

namespace lockstep::page {
namespace {

using report::JsonRow;

void AddJob(const PageModel& model, JsonRow* json) {
  const report::JobFacts facts = report::FactsOf(model.run());
  json->Key("job").StartObject().Key("name").Text(JobName(model.run()));
  json->Key("origin_ns").Text(std::to_string(model.origin_ns)).Key("span_ns").Int(model.result().job_span_ns);
  json->Key("rank_count").Uint(facts.rank_count).Key("world_size").Optional(facts.world_size);
  json->Key("missing_ranks").List(facts.missing_ranks).Key("hosts").List(facts.hosts);
  json->Key("backend").TextOrNull(facts.backend);
  json->Key("step_count").Int(model.result().step_count).Key("event_count").Uint(facts.event_count);
  json->Key("devices").TextOrNull(facts.devices).EndObject();
}

void AddVerdict(const PageModel& model, JsonRow* json) {
  const auto verdict = report::VerdictFindings(model.result().findings);
  json->Key("verdict").StartArray();
  if (verdict.empty()) json->StartObject().Key("title").Text(report::kNoVerdict).Key("gain").Null().EndObject();
  for (const analysis::Finding* finding : verdict) {
    json->StartObject().Key("title").Text(finding->title);
    json->Key("gain").TextOrNull(report::HeadlineGain(*finding, model.result().step_count > 0)).EndObject();
  }
  json->EndArray();
}

void AddRanks(const PageModel& model, JsonRow* json) {
  std::vector<std::set<int64_t>> steps(model.run().ranks.size());
  for (const analysis::BreakdownRow& row : model.result().Get<analysis::Breakdown>().steps) {
    if (row.step_number) steps[row.rank_index].insert(*row.step_number);
  }
  json->Key("ranks").StartArray();
  for (size_t i = 0; i < model.run().ranks.size(); ++i) {
    const model::RankTrace& trace = model.run().ranks[i];
    const model::ClockMap& clock = trace.clock;
    json->StartObject().Key("rank").Int(trace.rank.value).Key("window").Int(trace.window);
    json->Key("host").TextOrNull(trace.host).Key("device").TextOrNull(report::DeviceOf(trace).name);
    json->Key("source").Text(trace.source).Key("origin_ns").Text(std::to_string(model.rank_origin_ns[i]));
    json->Key("step_count").Uint(steps[i].size());
    json->Key("event_count").Uint(trace.event_count).Key("clock").StartObject();
    json->Key("basis").Text(model::ClockBasisName(clock.basis)).Key("offset_ns").Int(clock.offset_ns);
    json->Key("drift_ppm").Double(clock.drift_ppm).Key("uncertainty_ns").Optional(clock.uncertainty_ns);
    json->Key("sample_count").Uint(clock.sample_count).EndObject().EndObject();
  }
  json->EndArray();
}

void AddFindings(const PageModel& model, JsonRow* json) {
  json->Key("findings").Each(model.result().findings, [&](const analysis::Finding& finding) {
    json->Key("id").Text(finding.id);
    json->Key("severity").Text(analysis::FindingSeverityName(finding.severity)).Key("ranks").List(finding.ranks);
    json->Key("title").Text(finding.title);
    json->Key("evidence").Each(finding.evidence, [&](const analysis::Evidence& evidence) {
      json->Key("name").Text(evidence.name).Key("value").Double(evidence.value);
      json->Key("text").Text(evidence.text);
    });
    json->Key("advice").List(finding.advice).Key("gain_ns_per_step").Optional(finding.gain_ns_per_step);
    json->Key("gain_ratio").Optional(finding.gain_ratio);
  });
}

}  // namespace

std::string AnalyzeJson(const PageModel& model, const BlockFacts& blocks, std::vector<Reduction>* reductions) {
  JsonRow json;
  AddJob(model, &json);
  AddVerdict(model, &json);
  AddRanks(model, &json);
  AddFindings(model, &json);
  AddTimeTables(model, &json);
  AddNameTables(model, &json, reductions);
  AddCommunicationTables(model, &json, reductions);
  AddMemoryTables(model, &json, reductions);
  AddCounters(model, &json, reductions);
  AddSpanLinks(model, &json, reductions);
  AddCriticalPath(model, &json, reductions);
  AddWaitStates(model, &json, reductions);
  AddWhatIf(model, &json, reductions);
  AddParallelism(model, &json, reductions);
  AddFabricSource(model, &json, reductions);
  json.Key("step_matrix").Raw(blocks.step_matrix_json);
  json.Key("collective_count").Uint(model.result().Get<analysis::Collectives>().instances.size());
  json.Key("timeline").Raw(blocks.timeline_json);
  json.Key("tables").Raw(blocks.tables_json);
  return std::string(json.Finish());
}

}  // namespace lockstep::page
