#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::model {

/// A range's name that says the number of a step.
struct NumberedStep {
  std::string_view prefix;  ///< What stands before the number: "ProfilerStep#", "step ", "iteration ".
  int64_t number = 0;
};

/// "ProfilerStep#3", as torch.profiler names its steps.
std::optional<NumberedStep> ReadProfilerStep(std::string_view name);

/// "step 3", "Step_3", "iteration 3", "train_step#3" and their like, as people name theirs (NVTX ranges above all).
std::optional<NumberedStep> ReadNumberedStep(std::string_view name);

}  // namespace lockstep::model
