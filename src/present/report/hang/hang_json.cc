#include <fmt/format.h>

#include <algorithm>

#include "present/report/hang/hang_report.h"
#include "present/report/json_stream.h"

namespace lockstep::report {
namespace {

using hang::Diagnosis;
using hang::Verdict;

void WriteFrames(JsonRow& row, const char* key, const std::vector<evidence::StackFrame>& frames) {
  row.Key(key).Each(frames, [&](const evidence::StackFrame& frame) {
    row.Key("function").TextOrNull(frame.function).Key("file").TextOrNull(frame.file).Key("line");
    frame.line > 0 ? row.Int(frame.line) : row.Null();
  });
}

void WriteSite(JsonRow& row, const hang::CodeSite& site) {
  row.StartObject().Key("ranks").List(site.ranks);
  row.Key("role").Text(site.role).Key("what").TextOrNull(site.what).Key("function").TextOrNull(site.function);
  row.Key("file").TextOrNull(site.file).Key("line");
  site.line > 0 ? row.Int(site.line) : row.Null();
  WriteFrames(row, "stack", site.stack);
  row.EndObject();
}

void VerdictRow(JsonRow& row, const Verdict& verdict) {
  row.Key("kind").Text(hang::VerdictKindName(verdict.kind)).Key("confidence").Double(verdict.confidence);
  row.Key("culprit_ranks").List(verdict.culprit_ranks).Key("victim_ranks").List(verdict.victim_ranks);
  row.Key("group").TextOrNull(verdict.group).Key("group_description").TextOrNull(verdict.group_description);
  row.Key("group_ranks").List(verdict.group_ranks);
  row.Key("sequence").Optional(verdict.sequence).Key("operation").TextOrNull(verdict.operation);
  row.Key("explanation").Text(verdict.explanation).Key("sites").StartArray();
  for (const hang::CodeSite& site : verdict.sites) WriteSite(row, site);
  row.EndArray().Key("cycle").Each(verdict.cycle, [&](const hang::WaitEdge& edge) {
    row.Key("rank").Int(edge.rank).Key("waits_for").List(edge.waits_for);
    row.Key("group").TextOrNull(edge.group).Key("sequence").Optional(edge.sequence);
    row.Key("operation").TextOrNull(edge.operation);
  });
  row.Key("advice").List(verdict.advice);
}

void GroupRow(JsonRow& row, const hang::GroupState& group) {
  row.Key("name").Text(group.name).Key("description").TextOrNull(group.description);
  row.Key("members").List(group.members);
  row.Key("members_inferred")
      .Bool(group.members_inferred)
      .Key("ranks")
      .Each(group.ranks, [&](const hang::RankInGroup& rank) {
        row.Key("rank").Int(rank.rank).Key("last_enqueued").Optional(rank.last_enqueued);
        row.Key("last_started").Optional(rank.last_started).Key("last_completed").Optional(rank.last_completed);
        row.Key("oldest_retained").Optional(rank.oldest_retained);
        row.Key("open_since_unix_ns").Optional(rank.open_since_unix_ns);
        row.Key("open_operation").TextOrNull(rank.open_operation).Key("waits_for").List(rank.waits_for);
      });
}

void RankRow(JsonRow& row, const hang::RankState& rank) {
  row.Key("rank").Int(rank.rank).Key("host").TextOrNull(rank.host).Key("pid");
  rank.pid > 0 ? row.Int(rank.pid) : row.Null();
  row.Key("role").Text(hang::RankRoleName(rank.role)).Key("liveness").Text(evidence::LivenessName(rank.liveness));
  row.Key("has_record").Bool(rank.has_record).Key("has_stacks").Bool(rank.has_stacks);
  row.Key("has_log").Bool(rank.has_log).Key("doing").TextOrNull(rank.doing);
  row.Key("silent_since_unix_ns").Optional(rank.silent_since_unix_ns);
  row.Key("mean_lateness_ns").Optional(rank.mean_lateness_ns);
}

void StackRow(JsonRow& row, const hang::StackGroup& stack) {
  row.Key("ranks").List(stack.ranks);
  row.Key("source").TextOrNull(stack.source);
  WriteFrames(row, "frames", stack.frames);
}

void EvidenceRow(JsonRow& row, const hang::EvidenceItem& item) {
  row.Key("source").Text(item.source).Key("ranks").List(item.ranks);
  row.Key("file").TextOrNull(item.file).Key("fact").Text(item.fact).Key("contradicts").Bool(item.contradicts);
}

void MissingRow(JsonRow& row, const evidence::MissingEvidence& missing) {
  row.Key("rank").Value(missing.rank ? Cell(int64_t{*missing.rank}) : Cell());
  row.Key("host").TextOrNull(missing.host).Key("what").Text(missing.what);
  row.Key("reason").TextOrNull(missing.reason).Key("remedy").TextOrNull(missing.remedy);
}

void WriteData(JsonDocument& json, const Diagnosis& diagnosis) {
  json.StartObject();
  json.Key("verdict");
  JsonRow verdict;
  VerdictRow(verdict, diagnosis.verdict);
  WriteRow(json, verdict);
  WriteTable(json, "context", diagnosis.context, VerdictRow);
  json.Key("job");
  JsonRow job;
  job.Key("world_size").Value(diagnosis.world_size ? Cell(int64_t{*diagnosis.world_size}) : Cell());
  job.Key("collected_unix_ns").Optional(diagnosis.collected_unix_ns);
  WriteRow(json, job);
  WriteTable(json, "groups", diagnosis.groups, GroupRow);
  WriteTable(json, "ranks", diagnosis.ranks, RankRow);
  WriteTable(json, "stacks", diagnosis.stacks, StackRow);
  WriteTable(json, "evidence", diagnosis.evidence, EvidenceRow);
  WriteTable(json, "missing", diagnosis.missing, MissingRow);
  json.EndObject();
}

bool NothingKnown(const hang::RankState& rank) {
  return !rank.has_record && !rank.has_stacks && !rank.has_log && rank.liveness == evidence::Liveness::kUnknown;
}

}  // namespace

model::Ledger HangLedger(const Diagnosis& diagnosis) {
  model::Ledger ledger;
  for (const evidence::EvidenceProblem& problem : diagnosis.problems) {
    if (problem.is_note) {
      ledger.Add({.code = "evidence_note",
                  .severity = model::Severity::kInfo,
                  .source = problem.file,
                  .rank = problem.rank,
                  .message = problem.message});
      continue;
    }
    ledger.Add({.code = problem.skipped ? "evidence_unreadable" : "evidence_damaged",
                .severity = problem.skipped ? model::Severity::kError : model::Severity::kWarning,
                .source = problem.file,
                .rank = problem.rank,
                .message = problem.message,
                .advice = problem.skipped ? "the other files were used" : "what could be read of it was used"});
  }
  for (const hang::RankState& rank : diagnosis.ranks) {
    if (!NothingKnown(rank)) continue;
    ledger.Add({.code = "rank_without_evidence",
                .severity = model::Severity::kError,
                .rank = rank.rank,
                .message = fmt::format("nothing is known of rank {}: no dump, no stacks, no log", rank.rank),
                .advice = "add its files; data.missing says how to have them"});
  }
  return ledger;
}

bool IsPartial(const Diagnosis& diagnosis) {
  return std::any_of(diagnosis.problems.begin(), diagnosis.problems.end(), [](const auto& p) { return !p.is_note; }) ||
         std::any_of(diagnosis.ranks.begin(), diagnosis.ranks.end(), NothingKnown);
}

void WriteHangJson(const Diagnosis& diagnosis, std::ostream& out) {
  WriteDocument(out, "lockstep.hang/1", IsPartial(diagnosis), [&](JsonDocument& json) {
    WriteData(json, diagnosis);
    WriteLedger(json, HangLedger(diagnosis));
  });
}

std::string HangDataJson(const Diagnosis& diagnosis) {
  return JsonText([&](JsonDocument& json) { WriteData(json, diagnosis); });
}

}  // namespace lockstep::report
