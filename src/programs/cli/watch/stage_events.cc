#include "programs/cli/watch/stage_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/json_writer.h"
#include "model/stages/stage.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::cli {
namespace {

using frontier::JobStages;
using frontier::Suspicion;

constexpr size_t kMostReasons = 2;  // Of a finding, in text.

void WriteSuspicion(JsonWriter& json, const Suspicion& suspicion) {
  json.Key("rank").Int(suspicion.rank).Key("peer").Int(suspicion.peer);
  json.Key("stage").TextOrNull(suspicion.stage ? model::StageName(*suspicion.stage) : "");
}

}  // namespace

void StageEvents::Verdict(const JobStages& job) {
  const auto& steps = job.account.steps;
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "stages_verdict").Key("step_count").Int(job.account.step_count);
    json.Key("first_step").Int(steps.front().number).Key("last_step").Int(steps.back().number);
    json.Key("verdict").Raw(report::StagesVerdictJson(job)).EndObject();
    return events_.Line(json.Take());
  }
  events_.Line(
      fmt::format("steps {} to {}: {}", steps.front().number, steps.back().number, report::StagesSentence(job)));
  events_.Line("  " + report::StagesWhy(job));
}

void StageEvents::Capturing(const Suspicion& suspicion) {
  if (events_.json()) {
    JsonWriter json;
    WriteSuspicion(WatchEvents::Start(json, "stages_capture"), suspicion);
    return events_.Line(json.EndObject().Take());
  }
  events_.Line(
      fmt::format("captures a few steps of rank {} and, beside it, of rank {}", suspicion.rank, suspicion.peer));
}

std::string StageEvents::EvidenceJson(const StageEvidence& evidence) {
  const analysis::StageAgreementRow& answer = evidence.answer;
  JsonWriter json;
  WriteSuspicion(WatchEvents::Start(json, "stages_evidence"), evidence.suspicion);
  json.Key("folder").Text(evidence.folder).Key("report").TextOrNull(evidence.report);
  json.Key("first_step").Optional(evidence.first_step).Key("last_step").Optional(evidence.last_step);
  json.Key("agrees");
  answer.agrees ? json.Bool(*answer.agrees) : json.TextOrNull("");
  json.Key("stages_rank").Optional(answer.stages_rank).Key("stages_stage").TextOrNull(answer.stages_stage);
  json.Key("trace_rank").Optional(answer.trace_rank).Key("trace_stage").TextOrNull(answer.trace_stage);
  json.Key("sentence").Text(answer.sentence).Key("finding");
  if (evidence.finding) {
    json.StartObject().Key("id").Text(evidence.finding->id).Key("title").Text(evidence.finding->title);
    json.Key("evidence").StartArray();
    for (const analysis::Evidence& reason : evidence.finding->evidence) json.Text(reason.text);
    json.EndArray().EndObject();
  } else {
    json.TextOrNull("");
  }
  return json.EndObject().Take();
}

void StageEvents::Evidence(const StageEvidence& evidence) {
  if (events_.json()) return events_.Line(EvidenceJson(evidence));
  const std::string steps = evidence.first_step && evidence.last_step
                                ? fmt::format("steps {} to {}", *evidence.first_step, *evidence.last_step)
                                : "a few steps";
  events_.Line(fmt::format("traces of {}: {}", steps, evidence.answer.sentence));
  if (evidence.finding) {
    events_.Line("  " + evidence.finding->title);
    const auto& reasons = evidence.finding->evidence;
    for (size_t i = 0; i < std::min(kMostReasons, reasons.size()); ++i) events_.Line("    " + reasons[i].text);
  }
  events_.Line("  " + (evidence.report.empty() ? "kept in: " + evidence.folder : "report: " + evidence.report));
}

void StageEvents::Skipped(const char* reason) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "stages_capture_skipped").Key("reason").Text(reason).EndObject();
    return events_.Line(json.Take());
  }
  events_.Line(
      fmt::format("no capture of it yet: {}", std::string_view(reason) == "busy"
                                                  ? "another capture of the job is under way"
                                                  : "there were as many within an hour as --evidence-captures allows"));
}

void StageEvents::Problem(const std::string& problem) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "stages_problem").Key("problem").Text(problem).EndObject();
    return events_.Line(json.Take());
  }
  events_.Line("stages of steps: " + problem);
}

}  // namespace lockstep::cli
