#include <algorithm>
#include <string>
#include <vector>

#include "model/ledger.h"
#include "model/stages/stage.h"
#include "present/report/json_stream.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::report {
namespace {

using frontier::Accounting;
using frontier::Answer;
using frontier::Change;
using frontier::Cost;
using frontier::Group;
using frontier::JobStages;
using frontier::StageAccount;
using frontier::StepAccount;
using frontier::Verdict;
using frontier::Window;
using model::RankStages;
using model::Stage;

void VerdictRow(JsonRow& row, const JobStages& job) {
  const Verdict& verdict = job.verdict;
  const bool has_stage = verdict.answer != Answer::kEven && verdict.answer != Answer::kUndecided;
  row.Key("answer").Text(AnswerName(verdict.answer));
  row.Key("doubt");
  const char* const doubt = DoubtName(verdict.doubt);
  doubt == nullptr ? row.Null() : row.Text(doubt);
  row.Key("rank");
  verdict.answer == Answer::kStraggler ? row.Int(job.account.ranks[verdict.rank_idx]) : row.Null();
  row.Key("stage");
  has_stage ? row.Text(StageName(verdict.stage)) : row.Null();
  row.Key("group");
  job.group_idx ? row.Text(job.groups[*job.group_idx].name) : row.Null();
  row.Key("cost_ns").Int(verdict.cost_ns).Key("cost_ratio").Double(verdict.cost_ratio);
  row.Key("step_count").Int(verdict.step_count).Key("occasional").Bool(verdict.is_occasional);
  row.Key("confidence").Double(verdict.confidence).Key("sentence").Text(StagesSentence(job));
}

void JobRow(JsonRow& row, const JobStages& job) {
  row.Key("world_size").Int(job.world_size()).Key("workload").StartObject();
  for (const auto& [key, value] : job.facts.workload) row.Key(key).Text(value);
  row.EndObject().Key("exit_status").Optional(job.facts.exit_status);
}

void RankRow(JsonRow& row, const RankStages& rank) {
  row.Key("rank").Int(rank.rank).Key("host").TextOrNull(rank.host).Key("process_id").Int(rank.process_id);
  row.Key("step_count").Uint(rank.steps.size()).Key("lost_record_count").Uint(rank.dropped_record_count);
  row.Key("ended_in_order").Bool(rank.ended_in_order).Key("device_times").Bool(rank.has_device_times);
}

void StageRow(JsonRow& row, Stage stage, const StageAccount& account) {
  row.Key("stage").Text(StageName(stage)).Key("frontier_ns").Int(account.frontier_ns);
  row.Key("imbalance_ns").Int(account.imbalance_ns);
  row.Key("rank_ns").List(account.rank_ns).Key("leader_ns").List(account.leader_ns);
  row.Key("cost_ns").StartArray();
  for (const Cost& cost : account.cost) row.Int(cost.ns);
  row.EndArray();
}

void ProcessGroupRow(JsonRow& row, const Group& group) {
  row.Key("name").Text(group.name).Key("pairwise").Bool(group.is_pairwise);
  row.Key("ranks").List(group.account.ranks).Key("wait_ns").List(group.wait_ns);
  row.Key("round_count").Int(group.account.round_count).Key("total_ns").Int(group.account.total_ns);
  row.Key("unmet_ns").Int(group.account.unmet_ns);
  const frontier::MostCost most = FindMostCost(group.account);
  row.Key("cost_ns").Int(most.ns);
  row.Key("rank");
  most.ns > 0 ? row.Int(group.account.ranks[most.rank_idx]) : row.Null();
  row.Key("stage");
  most.ns > 0 ? row.Text(StageName(most.stage)) : row.Null();
}

void StepRow(JsonRow& row, const Accounting& account, const StepAccount& step) {
  row.Key("step").Int(step.number).Key("ns").Int(step.ns).Key("cost_ns").Int(step.cost_ns);
  row.Key("rank");
  step.cost_ns > 0 ? row.Int(account.ranks[step.rank_idx]) : row.Null();
  row.Key("stage");
  step.cost_ns > 0 ? row.Text(StageName(step.stage)) : row.Null();
}

void WindowRow(JsonRow& row, const Accounting& account, const Window& window) {
  row.Key("first_step").Int(window.first_step).Key("last_step").Int(window.last_step);
  row.Key("step_count").Int(window.step_count).Key("ns").Int(window.ns);
  row.Key("median_step_ns").Int(window.median_step_ns);
  row.Key("frontier_ns").List(window.frontier_ns).Key("largest_stage").Text(StageName(window.largest_stage));
  row.Key("rank_cost_ns").List(window.rank_cost_ns).Key("cost_ns").Int(window.cost_ns);
  row.Key("rank");
  window.cost_ns > 0 ? row.Int(account.ranks[window.rank_idx]) : row.Null();
  row.Key("stage");
  window.cost_ns > 0 ? row.Text(StageName(window.cost_stage)) : row.Null();
}

void MemoryRankRow(JsonRow& row, const JobStages& job, size_t rank_idx) {
  const model::RankMemory& memory = job.ranks[rank_idx].memory;
  row.Key("rank").Int(job.account.ranks[rank_idx]);
  for (const rank_memory::Signal signal : rank_memory::kSignals) {
    const auto& use = job.memory.ranks[rank_idx][static_cast<size_t>(signal)];
    row.Key(SignalName(signal));
    if (!use) {
      row.Null();
      continue;
    }
    row.StartObject().Key("peak_bytes").Int(use->peak_bytes).Key("last_bytes").Int(use->last_bytes);
    row.Key("third_bytes");
    use->third_bytes ? row.List(*use->third_bytes) : row.Null();
    row.EndObject();
  }
  row.Key("peak_allocated_bytes").Optional(memory.peak_allocated_bytes);
  row.Key("device_bytes").Optional(memory.device_bytes).Key("host_bytes").Optional(memory.host_bytes);
  row.Key("allocation_retry_count").Optional(memory.allocation_retry_count);
}

void MemoryFindingRow(JsonRow& row, const JobStages& job, const rank_memory::Finding& finding) {
  row.Key("kind").Text(KindName(finding.kind)).Key("signal").Text(SignalName(finding.signal)).Key("rank");
  finding.rank_idx ? row.Int(job.account.ranks[*finding.rank_idx]) : row.Null();
  row.Key("host").TextOrNull(finding.host).Key("bytes").Int(finding.bytes);
  const bool is_compared = finding.compared_bytes > 0;
  row.Key("compared_bytes");
  is_compared ? row.Int(finding.compared_bytes) : row.Null();
  row.Key("ratio");
  is_compared ? row.Double(finding.ratio) : row.Null();
  row.Key("bytes_per_hour");
  finding.kind == rank_memory::Kind::kCreep ? row.Double(finding.bytes_per_hour) : row.Null();
  row.Key("sentence").Text(MemorySentence(job, finding));
}

void ChangeRow(JsonRow& row, const Accounting& account, const Change& change, const std::string& sentence) {
  row.Key("first_step").Int(change.window.first_step).Key("last_step").Int(change.window.last_step);
  row.Key("step_count").Int(change.window.step_count).Key("median_step_ns").Int(change.window.median_step_ns);
  row.Key("usual_step_ns").Int(change.usual_step_ns).Key("ratio").Double(change.ratio).Key("rank");
  change.rank_idx ? row.Int(account.ranks[*change.rank_idx]) : row.Null();
  row.Key("stage");
  change.stage ? row.Text(StageName(*change.stage)) : row.Null();
  row.Key("sentence").Text(sentence);
}

void WriteData(JsonDocument& json, const JobStages& job) {
  const Accounting& account = job.account;
  json.StartObject().Key("verdict").Raw(StagesVerdictJson(job)).Key("job");
  JsonRow of;
  JobRow(of, job);
  WriteRow(json, of);
  json.Key("step_count").Int(account.step_count).Key("left_out_step_count").Int(account.left_out_count);
  json.Key("round_count").Int(account.round_count).Key("total_ns").Int(account.total_ns);
  json.Key("unmet_ns").Int(account.unmet_ns).Key("tail_ns").Int(account.tail_ns);
  WriteTable(json, "ranks", job.ranks, RankRow);
  WriteTable(json, "stages", model::kStages,
             [&](JsonRow& row, Stage stage) { StageRow(row, stage, account.At(stage)); });
  WriteTable(json, "groups", job.groups, ProcessGroupRow);
  WriteTable(json, "steps", account.steps, [&](JsonRow& row, const StepAccount& step) { StepRow(row, account, step); });
  WriteTable(json, "windows", job.over_time.windows,
             [&](JsonRow& row, const Window& window) { WindowRow(row, account, window); });
  const std::vector<std::string> sentences = ChangeSentences(job);
  size_t next = 0;
  WriteTable(json, "changes", job.over_time.changes,
             [&](JsonRow& row, const Change& change) { ChangeRow(row, account, change, sentences[next++]); });
  json.Key("memory").StartObject();
  std::vector<size_t> measured;
  for (size_t i = 0; i < job.memory.ranks.size(); ++i) {
    const auto& uses = job.memory.ranks[i];
    if (std::any_of(uses.begin(), uses.end(), [](const auto& use) { return use.has_value(); })) measured.push_back(i);
  }
  WriteTable(json, "ranks", measured, [&](JsonRow& row, size_t rank_idx) { MemoryRankRow(row, job, rank_idx); });
  WriteTable(json, "findings", job.memory.findings,
             [&](JsonRow& row, const rank_memory::Finding& finding) { MemoryFindingRow(row, job, finding); });
  json.EndObject();
  json.EndObject();
}

}  // namespace

bool IsPartial(const JobStages& job) { return job.account.step_count == 0 || job.ledger.Has(model::Severity::kError); }

std::string StagesVerdictJson(const JobStages& job) {
  JsonRow verdict;
  VerdictRow(verdict, job);
  return std::string(verdict.Finish());
}

std::string StagesDataJson(const JobStages& job) {
  return JsonText([&](JsonDocument& json) { WriteData(json, job); });
}

void WriteStagesJson(const JobStages& job, std::ostream& out) {
  WriteDocument(out, "lockstep.stages/1", IsPartial(job), [&](JsonDocument& json) {
    WriteData(json, job);
    WriteLedger(json, job.ledger);
  });
}

}  // namespace lockstep::report
