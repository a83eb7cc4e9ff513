#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/rank_context.h"
#include "base/result.h"
#include "model/run.h"

namespace lockstep::tensorboard {

struct Options {
  std::string folder;                                   ///< --logdir; made when missing.
  size_t kernel_count = 20;                             ///< Histograms of the kernels with most time, per rank.
  bool force = false;                                   ///< Write beside event files of an earlier export.
  std::vector<std::pair<int64_t, int64_t>> ranks = {};  ///< Closed ranges; empty: all. The job's run has all.
  std::vector<std::pair<int64_t, int64_t>> steps = {};  ///< Closed ranges of step numbers; empty: all.
};

struct Written {
  std::vector<std::string> files;  ///< One per folder: job, then ranks in order.
  uint64_t scalar_count = 0;
  uint64_t histogram_count = 0;
};

/// Writes a run for TensorBoard: a folder `job`, and `rankN` for every rank (windows after the first: `rankN_windowW`,
/// `job_windowW`), each with one new event file. What is in them: docs/export.md#tensorboard; times in ms, bandwidth in
/// GB/s, memory in bytes, shares 0..1; a value that was not measured is not written. Wall times are the aligned clock.
/// `result` has every pass and was made with `options_of_analysis`.
/// Errors: kInvalidArgument when no such rank or step is there; kFailedPrecondition when a folder has event files
/// already, unless `force`: curves of two runs under one name are drawn as one; kIo, kPermissionDenied. Memory: the
/// events of one folder.
Result<Written> WriteTensorBoard(const model::Run& run, const analysis::AnalysisResult& result,
                                 const analysis::AnalysisOptions& options_of_analysis, const Options& options);

}  // namespace lockstep::tensorboard
