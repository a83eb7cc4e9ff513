#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/rank_context.h"
#include "present/page/page_blocks.h"

namespace lockstep::page {

/// What every block of an analysed run is made from.
struct PageModel {
  PageInput input;
  PageLimits limits;
  analysis::RunContext shared;
  int64_t origin_ns = 0;  ///< First start of any event on the common clock: the page's zero.
  int64_t span_ns = 0;    ///< To the last end of any event of any window.
  /// What the instants of each rank count from: origin_ns, but a rank whose clock cannot be aligned with the others
  /// (its file lost the base time, and it shares no collective) begins at the page's zero.
  std::vector<int64_t> rank_origin_ns;

  const model::Run& run() const { return input.run; }
  const analysis::AnalysisResult& result() const { return input.result; }
};

PageModel MakePageModel(const PageInput& input, const PageLimits& limits);

/// What to call the job: the folder or file that all of its traces come from.
std::string JobName(const model::Run& run);

}  // namespace lockstep::page
