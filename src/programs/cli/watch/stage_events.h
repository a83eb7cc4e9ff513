#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/finding.h"
#include "analysis/frontier/job_stages.h"
#include "analysis/frontier/suspicion.h"
#include "analysis/stages/stages_beside.h"
#include "programs/cli/watch/watch_events.h"

namespace lockstep::cli {

/// What a capture of a few steps of two ranks showed.
struct StageEvidence {
  frontier::Suspicion suspicion = {};
  std::string folder = {};                  ///< With the traces, where these could be kept.
  std::string report = {};                  ///< The page's path; empty: it could not be kept.
  std::optional<int64_t> first_step = {};   ///< Of those that were traced, as the ranks number them; null: not known.
  std::optional<int64_t> last_step = {};    ///< Likewise.
  analysis::StageAgreementRow answer = {};  ///< Who holds the others up, by the stages and by the traces.
  std::optional<analysis::Finding> finding = {};  ///< Of the traces, about the rank; null: none is.
};

/// What `lockstep watch --stages` says besides (lockstep.watch/1, docs/json.md).
class StageEvents {
 public:
  explicit StageEvents(WatchEvents& events) : events_(events) {}

  void Verdict(const frontier::JobStages& job);
  void Capturing(const frontier::Suspicion& suspicion);
  void Evidence(const StageEvidence& evidence);
  void Skipped(const char* reason);          ///< "busy", "budget".
  void Problem(const std::string& problem);  ///< The stages cannot be told, or a capture failed.

  static std::string EvidenceJson(const StageEvidence& evidence);

 private:
  WatchEvents& events_;
};

}  // namespace lockstep::cli
