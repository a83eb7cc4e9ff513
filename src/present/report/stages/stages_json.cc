#include <string>

#include "model/ledger.h"
#include "model/stages/stage.h"
#include "present/report/json_stream.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::report {
namespace {

using frontier::Accounting;
using frontier::Answer;
using frontier::Cost;
using frontier::JobStages;
using frontier::StageAccount;
using frontier::StepAccount;
using frontier::Verdict;
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
  row.Key("cost_ns").Int(verdict.cost_ns).Key("cost_ratio").Double(verdict.cost_ratio);
  row.Key("step_count").Int(verdict.step_count).Key("occasional").Bool(verdict.is_occasional);
  row.Key("confidence").Double(verdict.confidence).Key("sentence").Text(StagesSentence(job));
}

void RankRow(JsonRow& row, const RankStages& rank) {
  row.Key("rank").Int(rank.rank).Key("host").TextOrNull(rank.host).Key("process_id").Int(rank.process_id);
  row.Key("step_count").Uint(rank.steps.size()).Key("lost_record_count").Uint(rank.dropped_record_count);
  row.Key("ended_in_order").Bool(rank.ended_in_order);
}

void StageRow(JsonRow& row, Stage stage, const StageAccount& account) {
  row.Key("stage").Text(StageName(stage)).Key("frontier_ns").Int(account.frontier_ns);
  row.Key("imbalance_ns").Int(account.imbalance_ns);
  row.Key("rank_ns").StartArray();
  for (const int64_t ns : account.rank_ns) row.Int(ns);
  row.EndArray().Key("leader_ns").StartArray();
  for (const int64_t ns : account.leader_ns) row.Int(ns);
  row.EndArray().Key("cost_ns").StartArray();
  for (const Cost& cost : account.cost) row.Int(cost.ns);
  row.EndArray();
}

void StepRow(JsonRow& row, const Accounting& account, const StepAccount& step) {
  row.Key("step").Int(step.number).Key("ns").Int(step.ns).Key("cost_ns").Int(step.cost_ns);
  row.Key("rank");
  step.cost_ns > 0 ? row.Int(account.ranks[step.rank_idx]) : row.Null();
  row.Key("stage");
  step.cost_ns > 0 ? row.Text(StageName(step.stage)) : row.Null();
}

}  // namespace

bool IsPartial(const JobStages& job) { return job.account.step_count == 0 || job.ledger.Has(model::Severity::kError); }

void WriteStagesJson(const JobStages& job, std::ostream& out) {
  const Accounting& account = job.account;
  WriteDocument(out, "lockstep.stages/1", IsPartial(job), [&](JsonDocument& json) {
    json.StartObject().Key("verdict");
    JsonRow verdict;
    VerdictRow(verdict, job);
    WriteRow(json, verdict);
    json.Key("step_count").Int(account.step_count).Key("left_out_step_count").Int(account.left_out_count);
    json.Key("round_count").Int(account.round_count).Key("total_ns").Int(account.total_ns);
    json.Key("unmet_ns").Int(account.unmet_ns).Key("tail_ns").Int(account.tail_ns);
    json.Key("ranks").StartArray();
    for (const RankStages& rank : job.ranks) {
      JsonRow row;
      RankRow(row, rank);
      WriteRow(json, row);
    }
    json.EndArray().Key("stages").StartArray();
    for (const Stage stage : model::kStages) {
      JsonRow row;
      StageRow(row, stage, account.At(stage));
      WriteRow(json, row);
    }
    json.EndArray().Key("steps").StartArray();
    for (const StepAccount& step : account.steps) {
      JsonRow row;
      StepRow(row, account, step);
      WriteRow(json, row);
    }
    json.EndArray().EndObject();
    WriteLedger(json, job.ledger);
  });
}

}  // namespace lockstep::report
