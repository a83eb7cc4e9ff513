#include <sstream>

#include "analysis/breakdown.h"
#include "present/report/comparison_report.h"
#include "present/report/json_stream.h"

namespace lockstep::report {
namespace {

using comparison::Comparison;
using comparison::Delta;
using comparison::RunProfile;

void WriteSeries(JsonRow& row, const char* key, const comparison::Series& series) {
  row.Key(key).StartArray();
  for (const double value : series) row.Int(static_cast<int64_t>(value));
  row.EndArray();
}

void WriteRun(JsonDocument& json, const char* key, const RunProfile& run) {
  json.Key(key);
  JsonRow row;
  row.Key("label").Text(run.label).Key("rank_count").Uint(run.rank_count).Key("world_size").Int(run.world_size);
  row.Key("device").TextOrNull(run.device).Key("basis").Text(analysis::BasisName(run.basis));
  row.Key("has_steps").Bool(run.has_steps).Key("step_count").Uint(run.steps.size());
  row.Key("skipped_steps").Int(run.skipped_steps).Key("step_numbers").StartArray();
  for (const auto& step : run.steps) row.Int(step.second);
  row.EndArray();
  WriteSeries(row, "step_ns", run.step_ns);
  row.Key("slowest_rank").List(run.slowest_rank);
  WriteRow(json, row);
}

void WriteVerdict(JsonDocument& json, const Comparison& comparison) {
  json.Key("verdict");
  JsonRow row;
  WriteVerdict(row, comparison.verdict, comparison.options);
  row.Key("minimum_name_effect").Double(comparison.options.minimum_name_effect);
  WriteRow(json, row);
}

void WriteNames(JsonDocument& json, const Comparison& comparison) {
  WriteTable(json, "names", comparison.names, [&](JsonRow& row, const comparison::NameDelta& name) {
    const bool in_a = name.pair.a.has_value();
    const bool in_b = name.pair.b.has_value();
    row.Key("kind").Text(EventClassName(name.kind)).Key("name").Text(in_b ? name.name_b : name.name_a);
    row.Key("name_a");
    in_a ? row.Text(name.name_a) : row.Null();
    row.Key("match").Text(NameMatchName(name.pair.match)).Key("change").Text(ChangeName(name.change));
    row.Key("count_a").Uint(name.count_a).Key("count_b").Uint(name.count_b);
    row.Key("calls_a").Double(name.calls_a).Key("calls_b").Double(name.calls_b);
    WriteDelta(row, "call_ns", name.call, in_a, in_b);
    row.Key("step_ns_a").Double(name.step.a).Key("step_ns_b").Double(name.step.b);
    row.Key("step_delta_ns").Double(name.delta_ns()).Key("p_adjusted").Double(name.p_adjusted);
    row.Key("worst_rank").Optional(name.worst_rank);
    row.Key("worst_rank_delta_ns");
    name.worst_rank ? row.Double(name.worst_rank_delta_ns) : row.Null();
  });
}

void WriteCollectives(JsonDocument& json, const Comparison& comparison) {
  WriteTable(json, "collectives", comparison.collectives,
             [&](JsonRow& row, const comparison::CollectiveDelta& collective) {
               row.Key("name").Text(collective.name).Key("bytes").Optional(collective.bytes);
               row.Key("change").Text(ChangeName(collective.change));
               row.Key("calls_a").Double(collective.calls_a).Key("calls_b").Double(collective.calls_b);
               WriteDelta(row, "transfer_ns", collective.transfer, collective.timed_a, collective.timed_b);
               WriteDelta(row, "wait_ns", collective.wait, collective.timed_a, collective.timed_b);
               row.Key("busbw_a_bytes_per_s");
               row.Optional(collective.busbw_a).Key("busbw_b_bytes_per_s");
               row.Optional(collective.busbw_b);
             });
}

void WriteRanks(JsonDocument& json, const Comparison& comparison) {
  WriteTable(json, "ranks", comparison.ranks, [&](JsonRow& row, const comparison::RankDelta& rank) {
    row.Key("rank").Int(rank.rank);
    WriteDelta(row, "own_ns", rank.own);
    for (size_t p = 0; p < comparison::kPartCount; ++p) {
      WriteDelta(row, PartName(static_cast<comparison::Part>(p)), rank.parts[p]);
    }
  });
}

void WriteMemory(JsonDocument& json, const Comparison& comparison) {
  WriteTable(json, "memory", comparison.memory, [&](JsonRow& row, const comparison::MemoryDelta& memory) {
    row.Key("rank").Int(memory.rank).Key("device").Int(memory.device);
    row.Key("peak_allocated_a_bytes").Optional(memory.allocated_a);
    row.Key("peak_allocated_b_bytes").Optional(memory.allocated_b);
    row.Key("peak_reserved_a_bytes").Optional(memory.reserved_a);
    row.Key("peak_reserved_b_bytes").Optional(memory.reserved_b);
  });
  json.Key("findings");
  json.StartArray();
  for (const comparison::FindingDelta& finding : comparison.findings) {
    JsonRow row;
    row.Key("state").Text(FindingStateName(finding.state)).Key("id").Text(finding.id).Key("ranks").List(finding.ranks);
    row.Key("title").Text(finding.title);
    row.Key("gain_a_ns_per_step").Optional(finding.gain_a_ns).Key("gain_b_ns_per_step").Optional(finding.gain_b_ns);
    WriteRow(json, row);
  }
  json.EndArray();
}

void WriteData(JsonDocument& json, const Comparison& comparison) {
  json.StartObject();
  WriteVerdict(json, comparison);
  WriteRun(json, "a", comparison.a);
  WriteRun(json, "b", comparison.b);
  json.Key("parts");
  JsonRow parts;
  WriteDelta(parts, "job_step_ns", comparison.step);
  for (size_t p = 0; p < comparison::kPartCount; ++p) {
    WriteDelta(parts, PartName(static_cast<comparison::Part>(p)), comparison.parts[p]);
  }
  WriteRow(json, parts);
  WriteRanks(json, comparison);
  json.Key("only");
  JsonRow only;
  for (const bool of_a : {true, false}) {
    only.Key(of_a ? "ranks_a" : "ranks_b").List(of_a ? comparison.only_a : comparison.only_b);
  }
  WriteRow(json, only);
  WriteNames(json, comparison);
  WriteCollectives(json, comparison);
  WriteMemory(json, comparison);
  json.EndObject();
}

}  // namespace

void WriteDelta(JsonRow& row, const char* key, const Delta& delta, bool has_a, bool has_b) {
  row.Key(key).StartObject();
  has_a ? row.Key("a").Double(delta.a) : row.Key("a").Null();
  has_b ? row.Key("b").Double(delta.b) : row.Key("b").Null();
  row.Key("shift");
  delta.shift ? row.Double(delta.shift->estimate) : row.Null();
  row.Key("low");
  row.Optional(delta.shift ? delta.shift->low : std::nullopt).Key("high");
  row.Optional(delta.shift ? delta.shift->high : std::nullopt).Key("p");
  delta.shift&& delta.shift->low ? row.Double(delta.shift->p) : row.Null();
  row.Key("ratio");
  row.Optional(delta.ratio()).Key("change").Text(ChangeName(delta.change)).EndObject();
}

void WriteVerdict(JsonRow& row, const comparison::Verdict& verdict, const comparison::CompareOptions& options) {
  row.Key("change").Text(ChangeName(verdict.change)).Key("sentence").Text(verdict.sentence);
  row.Key("reasons").Each(verdict.reasons, [&](const comparison::Reason& reason) {
    row.Key("text").Text(reason.text).Key("delta_ns").Double(reason.delta_ns);
  });
  row.Key("notes").List(verdict.notes).Key("confidence").Double(options.confidence);
  row.Key("minimum_effect").Double(options.minimum_effect);
}

void WriteLedgerRows(JsonDocument& json, const std::string& label, const std::vector<model::LedgerEntry>& entries) {
  for (const model::LedgerEntry& entry : entries) {
    JsonRow row;
    row.Key("run").Text(label).Key("code").Text(entry.code).Key("severity").Text(model::SeverityName(entry.severity));
    row.Key("source").TextOrNull(entry.source).Key("rank").Optional(entry.rank);
    row.Key("byte_offset").Optional(entry.byte_offset).Key("count").Uint(entry.count);
    row.Key("message").Text(entry.message).Key("advice").TextOrNull(entry.advice);
    WriteRow(json, row);
  }
}

void WriteComparisonJson(const Comparison& comparison, bool partial, std::ostream& out) {
  WriteDocument(out, "lockstep.compare/1", partial, [&](JsonDocument& json) {
    WriteData(json, comparison);
    json.Key("ledger");
    json.StartArray();
    WriteLedgerRows(json, "a", comparison.a.ledger);
    WriteLedgerRows(json, "b", comparison.b.ledger);
    json.EndArray();
  });
}

std::string ComparisonDataJson(const Comparison& comparison) {
  std::ostringstream out;
  {
    JsonDocument json(out, 0);
    WriteData(json, comparison);
  }
  return out.str();
}

}  // namespace lockstep::report
