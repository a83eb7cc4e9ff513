#pragma once

#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "node/control/client/job_capture.h"

namespace lockstep::cli {

/// "rank 3 (n1, pid 4711)", "pid 4711 (n1)".
std::string TargetName(const control::JobTarget& target, const std::vector<control::JobNodeState>& nodes);

/// "8 ranks on 2 nodes", "1 process on n1 (pid 4711)".
std::string WhoText(const std::vector<control::JobTarget>& targets, const std::vector<control::JobNodeState>& nodes);

/// How far one process is, in words: "waits to be asked", "collecting", "here, 1.20 MiB".
std::string StateText(const control::JobTarget& target);

/// How far all are, in one line: "8 ranks: 2 here, 5 writing, 1 collecting", and "starts in 8.2 s" before a common
/// start.
std::string SummaryLine(const control::JobProgress& progress, int64_t now_unix_ns);

/// A line a process up to 16, then the line for all alone.
std::vector<std::string> ProgressLines(const control::JobProgress& progress, int64_t now_unix_ns);

/// Shows a capture's progress on standard error: on a terminal lines that are rewritten, elsewhere a line for each
/// change (beyond 16 processes a line for all, once a second).
class CaptureDisplay {
 public:
  CaptureDisplay(std::ostream& err, bool is_terminal, int width, bool quiet);
  ~CaptureDisplay();
  CaptureDisplay(const CaptureDisplay&) = delete;
  CaptureDisplay& operator=(const CaptureDisplay&) = delete;
  void Update(const control::JobProgress& progress);
  /// Wipes the lines.
  void Finish();

 private:
  void Line(const std::string& text);
  void Redraw(const control::JobProgress& progress);
  void PlainChanges(const control::JobProgress& progress);

  std::ostream& err_;
  const bool is_terminal_;
  const int width_;
  const bool quiet_;
  size_t standing_lines_ = 0;
  std::vector<std::string> told_;  // By target: what was said of it last.
  std::string told_summary_;
  std::optional<int64_t> told_start_;
  std::chrono::steady_clock::time_point next_ = {};
};

}  // namespace lockstep::cli
