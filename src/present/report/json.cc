#include <algorithm>
#include <iterator>
#include <string>

#include "analysis/analysis_result.h"
#include "analysis/pass_registry.h"
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

/// The members of `data` that hold more than tables, by the first word of these tables' paths.
struct Surroundings {
  std::string_view name;
  void (*write)(JsonDocument& json, const Run& run, const AnalysisResult& result);
};
constexpr Surroundings kSurroundings[] = {{"wait_states", WriteWaitStates},
                                          {"critical_path", WriteCriticalPath},
                                          {"what_if", WriteWhatIf},
                                          {"bubbles", WriteBubbles}};

void WriteTables(JsonDocument& json, const Run& run, const AnalysisResult& result) {
  const Surroundings* last = nullptr;
  for (const FlatTable& table : FlatTables(run, result, analysis::ColumnPlace::kOnlyInJson)) {
    const auto* around = std::find_if(
        std::begin(kSurroundings), std::end(kSurroundings),
        [&](const Surroundings& each) { return table.json_path.starts_with(std::string(each.name) + "."); });
    if (around == std::end(kSurroundings)) {
      json.Key(table.name);
      table.pass.empty() || result.Has(table.pass) ? WriteRows(json, table) : static_cast<void>(json.Null());
    } else if (around != last) {
      last = around;
      around->write(json, run, result);
    }
  }
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
  WriteDocument(out, "lockstep.analyze/1", partial, [&](JsonDocument& json) {
    json.StartObject();
    WriteJob(json, run, result);
    WriteRanks(json, run);
    WriteTables(json, run, result);
    json.EndObject();
    WriteLedger(json, run.ledger);
  });
}

}  // namespace lockstep::report
