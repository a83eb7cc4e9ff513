#include <algorithm>

#include "analysis/analysis_result.h"
#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "analysis/imbalance.h"
#include "analysis/pass_registry.h"
#include "analysis/stragglers.h"
#include "base/cell.h"
#include "present/report/critical_path_json.h"
#include "present/report/flat_table.h"
#include "present/report/job_facts.h"
#include "present/report/json_stream.h"
#include "present/report/report.h"
#include "present/report/wait_states_json.h"
#include "present/report/what_if_json.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using model::RankTrace;
using model::Run;

const char* ClockBasisName(model::ClockMap::Basis basis) {
  switch (basis) {
    case model::ClockMap::Basis::kReference: return "reference";
    case model::ClockMap::Basis::kCollectives: return "collectives";
    case model::ClockMap::Basis::kWallClock: return "wall_clock";
  }
  return "wall_clock";
}

JsonRow& Name(JsonRow& row, const Run& run, size_t rank_index) {
  const RankTrace& trace = run.ranks[rank_index];
  return row.Key("rank").Int(trace.rank.value).Key("window").Int(trace.window);
}

void WriteJob(JsonDocument& json, const Run& run, const AnalysisResult& result) {
  const JobFacts facts = FactsOf(run);
  json.Key("job");
  JsonRow row;
  row.Key("rank_count").Uint(facts.rank_count).Key("world_size");
  facts.world_size ? row.Int(*facts.world_size) : row.Null();
  row.Key("missing_rank_count");
  facts.world_size ? row.Uint(facts.missing_rank_count) : row.Null();
  row.Key("missing_ranks").StartArray();
  for (const int32_t rank : facts.missing_ranks) row.Int(rank);
  row.EndArray();
  row.Key("window_count").Uint(facts.window_count);
  row.Key("host_count");
  facts.hosts.empty() ? row.Null() : row.Uint(facts.hosts.size());
  row.Key("backend").TextOrNull(facts.backend);
  row.Key("step_count").Int(result.step_count).Key("span_ns").Int(result.job_span_ns);
  row.Key("event_count").Uint(facts.event_count);
  row.Key("passes").StartArray();
  for (const std::string& pass : analysis::PassesOf(result)) row.Text(pass);
  row.EndArray();
  WriteRow(json, row);
}

void WriteClock(JsonRow& row, const model::ClockMap& clock) {
  row.Key("clock").StartObject();
  row.Key("basis").Text(ClockBasisName(clock.basis)).Key("offset_ns").Int(clock.offset_ns);
  row.Key("uncertainty_ns").Optional(clock.uncertainty_ns).Key("drift_ppm").Double(clock.drift_ppm);
  row.Key("reference_ns").Int(clock.reference_ns).Key("sample_count").Uint(clock.sample_count);
  row.EndObject();
}

void WriteRanks(JsonDocument& json, const Run& run) {
  json.Key("ranks");
  json.StartArray();
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const RankTrace& trace = run.ranks[i];
    const RankDevice device = DeviceOf(trace);
    JsonRow row;
    Name(row, run, i).Key("rank_source").Text(model::RankSourceName(trace.rank_source));
    row.Key("world_size");
    trace.world_size ? row.Int(*trace.world_size) : row.Null();
    row.Key("host").TextOrNull(trace.host).Key("device").TextOrNull(device.name);
    row.Key("device_ordinals").StartArray();
    for (const int32_t ordinal : device.ordinals) row.Int(ordinal);
    row.EndArray();
    row.Key("backend").TextOrNull(trace.backend).Key("source").Text(trace.source);
    row.Key("event_count").Uint(trace.event_count).Key("json_bytes").Uint(trace.json_bytes);
    row.Key("first_ns").Optional(trace.first_ns).Key("last_ns").Optional(trace.last_ns);
    WriteClock(row, trace.clock);
    WriteRow(json, row);
  }
  json.EndArray();
}

void WriteFlatTable(JsonDocument& json, const FlatTable& table, bool computed) {
  json.Key(table.name);
  if (!computed) {
    json.Null();
    return;
  }
  json.StartArray();
  std::vector<Cell> cells;
  for (size_t r = 0; r < table.row_count; ++r) {
    cells.clear();
    table.fill(r, &cells);
    JsonRow row;
    for (size_t c = 0; c < table.columns.size(); ++c) row.Key(table.columns[c]).Value(cells[c]);
    WriteRow(json, row);
  }
  json.EndArray();
}

void WriteCollective(JsonDocument& json, const Run& run, const analysis::CollectiveInstance& instance) {
  JsonRow row;
  row.Key("window").Int(instance.window).Key("group").Text(instance.group).Key("sequence").Int(instance.sequence);
  row.Key("match").Text(analysis::MatchBasisName(instance.basis)).Key("name").Text(instance.name);
  row.Key("bytes").Optional(instance.bytes).Key("group_size");
  instance.group_size ? row.Int(*instance.group_size) : row.Null();
  row.Key("synchronising").Bool(instance.synchronising).Key("complete").Bool(instance.complete);
  row.Key("ranks").StartArray();
  for (const auto& member : instance.members) row.Int(run.ranks[member.rank_index].rank.value);
  row.EndArray().Key("arrival_ns").StartArray();
  for (const auto& member : instance.members) row.Int(member.arrival_ns);
  row.EndArray().Key("end_ns").StartArray();
  for (const auto& member : instance.members) row.Int(member.end_ns);
  row.EndArray().Key("wait_ns").StartArray();
  for (const auto& member : instance.members) row.Optional(member.wait_ns);
  row.EndArray().Key("duration_ns").StartArray();
  for (const auto& member : instance.members) row.Int(member.duration_ns);
  row.EndArray().Key("missing_ranks").StartArray();
  for (const Rank rank : instance.missing_ranks) row.Int(rank.value);
  row.EndArray();
  row.Key("last_rank");
  instance.last_rank_index ? row.Int(run.ranks[*instance.last_rank_index].rank.value) : row.Null();
  row.Key("transfer_ns").Optional(instance.transfer_ns);
  row.Key("algbw_bytes_per_s").Optional(instance.algbw_bytes_per_s);
  row.Key("busbw_bytes_per_s").Optional(instance.busbw_bytes_per_s);
  WriteRow(json, row);
}

void WriteCollectives(JsonDocument& json, const Run& run, const AnalysisResult& result) {
  json.Key("collectives");
  if (!result.Has<analysis::Collectives>()) {
    json.Null();
    return;
  }
  json.StartArray();
  for (const analysis::CollectiveInstance& instance : result.Get<analysis::Collectives>().instances)
    WriteCollective(json, run, instance);
  json.EndArray();
}

void WriteStragglers(JsonDocument& json, const Run& run, const AnalysisResult& result) {
  json.Key("stragglers");
  if (!result.Has<analysis::Stragglers>()) {
    json.Null();
    return;
  }
  json.StartArray();
  for (const analysis::StragglerRow& straggler : result.Get<analysis::Stragglers>().rows) {
    JsonRow row;
    Name(row, run, straggler.rank_index);
    row.Key("collective_count").Uint(straggler.collective_count).Key("last_count").Uint(straggler.last_count);
    row.Key("last_ratio").Double(straggler.last_ratio).Key("wait_ns").Int(straggler.wait_ns);
    row.Key("wait_given_ns").Int(straggler.wait_given_ns).Key("delay_ns").Int(straggler.delay_ns);
    row.Key("role").Text(WaitRoleName(straggler.role)).Key("chronic").Bool(straggler.chronic);
    row.Key("step_count").Int(straggler.step_count).Key("late_step_count").Int(straggler.late_step_count);
    row.Key("worst_collective");
    if (straggler.worst_instance) {
      const analysis::CollectiveInstance& worst =
          result.Get<analysis::Collectives>().instances[*straggler.worst_instance];
      row.StartObject().Key("window").Int(worst.window).Key("group").Text(worst.group);
      row.Key("sequence").Int(worst.sequence).Key("name").Text(worst.name).EndObject();
    } else {
      row.Null();
    }
    row.Key("activities").StartArray();
    for (const analysis::LateActivity& activity : straggler.activities) {
      row.StartObject().Key("cause").Text(analysis::LateCauseName(activity.cause)).Key("name").Text(activity.name);
      row.Key("excess_ns").Int(activity.excess_ns).EndObject();
    }
    row.EndArray();
    WriteRow(json, row);
  }
  json.EndArray();
}

void WriteImbalance(JsonDocument& json, const Run& run, const AnalysisResult& result) {
  json.Key("imbalance");
  if (!result.Has<analysis::Imbalance>()) {
    json.Null();
    return;
  }
  json.StartObject();
  for (const analysis::ImbalanceRow& spread : result.Get<analysis::Imbalance>().rows) {
    json.Key(spread.quantity);
    JsonRow row;
    row.Key("mean").Double(spread.mean).Key("min").Double(spread.min).Key("max").Double(spread.max);
    row.Key("ratio").Optional(spread.ratio);
    row.Key("min_rank").Int(run.ranks[spread.min_rank_index].rank.value);
    row.Key("max_rank").Int(run.ranks[spread.max_rank_index].rank.value);
    WriteRow(json, row);
  }
  json.EndObject();
}

void WriteFindings(JsonDocument& json, const AnalysisResult& result) {
  json.Key("findings");
  json.StartArray();
  for (const analysis::Finding& finding : result.findings) {
    JsonRow row;
    row.Key("id").Text(finding.id).Key("severity").Text(analysis::FindingSeverityName(finding.severity));
    row.Key("ranks").StartArray();
    for (const int32_t rank : finding.ranks) row.Int(rank);
    row.EndArray().Key("title").Text(finding.title).Key("evidence").StartArray();
    for (const analysis::Evidence& evidence : finding.evidence) {
      row.StartObject().Key("name").Text(evidence.name).Key("value").Double(evidence.value);
      row.Key("text").Text(evidence.text).EndObject();
    }
    row.EndArray().Key("advice").StartArray();
    for (const std::string& advice : finding.advice) row.Text(advice);
    row.EndArray().Key("gain_ns_per_step").Optional(finding.gain_ns_per_step);
    row.Key("gain_ratio").Optional(finding.gain_ratio);
    WriteRow(json, row);
  }
  json.EndArray();
}

}  // namespace

void WriteLedger(JsonDocument& json, const model::Ledger& ledger) {
  json.Key("ledger");
  json.StartArray();
  for (const model::LedgerEntry& entry : ledger.entries()) {
    JsonRow row;
    row.Key("code").Text(entry.code).Key("severity").Text(model::SeverityName(entry.severity));
    row.Key("source").TextOrNull(entry.source).Key("rank");
    entry.rank ? row.Int(*entry.rank) : row.Null();
    row.Key("byte_offset").Optional(entry.byte_offset).Key("count").Uint(entry.count);
    row.Key("message").Text(entry.message).Key("advice").TextOrNull(entry.advice);
    WriteRow(json, row);
  }
  json.EndArray();
}

void WriteJson(const Run& run, const AnalysisResult& result, bool partial, std::ostream& out) {
  {
    JsonDocument json(out, 2);
    json.StartObject();
    json.Key("schema");
    json.Text("lockstep.analyze/1");
    json.Key("partial");
    json.Bool(partial);
    json.Key("data");
    json.StartObject();
    WriteJob(json, run, result);
    WriteRanks(json, run);
    for (const FlatTable& table : FlatTables(run, result)) WriteFlatTable(json, table, result.Has(table.pass));
    WriteCollectives(json, run, result);
    WriteStragglers(json, run, result);
    WriteWaitStates(json, run, result);
    WriteImbalance(json, run, result);
    WriteCriticalPath(json, run, result);
    WriteWhatIf(json, result);
    WriteBubbles(json, result);
    WriteFindings(json, result);
    json.EndObject();
    WriteLedger(json, run.ledger);
    json.EndObject();
    json.EndLine();
  }
  out.flush();
}

}  // namespace lockstep::report
