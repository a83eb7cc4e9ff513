#pragma once

#include <string>
#include <utility>

#include "analysis/comparison/compare.h"
#include "base/result.h"
#include "present/report/report.h"
#include "programs/python/loaded_run.h"

namespace lockstep::python {

/// Two runs held against each other. Constant, so thread-safe; the runs' events are not kept.
class ComparedRuns {
 public:
  /// The runs are called by their labels. Both need every pass.
  /// Errors: kFailedPrecondition when one was loaded with only some passes; kInvalidArgument when `steps` names steps
  /// that one of them has not.
  static Result<ComparedRuns> Compare(LoadedRun* a, std::string label_a, LoadedRun* b, std::string label_b,
                                      const comparison::ProfileOptions& steps,
                                      const comparison::CompareOptions& options);

  /// What `lockstep compare --json` prints.
  std::string Json() const;
  /// What `lockstep compare` prints.
  std::string Text(const report::TextOptions& options) const;

 private:
  explicit ComparedRuns(comparison::Comparison comparison) : comparison_(std::move(comparison)) {}

  comparison::Comparison comparison_;
};

}  // namespace lockstep::python
