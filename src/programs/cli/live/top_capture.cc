#include "programs/cli/live/top_capture.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <system_error>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/jobs/evidence_folder.h"
#include "node/live/job_view.h"
#include "programs/cli/capture/own_capture.h"

namespace lockstep::cli {

std::vector<std::string> CaptureTarget(const jobs::Nodes& nodes, const top::RankTarget& target, bool whole_job) {
  constexpr int64_t kTimeoutNs = 120 * kSecondNs;
  static const std::atomic<bool> never = false;
  OwnCapture capture{.timeout_ns = kTimeoutNs, .cancelled = &never};
  capture.window.duration_ns = kSecondNs;
  live::SelectJob(target.job_id, &capture.selector.job_id, &capture.selector.pids);
  if (!whole_job) {
    const auto rank = live::RankNumber(target.rank);
    if (!rank) return {"it has no rank: lockstep capture --pid traces it"};
    capture.selector.ranks = {{static_cast<int32_t>(*rank), static_cast<int32_t>(*rank)}};
  }
  capture.folder = jobs::FreshFolderName(".", "capture", capture.selector.job_id, UnixNow());
  std::error_code error;
  std::filesystem::create_directories(capture.folder, error);
  if (error) return {fmt::format("{}: cannot be made: {}", capture.folder, error.message())};
  const Result<CaptureReport> report = TakeCapture(nodes, capture);
  const std::string reason = report ? ReasonOf(report->result) : report.error().ToString();
  const size_t count = report ? KeptFiles(*report).size() : 0;
  if (count == 0) {
    std::filesystem::remove(capture.folder, error);  // Unless something is in it.
    return {fmt::format("no trace: {}", reason)};
  }
  std::vector<std::string> lines = {fmt::format("{} trace{} in {}", count, count == 1 ? "" : "s", capture.folder),
                                    fmt::format("lockstep analyze {}", capture.folder)};
  if (!reason.empty()) lines.push_back("some are missing: " + reason);
  return lines;
}

}  // namespace lockstep::cli
