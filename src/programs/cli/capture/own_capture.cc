#include "programs/cli/capture/own_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "node/control/client/fan_out.h"
#include "node/control/client/job_capture.h"
#include "node/control/client/node_client.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kCapturesAnswerNs = 10'000'000'000;

}  // namespace

bool IsCaptured(const jobs::Nodes& nodes, const std::string& job_id) {
  std::atomic<bool> busy = false;
  control::ForEachNode(
      nodes.endpoints.size(), nodes.parallel, kCapturesAnswerNs,
      [&](size_t i, int64_t left_ns) {
        const auto client = control::NodeClient::Create(nodes.endpoints[i]);
        if (!client) return;
        const auto captures = (*client)->Captures(left_ns);
        if (!captures) return;
        for (const control::Capture& capture : *captures) {
          if (control::IsFinal(capture.state)) continue;
          busy = busy || std::any_of(capture.targets.begin(), capture.targets.end(), [&](const auto& target) {
                   return !control::IsFinal(target.state) && (job_id.empty() || target.process.job_id == job_id);
                 });
        }
      },
      [](size_t) {});
  return busy;
}

Result<CaptureReport> TakeCapture(const jobs::Nodes& nodes, const OwnCapture& capture) {
  CaptureReport report;
  report.folder = capture.folder;
  report.request.nodes = nodes.endpoints;
  report.request.nodes_are_whole_job = nodes.is_whole_job;
  report.request.parallel = nodes.parallel;
  report.request.selector = capture.selector;
  report.request.window = capture.window;
  report.request.timeout_ns = capture.timeout_ns;
  report.request.allow_unsafe = capture.allow_unsafe;
  report.request.folder = capture.folder;
  report.request.cancelled = capture.cancelled;
  ASSIGN_OR_RETURN(report.result, control::CaptureJob(report.request));
  return report;
}

std::vector<std::string> KeptFiles(const CaptureReport& report) {
  std::vector<std::string> files;
  for (const control::JobTarget& target : report.result.targets) {
    if (target.kept()) files.push_back(report.folder + '/' + target.file);
  }
  return files;
}

std::string ReasonOf(const control::JobCaptureResult& result) {
  for (const control::JobNodeState& node : result.nodes) {
    if (!node.problem.empty()) return fmt::format("{}: {}", node.host, node.problem);
  }
  for (const control::JobTarget& target : result.targets) {
    if (!target.kept() && !target.reason.empty()) return target.reason;
    if (!target.fetch_error.empty()) return target.fetch_error;
  }
  return result.missing_ranks.empty() ? result.steps.reason : result.missing_reason;
}

}  // namespace lockstep::cli
