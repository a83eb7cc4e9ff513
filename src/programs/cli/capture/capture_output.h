#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/client/job_capture.h"
#include "present/report/json_stream.h"

namespace lockstep::cli {

/// One of a series of captures, as it is told.
struct CaptureReport {
  std::string folder;
  control::JobCaptureRequest request;
  control::JobCaptureResult result;
  std::vector<std::string> damaged;  ///< By target: what reading its trace found wrong; empty: nothing.
};

/// Whether something that was asked for is missing.
bool IsPartial(const CaptureReport& report);

/// The capture in a few lines: how many traces of whom, where, how far apart they began or which steps they hold, and
/// what is missing and why.
void WriteCaptureText(const CaptureReport& report, std::ostream& out);

/// The document lockstep.capture/1 (docs/json.md#capture).
void WriteCaptureJson(const std::vector<CaptureReport>& reports, std::ostream& out);

/// The same of one capture, in its folder beside the traces. Errors: kIo.
Status KeepCaptureJson(const CaptureReport& report);

}  // namespace lockstep::cli
