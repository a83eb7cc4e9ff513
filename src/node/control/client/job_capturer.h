#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "node/control/client/job_capture.h"
#include "node/control/client/job_capture_choice.h"
#include "node/control/client/job_links.h"
#include "node/control/client/trace_fetcher.h"

namespace lockstep::control {

/// One call of CaptureJob. What it plans is in job_capture.cc; making captures on the nodes, following them and
/// fetching their traces in job_capturer.cc. One thread.
class JobCapturer {
 public:
  explicit JobCapturer(const JobCaptureRequest& request)
      : request_(request), links_(request), fetcher_(request.nodes, request.connect, request.compress) {}

  Result<JobCaptureResult> Run();

 private:
  std::string FreeWindowName() const;
  Status Choose();
  Status CaptureAtOnce();
  void CaptureSteps();
  Result<CaptureWindow> PlanWindow(int64_t extra_lead_ns);
  void Start(const CaptureWindow& window);
  bool LeadWasRefused() const;
  void Follow(const CaptureWindow& window);
  void AskAll();
  void Update(size_t node_idx, const Capture& capture);
  Status CheckRisks() const;
  void NoteEnds(size_t node_idx, const Capture& capture);
  void Fetched();
  void EndRest(TargetState state, const std::string& reason);
  void CancelAll();
  void RemoveFromNodes();
  void Reset();
  std::vector<PollPhase> Phases(const std::vector<NodeProcesses>& nodes) const;
  void CompareStarts();
  std::vector<size_t> KeptTargets() const;

  bool cancelled() const { return request_.cancelled != nullptr && *request_.cancelled; }
  int64_t CorrectionOf(size_t node_idx) const {
    const auto& clock = result_.nodes[node_idx].clock;
    return clock ? clock->Correction() : 0;
  }
  int64_t ErrorOf(size_t node_idx) const {
    const auto& clock = result_.nodes[node_idx].clock;
    if (!clock) return 0;
    return clock->uncertainty_ns + (clock->Correction() == 0 ? std::abs(clock->offset_ns) : 0);
  }
  bool AllFinal() const {
    return std::all_of(result_.targets.begin(), result_.targets.end(),
                       [](const JobTarget& target) { return IsFinal(target.state); });
  }
  void Show(JobProgress::Phase phase, std::string message = {}) const {
    if (!request_.on_progress) return;
    request_.on_progress({phase, result_.nodes, result_.targets, result_.start_unix_ns, std::move(message)});
  }

  const JobCaptureRequest& request_;
  JobCaptureResult result_;
  JobLinks links_;
  TraceFetcher fetcher_;
  std::vector<int64_t> answered_unix_ns_;  // By node: when it last said something of its capture.
  std::vector<Error> refusals_;            // By nodes, of the last start.
};

}  // namespace lockstep::control
