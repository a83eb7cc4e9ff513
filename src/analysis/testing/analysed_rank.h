#pragma once

#include <utility>

#include "analysis/kernel_kind.h"
#include "analysis/rank_context.h"
#include "analysis/testing/trace_builder.h"

namespace lockstep::analysis::testing {

/// A hand-made run with the contexts that a pass is called with, for the rank at `rank_index`. Not movable: contexts
/// point at each other.
struct AnalysedRank {
  explicit AnalysedRank(RunBuilder& builder, AnalysisOptions options = {}, size_t rank_index = 0)
      : run(builder.Build()) {
    shared.run = &run;
    shared.options = std::move(options);
    shared.is_communication = ClassifyCommunication(run);
    context = MakeRankContext(shared, rank_index);
  }
  AnalysedRank(const AnalysedRank&) = delete;
  AnalysedRank& operator=(const AnalysedRank&) = delete;

  model::Run run;
  RunContext shared;
  RankContext context;
};

}  // namespace lockstep::analysis::testing
