#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "node/agent/job_metrics/kept_steps.h"
#include "node/agent/sensors/open_metrics.h"
#include "node/control/api/capture.h"

namespace lockstep::agent {

/// Exemplars of lockstep_step_duration_seconds: of each job with a trace, a step of the time of the newest capture,
/// whose id they carry. It is the median of the steps that the traced ranks began and ended in that time. Thread-safe.
class StepExemplars {
 public:
  /// `captures`: all that there are, newest first.
  std::vector<Exemplar> Of(const std::vector<control::Capture>& captures, const KeptSteps& kept);

 private:
  static std::map<std::string, Exemplar> Find(const control::Capture& capture, const KeptSteps& kept);

  Mutex mutex_;
  /// By capture and job. Kept: the steps that it shows are soon too old to be looked up.
  std::map<std::string, std::map<std::string, Exemplar>> found_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::agent
