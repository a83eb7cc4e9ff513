#include "programs/cli/watch/profiler_events.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/finding.h"
#include "base/json_writer.h"
#include "present/report/format.h"

namespace lockstep::cli {
namespace {

using profile_history::CaptureRecord;
using profile_history::FigureChange;

constexpr size_t kMostFiguresInText = 4;

std::string Shown(const std::string& unit, double value) {
  if (unit == "ns") return report::FormatDuration(std::llround(value));
  if (unit == "bytes") return report::FormatBytes(std::llround(value));
  if (unit == "bytes_per_s") return report::FormatRate(value);
  return report::FormatNumber(value);
}

std::string ChangeText(const FigureChange& change) {
  return fmt::format("{} {} → {} ({}{:.0f} %){}", change.figure, Shown(change.unit, change.before),
                     Shown(change.unit, change.after), change.ratio() < 0 ? "" : "+", 100 * change.ratio(),
                     change.rank ? fmt::format(", rank {}", *change.rank) : "");
}

void WriteChange(JsonWriter& json, const FigureChange& change) {
  json.StartObject().Key("figure").Text(change.figure).Key("unit").Text(change.unit);
  json.Key("before").Raw(fmt::format("{:.6g}", change.before)).Key("after").Raw(fmt::format("{:.6g}", change.after));
  json.Key("ratio").Raw(fmt::format("{:.4f}", change.ratio())).Key("rank").Optional(change.rank);
  json.Key("since_capture").TextOrNull(change.since_capture).Key("since_unix_ns").Int(change.since_unix_ns).EndObject();
}

std::optional<int64_t> StepOf(const CaptureRecord& record) {
  for (const profile_history::Figure& figure : record.figures) {
    if (figure.name == "step") return std::llround(figure.value);
  }
  return std::nullopt;
}

}  // namespace

void ProfilerEvents::Begin(const std::string& folder, int64_t every_ns, uint64_t budget_bytes, size_t past_count,
                           size_t skipped_line_count) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "profile_begin")
        .Key("folder")
        .Text(folder)
        .Key("every_ns")
        .Int(every_ns)
        .Key("budget_bytes")
        .Uint(budget_bytes);
    json.Key("past_capture_count").Uint(past_count).Key("skipped_line_count").Uint(skipped_line_count).EndObject();
    return events_.Line(json.Take());
  }
  events_.Line(fmt::format("captures the job every {}; keeps captures in {}, at most {}",
                           report::FormatDuration(every_ns), folder,
                           report::FormatBytes(static_cast<int64_t>(budget_bytes))));
  if (past_count > 0) events_.Line(fmt::format("{} earlier captures of it are known", past_count));
  if (skipped_line_count > 0) {
    events_.Line(fmt::format("{} lines of profile.jsonl are not records and were left out", skipped_line_count));
  }
}

void ProfilerEvents::Captured(const CaptureRecord& record, bool is_warm_up, const std::string& report) {
  const char* outcome = profile_history::OutcomeName(record.outcome);
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "captured")
        .Key("capture")
        .Text(record.capture)
        .Key("outcome")
        .Text(outcome)
        .Key("reason")
        .TextOrNull(record.reason);
    json.Key("is_warm_up").Bool(is_warm_up).Key("is_counted").Bool(!record.figures.empty());
    json.Key("step_ns").Optional(StepOf(record)).Key("step_count").Int(record.step_count);
    json.Key("took_ns").Int(record.took_ns).Key("finding_count").Uint(record.findings.size());
    json.Key("report").TextOrNull(report).EndObject();
    return events_.Line(json.Take());
  }
  const auto step = StepOf(record);
  events_.Line(fmt::format("capture {}: {}{}{}{}", record.capture, outcome,
                           step ? fmt::format(", step {}", report::FormatDuration(*step)) : "",
                           is_warm_up ? ", left out as warm-up" : "",
                           record.reason.empty() ? "" : ": " + record.reason));
}

void ProfilerEvents::Skipped(const char* reason) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "capture_skipped").Key("reason").Text(reason).EndObject();
    return events_.Line(json.Take());
  }
  const std::string_view why = reason;
  events_.Line(fmt::format("no capture: {}", why == "silent" ? "the job makes no progress"
                                             : why == "busy" ? "another capture of the job is under way"
                                                             : "the previous capture is still under way"));
}

void ProfilerEvents::Regressed(const std::string& capture, const profile_history::Regression& regression,
                               const std::string& report, const std::string& comparison) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "regression")
        .Key("capture")
        .Text(capture)
        .Key("since_capture")
        .TextOrNull(regression.since_capture);
    json.Key("since_unix_ns").Int(regression.since_unix_ns).Key("figures").StartArray();
    for (const FigureChange& change : regression.figures) WriteChange(json, change);
    json.EndArray().Key("ranks").StartArray();
    for (const int32_t rank : regression.ranks) json.Int(rank);
    json.EndArray().Key("finding");
    if (regression.finding) {
      const analysis::Finding& finding = *regression.finding;
      json.StartObject()
          .Key("id")
          .Text(finding.id)
          .Key("severity")
          .Text(analysis::FindingSeverityName(finding.severity));
      json.Key("title").Text(finding.title).Key("ranks").StartArray();
      for (const int32_t rank : finding.ranks) json.Int(rank);
      json.EndArray().Key("gain_ns_per_step").Optional(finding.gain_ns_per_step).EndObject();
    } else {
      json.TextOrNull("");
    }
    json.Key("report").TextOrNull(report).Key("comparison").TextOrNull(comparison).EndObject();
    return events_.Line(json.Take());
  }
  events_.Line(fmt::format("SLOWER since {}: {}{}", WatchEvents::ClockTime(regression.since_unix_ns),
                           ChangeText(regression.figures.front()),
                           regression.ranks.empty() ? "" : "; " + WatchEvents::RanksText(regression.ranks)));
  for (size_t i = 1; i < regression.figures.size() && i < kMostFiguresInText; ++i) {
    events_.Line("  " + ChangeText(regression.figures[i]));
  }
  if (regression.finding) events_.Line("  finding: " + regression.finding->title);
  if (!report.empty()) events_.Line("  report: " + report);
  if (!comparison.empty()) events_.Line("  before and after: " + comparison);
}

void ProfilerEvents::Over(const char* how, const std::string& capture, const FigureChange& change) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "regression_over").Key("capture").Text(capture).Key("how").Text(how).Key("change");
    WriteChange(json, change);
    json.EndObject();
    return events_.Line(json.Take());
  }
  const bool is_back = std::string_view(how) == "recovered";
  events_.Line(
      fmt::format("{}: {}", is_back ? "as before again" : "is accepted as the job's normal level", ChangeText(change)));
}

void ProfilerEvents::Problem(const std::string& problem) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "profile_problem").Key("problem").Text(problem).EndObject();
    return events_.Line(json.Take());
  }
  events_.Line("captures cannot be kept: " + problem);
}

void ProfilerEvents::End(const profile_history::CaptureCounts& counts, uint64_t regression_count,
                         const profile_history::KeptBytes& kept, const std::string& folder) {
  if (events_.json()) {
    JsonWriter json;
    WatchEvents::Start(json, "profile_end")
        .Key("folder")
        .Text(folder)
        .Key("done_count")
        .Uint(counts.done)
        .Key("partial_count")
        .Uint(counts.partial);
    json.Key("failed_count").Uint(counts.failed).Key("skipped_count").Uint(counts.skipped());
    json.Key("regression_count").Uint(regression_count).Key("kept_bytes").Uint(kept.total()).EndObject();
    return events_.Line(json.Take());
  }
  events_.Line(fmt::format("{} captures ({} partial, {} failed, {} left out), {} regression{}; {} kept in {}",
                           counts.done + counts.partial + counts.failed, counts.partial, counts.failed,
                           counts.skipped(), regression_count, regression_count == 1 ? "" : "s",
                           report::FormatBytes(static_cast<int64_t>(kept.total())), folder));
}

}  // namespace lockstep::cli
