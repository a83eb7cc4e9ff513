#include "programs/cli/capture/capture_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nanoseconds.h"
#include "base/output_file.h"
#include "base/signal_name.h"
#include "node/control/client/job_capture_choice.h"
#include "present/report/format.h"
#include "present/report/json_stream.h"
#include "present/report/utf8.h"
#include "programs/cli/capture/capture_display.h"

namespace lockstep::cli {
namespace {

using control::CaptureWindow;
using control::JobCaptureResult;
using control::JobNodeState;
using control::JobTarget;
using control::StepAgreement;
using report::FormatDuration;
using report::Printable;

bool IsDamaged(const CaptureReport& report, size_t target) {
  return target < report.damaged.size() && !report.damaged[target].empty();
}

std::string StepText(const CaptureReport& report) {
  const JobCaptureResult& result = report.result;
  const StepAgreement& steps = result.steps;
  if (!steps.step_ns) return fmt::format("  steps: {}\n", steps.reason);
  std::string text =
      fmt::format("  {} iterations of {}", report.request.window.iterations, FormatDuration(*steps.step_ns));
  const std::string tries =
      result.attempt_count > 1 ? fmt::format(", after {} attempts", result.attempt_count) : std::string();
  switch (steps.verdict) {
    case StepAgreement::Verdict::kSame:
      text += fmt::format("; the same steps on all ranks{}: starts differ by {}, multiples of {} are {} apart", tries,
                          FormatDuration(*steps.spread_ns), result.roundup,
                          FormatDuration(*steps.step_ns * result.roundup));
      break;
    case StepAgreement::Verdict::kApart:
      text += fmt::format("; NOT the same steps on all ranks{}: starts differ by {}; try a larger --roundup than {}{}",
                          tries, FormatDuration(*steps.spread_ns), result.roundup,
                          steps.reason.empty() ? "" : " (" + steps.reason + ")");
      break;
    case StepAgreement::Verdict::kUnknown:
      if (result.targets.size() > 1) text += "; whether all ranks traced the same steps is not known: " + steps.reason;
      break;
  }
  return text + "\n";
}

void WriteNode(const JobNodeState& node, report::JsonRow& row) {
  row.StartObject().Key("host").Text(node.host).Key("problem").TextOrNull(node.problem);
  row.Key("clock_offset_ns");
  if (node.clock) {
    row.Int(node.clock->offset_ns).Key("clock_uncertainty_ns").Int(node.clock->uncertainty_ns);
  } else {
    row.Null().Key("clock_uncertainty_ns").Null();
  }
  row.Key("exchange_ns").Int(node.exchange_ns).Key("process_count").Uint(node.process_count);
  row.Key("capture_id").TextOrNull(node.capture_id).EndObject();
}

void WriteTarget(const JobTarget& target, const JobCaptureResult& result, const std::string& damage,
                 report::JsonRow& row) {
  const control::Process& process = target.process;
  row.StartObject().Key("rank").Optional(process.rank).Key("host").Text(result.nodes[target.node_idx].host);
  row.Key("pid").Int(process.pid).Key("uid").Uint(process.uid).Key("user").TextOrNull(process.user);
  row.Key("local_rank").Optional(process.local_rank);
  row.Key("job_kind").Text(control::JobKindName(process.job_kind)).Key("job_id").TextOrNull(process.job_id);
  row.Key("command").TextOrNull(process.command).Key("device").TextOrNull(process.device);
  row.Key("torch_version").TextOrNull(process.torch_version);
  row.Key("state").Text(control::TargetStateName(target.state)).Key("reason").TextOrNull(target.reason);
  row.Key("file").TextOrNull(target.file).Key("file_bytes");
  if (target.kept()) {
    row.Uint(target.file_bytes);
  } else {
    row.Null();
  }
  row.Key("damage").TextOrNull(damage);
  row.Key("trace_bytes");
  if (target.state == control::TargetState::kDone) {
    row.Uint(target.trace_bytes);
  } else {
    row.Null();
  }
  row.Key("delivered_unix_ns").Optional(target.delivered_unix_ns);
  row.Key("finished_unix_ns").Optional(target.finished_unix_ns);
  row.Key("end");
  if (target.end) {
    row.StartObject().Key("unix_ns").Int(target.end->unix_ns).Key("signal").Optional(target.end->signal);
    row.Key("signal_name").TextOrNull(target.end->signal ? SignalName(*target.end->signal) : "");
    row.Key("exit_status").Optional(target.end->exit_status).EndObject();
  } else {
    row.Null();
  }
  row.Key("window_start_unix_ns").Optional(target.facts.start_unix_ns);
  row.Key("window_end_unix_ns").Optional(target.facts.end_unix_ns);
  row.Key("optimizer_step_count");
  if (target.kept()) {
    row.Uint(target.facts.optimizer_step_count);
  } else {
    row.Null();
  }
  row.EndObject();
}

void WriteAsked(const control::JobCaptureRequest& request, report::JsonRow& row) {
  const CaptureWindow& window = request.window;
  const bool steps = window.mode == CaptureWindow::Mode::kIterations;
  row.Key("mode").Text(steps ? "iterations" : "duration");
  row.Key("duration_ns").Optional(steps ? std::nullopt : std::optional<int64_t>(window.duration_ns));
  row.Key("iterations").Optional(steps ? std::optional<int64_t>(window.iterations) : std::nullopt);
  row.Key("start_iteration").Optional(window.start_iteration).Key("warmup_ns").Optional(window.warmup_ns);
  const control::CaptureOptions& options = request.options;
  row.Key("record_shapes").Bool(options.record_shapes).Key("memory").Bool(options.memory);
  row.Key("stacks").Bool(options.stacks).Key("flops").Bool(options.flops).Key("modules").Bool(options.modules);
  row.Key("activities").List(options.activities);
}

void WriteCapture(const CaptureReport& report, report::JsonRow& row) {
  const JobCaptureResult& result = report.result;
  const bool steps = report.request.window.mode == CaptureWindow::Mode::kIterations;
  row.StartObject().Key("folder").Text(report.folder).Key("window").Text(result.window_name);
  row.Key("partial").Bool(IsPartial(report)).Key("cancelled").Bool(result.cancelled);
  WriteAsked(report.request, row);
  row.Key("asked_unix_ns").Int(result.asked_unix_ns).Key("finished_unix_ns").Int(result.finished_unix_ns);
  row.Key("least_lead_ns").Optional(steps ? std::nullopt : std::optional<int64_t>(result.lead.least_ns));
  row.Key("start_unix_ns").Optional(result.start_unix_ns).Key("start_spread_ns").Optional(result.start_spread_ns);
  row.Key("clock_error_ns").Int(result.clock_error_ns).Key("fetch_spread_ns").Optional(result.fetch_spread_ns);
  row.Key("roundup").Optional(steps ? std::optional<int64_t>(result.roundup) : std::nullopt);
  row.Key("attempt_count").Int(result.attempt_count).Key("steps");
  if (steps) {
    row.StartObject().Key("verdict").Text(control::VerdictName(result.steps.verdict));
    row.Key("step_ns").Optional(result.steps.step_ns).Key("spread_ns").Optional(result.steps.spread_ns);
    row.Key("reason").TextOrNull(result.steps.reason).EndObject();
  } else {
    row.Null();
  }
  row.Key("world_size").Optional(result.world_size).Key("missing_ranks").List(result.missing_ranks);
  row.Key("missing_reason").TextOrNull(result.missing_reason);
  row.Key("other_user_process_count").Uint(result.other_user_count);
  row.Key("nodes").StartArray();
  for (const JobNodeState& node : result.nodes) WriteNode(node, row);
  row.EndArray().Key("processes").StartArray();
  for (size_t i = 0; i < result.targets.size(); ++i) {
    WriteTarget(result.targets[i], result, IsDamaged(report, i) ? report.damaged[i] : "", row);
  }
  row.EndArray().EndObject();
}

}  // namespace

bool IsPartial(const CaptureReport& report) {
  return report.result.partial() || std::any_of(report.damaged.begin(), report.damaged.end(),
                                                [](const std::string& damage) { return !damage.empty(); });
}

void WriteCaptureText(const CaptureReport& report, std::ostream& out) {
  const JobCaptureResult& result = report.result;
  uint64_t bytes = 0;
  for (const JobTarget& target : result.targets) bytes += target.file_bytes;
  out << fmt::format("{} trace{} of {} in {} ({})\n", result.kept_count(), result.kept_count() == 1 ? "" : "s",
                     WhoText(result.targets, result.nodes), Printable(report.folder),
                     report::FormatBytes(static_cast<int64_t>(bytes)));
  if (report.request.window.mode == CaptureWindow::Mode::kIterations && result.kept_count() > 0) {
    out << StepText(report);
  } else if (result.start_spread_ns) {
    out << fmt::format("  began within {} of each other", FormatDuration(*result.start_spread_ns));
    if (result.clock_error_ns > kMillisecondNs)
      out << fmt::format(" (the nodes' clocks are known to {})", FormatDuration(result.clock_error_ns));
    out << (result.start_unix_ns ? "\n" : "; each as it asked for work\n");
  }
  for (const JobNodeState& node : result.nodes) {
    if (!node.problem.empty()) out << fmt::format("  node {}: {}\n", Printable(node.host), Printable(node.problem));
  }
  for (size_t i = 0; i < result.targets.size(); ++i) {
    const JobTarget& target = result.targets[i];
    if (IsDamaged(report, i)) {
      out << fmt::format("  {}: its trace is damaged: {}\n", TargetName(target, result.nodes),
                         Printable(report.damaged[i]));
    } else if (!target.kept() || !target.reason.empty()) {
      out << fmt::format("  {}: {}\n", TargetName(target, result.nodes), StateText(target));
    }
  }
  if (!result.missing_ranks.empty()) {
    out << fmt::format("  missing of {} ranks: {}; {}\n", result.world_size.value_or(0),
                       control::RankList(result.missing_ranks), result.missing_reason);
  }
  if (result.other_user_count > 0) {
    out << fmt::format("  {} process{} of other users left out\n", result.other_user_count,
                       result.other_user_count == 1 ? "" : "es");
  }
  if (result.cancelled) {
    out << fmt::format("  cancelled: {}\n",
                       result.kept_count() == 0 ? "nothing was kept" : "what had come by then was kept");
  }
}

void WriteCaptureJson(const std::vector<CaptureReport>& reports, std::ostream& out) {
  report::WriteDocument(
      out, "lockstep.capture/1",
      std::any_of(reports.begin(), reports.end(), [](const auto& report) { return IsPartial(report); }),
      [&](JsonDocument& json) {
        report::JsonRow row;
        row.Key("captures").StartArray();
        for (const CaptureReport& report : reports) WriteCapture(report, row);
        row.EndArray();
        report::WriteRow(json, row);
      });
}

Status KeepCaptureJson(const CaptureReport& report) {
  return WriteOutputFile(fmt::format("{}/lockstep-capture-{}.json", report.folder, report.result.window_name),
                         [&](std::ostream& out) { WriteCaptureJson({report}, out); });
}

}  // namespace lockstep::cli
