#include <algorithm>
#include <iterator>
#include <string>

#include "analysis/analysis_result.h"
#include "analysis/pass_registry.h"
#include "present/report/flat_table.h"
#include "present/report/job_facts.h"
#include "present/report/json_stream.h"
#include "present/report/report.h"
#include "present/report/run_tables.h"
#include "present/report/surroundings_json.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using model::Run;

void WriteJob(JsonDocument& json, const Run& run, const AnalysisResult& result) {
  const JobFacts facts = FactsOf(run);
  json.Key("job");
  JsonRow row;
  row.Key("rank_count").Uint(facts.rank_count).Key("world_size").Optional(facts.world_size);
  row.Key("missing_rank_count");
  facts.world_size ? row.Uint(facts.missing_rank_count) : row.Null();
  row.Key("missing_ranks").List(facts.missing_ranks);
  row.Key("window_count").Uint(facts.window_count);
  row.Key("host_count");
  facts.hosts.empty() ? row.Null() : row.Uint(facts.hosts.size());
  row.Key("backend").TextOrNull(facts.backend);
  row.Key("step_count").Int(result.step_count).Key("span_ns").Int(result.job_span_ns);
  row.Key("event_count").Uint(facts.event_count);
  row.Key("passes").List(analysis::PassesOf(result));
  WriteRow(json, row);
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
  model::Run run;
  run.ledger = ledger;
  json.Key("ledger");
  WriteRows(json, Flat(LedgerTable(), {run, AnalysisResult()}, analysis::ColumnPlace::kOnlyInJson));
}

void WriteJson(const Run& run, const AnalysisResult& result, bool partial, std::ostream& out) {
  WriteDocument(out, "lockstep.analyze/1", partial, [&](JsonDocument& json) {
    json.StartObject();
    WriteJob(json, run, result);
    json.Key("ranks");
    WriteRows(json, Flat(RankTable(), {run, result}, analysis::ColumnPlace::kOnlyInJson));
    WriteTables(json, run, result);
    json.EndObject();
    WriteLedger(json, run.ledger);
  });
}

}  // namespace lockstep::report
