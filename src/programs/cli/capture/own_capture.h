#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/jobs/nodes.h"
#include "programs/cli/capture/capture_output.h"

namespace lockstep::cli {

/// A capture that a command makes beside what it is for.
struct OwnCapture {
  control::CaptureSelector selector = {};
  control::CaptureWindow window = {};
  int64_t timeout_ns = 0;
  bool allow_unsafe = false;
  std::string folder = {};  ///< Exists.
  const std::atomic<bool>* cancelled = nullptr;
};

/// Whether somebody captures the job (of any id where `job_id` is empty) already. Nodes that do not answer are left to
/// the capture, which says what is wrong with them.
bool IsCaptured(const jobs::Nodes& nodes, const std::string& job_id);

/// Blocks. Errors: those of CaptureJob.
Result<CaptureReport> TakeCapture(const jobs::Nodes& nodes, const OwnCapture& capture);

/// The files of the traces that are there.
std::vector<std::string> KeptFiles(const CaptureReport& report);

/// Why something is missing; empty: nothing is.
std::string ReasonOf(const control::JobCaptureResult& result);

}  // namespace lockstep::cli
