#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analysis/rank_context.h"
#include "node/control/client/job_capture.h"
#include "present/live_site/action_desk.h"
#include "present/live_site/action_request.h"

namespace lockstep::live_site {

/// How captures of a page are made.
struct CaptureSetup {
  std::vector<control::Endpoint> nodes;
  bool nodes_are_whole_job = false;
  size_t parallel = control::kDefaultParallel;
  std::string parent;  ///< Traces come to folders in this one.
  analysis::AnalysisOptions analysis;
  /// Writes what was captured beside the traces.
  std::function<Status(const control::JobCaptureRequest&, const control::JobCaptureResult&)> keep_record = {};
  /// Tests put their own here.
  std::function<Result<control::JobCaptureResult>(const control::JobCaptureRequest&)> capture = control::CaptureJob;
};

/// An action's work: captures as `lockstep capture` does, reads and analyses what came, and has its report page.
/// `setup` is borrowed for the life of the desk.
Action CaptureAction(const CaptureWish& wish);
ActionDesk::Work CaptureWork(const CaptureSetup& setup, CaptureWish wish);

}  // namespace lockstep::live_site
