#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/run.h"

namespace lockstep::model {

/// One training or inference iteration of one rank, as the CPU annotated it.
struct Step {
  int64_t number = 0;    ///< N of "ProfilerStep#N"; for other annotations the running index from 0.
  int64_t start_ns = 0;  ///< Trace clock.
  int64_t end_ns = 0;
};

/// Steps of a rank in order of start: from "ProfilerStep#N" ranges (every dialect: user_annotation, cpu_op, old
/// "Operator"), or, when `step_name` is not empty, from CPU annotations whose name is `step_name` or begins with it
/// followed by a non-letter. None found: empty. Cost: O(names + events of operator lanes).
std::vector<Step> FindSteps(const RankTrace& rank, const NameTable& names, const std::string& step_name);

}  // namespace lockstep::model
