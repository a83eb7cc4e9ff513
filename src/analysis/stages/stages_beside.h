#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/frontier/job_stages.h"
#include "model/run.h"
#include "model/stages/stage.h"

namespace lockstep::analysis {

/// Spans of time that the traces of a rank cover, [start_ns, end_ns) on its wall clock, in order of time.
using CoveredTimes = std::map<int32_t, std::vector<std::pair<int64_t, int64_t>>>;

/// Some of the job's steps, and what their stages say.
struct StageScope {
  std::string name;  ///< "job", "traced", "not_traced".
  frontier::Accounting account = {};
  frontier::Verdict verdict = {};
  int64_t median_step_ns = 0;
  model::StageTimes usual_ns = {};  ///< By stage: median of the steps, of each the mean of the ranks with a trace.
  int64_t mean_input_ns = 0;        ///< In input, the mean over these ranks and all steps.

  bool has_straggler() const { return verdict.answer == frontier::Answer::kStraggler; }
  /// Of the verdict's straggler; null where it names none.
  std::optional<int32_t> rank() const;
  /// Of what the verdict names; empty where it names none.
  std::string stage() const;
  std::optional<int64_t> first_step() const;
  std::optional<int64_t> last_step() const;
};

/// One stage, over each of these scopes.
struct StageShareRow {
  std::string stage;
  int64_t job_ns = 0;                     ///< The frontier's increment a step.
  std::optional<int64_t> traced_ns = {};  ///< Null: no step is traced.
  std::optional<int64_t> rest_ns = {};    ///< Null: all are.
  std::optional<int32_t> cost_rank = {};  ///< Who costs most in it over the job.
  int64_t cost_ns = 0;                    ///< What that is a step.
};

/// One question that both answer.
struct StageAgreementRow {
  std::string question;             ///< "straggler", "step_time", "exposed_communication", "input", "steps".
  std::optional<bool> agrees = {};  ///< Null: they cannot be compared.
  std::optional<int64_t> stages_ns = {};
  std::optional<int64_t> trace_ns = {};
  std::optional<int32_t> stages_rank = {};
  std::optional<int32_t> trace_rank = {};
  std::string stages_stage = {};
  std::string trace_stage = {};
  std::string sentence = {};  ///< What both say, and why they differ.
};

/// What the stages of a job's steps say, where they lie beside its traces.
struct StagesBeside {
  static constexpr std::string_view kPass = "stages";

  std::shared_ptr<const frontier::JobStages> job = {};  ///< Null: there are none.
  bool has_traces = false;                              ///< Traces other than the stages' own files are there.
  std::vector<StageScope> scopes = {};                  ///< The job's; with traced steps theirs, and those of the rest.
  std::vector<StageShareRow> shares = {};               ///< In the order of model::kStages; those that take time.
  std::vector<StageAgreementRow> agreement = {};        ///< Of stage_agreement.h; empty with no traces beside them.

  /// Null where there is none of that name.
  const StageScope* Scope(std::string_view name) const;
};

/// Pure. A step counts as traced where its middle on some rank lies within what that rank's traces cover.
StagesBeside AssessStages(std::shared_ptr<const frontier::JobStages> job, bool has_traces, const CoveredTimes& covered);

}  // namespace lockstep::analysis
