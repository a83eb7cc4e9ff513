#include "programs/python/compared_runs.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "analysis/analysis_result.h"
#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "present/report/comparison_report.h"

namespace lockstep::python {
namespace {

Result<comparison::RunProfile> ProfileOf(LoadedRun* run, std::string label, const comparison::ProfileOptions& steps) {
  const analysis::AnalysisResult& result = run->Analysis();
  for (const analysis::PassInfo& pass : analysis::Passes()) {
    if (pass.kind == analysis::PassKind::kUsual && !result.Has(pass.name)) {
      return Error{.code = ErrorCode::kFailedPrecondition,
                   .message = fmt::format("to be compared a run needs every pass, and '{}' was not run; leave passes= "
                                          "out of load()",
                                          pass.name),
                   .file = label};
    }
  }
  comparison::RunProfile profile =
      comparison::MakeRunProfile(std::move(label), run->Analysed(), result, run->options().analysis, steps);
  profile.partial = run->Partial();
  if (profile.steps.empty() && steps.first_step) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("has no step from {} to {}; see run.steps()", *steps.first_step,
                                        steps.last_step.value_or(*steps.first_step)),
                 .file = profile.label};
  }
  return profile;
}

}  // namespace

Result<ComparedRuns> ComparedRuns::Compare(LoadedRun* a, std::string label_a, LoadedRun* b, std::string label_b,
                                           const comparison::ProfileOptions& steps,
                                           const comparison::CompareOptions& options) {
  ASSIGN_OR_RETURN(comparison::RunProfile first, ProfileOf(a, std::move(label_a), steps));
  ASSIGN_OR_RETURN(comparison::RunProfile second, ProfileOf(b, std::move(label_b), steps));
  return ComparedRuns(comparison::Compare(std::move(first), std::move(second), options));
}

std::string ComparedRuns::Json() const {
  std::ostringstream out;
  report::WriteComparisonJson(comparison_, comparison_.a.partial || comparison_.b.partial, out);
  return std::move(out).str();
}

std::string ComparedRuns::Text(const report::TextOptions& options) const {
  std::ostringstream out;
  report::WriteComparisonText(comparison_, options, out);
  return std::move(out).str();
}

}  // namespace lockstep::python
