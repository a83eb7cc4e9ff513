#pragma once

#include <cstdint>
#include <optional>

#include "analysis/frontier/job_stages.h"

namespace lockstep::frontier {

/// Whom a capture of a few steps should trace, beside whom, to support a verdict or to find one.
struct Suspicion {
  int32_t rank = 0;
  int32_t peer = 0;                        ///< Of those that wait for it, the one that takes the usual time.
  std::optional<model::Stage> stage = {};  ///< That the verdict names; null: it is undecided.
  bool stands_out = true;                  ///< False: undecided, and no rank takes longer in any stage.
};

/// Null where a few steps of two ranks would tell nothing more: no rank stands out and the verdict is decided, there
/// are fewer than two ranks or too few steps, or what a rank costs comes so rarely that a capture would miss it.
std::optional<Suspicion> Suspect(const JobStages& job);

}  // namespace lockstep::frontier
