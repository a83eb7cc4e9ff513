#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/frontier/accounting.h"
#include "model/stages/stage.h"

namespace lockstep::frontier {

/// Steps that follow each other.
struct Window {
  int64_t first_step = 0;
  int64_t last_step = 0;
  int64_t step_count = 0;
  int64_t ns = 0;                                     ///< Sum of their increments.
  int64_t median_step_ns = 0;                         ///< What one long step does not move.
  model::StageTimes frontier_ns = {};                 ///< Increments by stage; they add up to `ns`.
  model::Stage largest_stage = model::Stage::kOther;  ///< Of the increments.
  std::vector<int64_t> rank_cost_ns = {};             ///< By rank: what it cost in all stages,
  std::vector<model::Stage> rank_stage = {};          ///< and in which it cost most.
  int64_t cost_ns = 0;                                ///< Of the rank and stage that cost most; 0: none did.
  size_t rank_idx = 0;
  model::Stage cost_stage = model::Stage::kOther;
};

/// Steps that took clearly longer than the others.
struct Change {
  Window window;
  int64_t usual_step_ns = 0;  ///< The median step outside of all such.
  double ratio = 0;           ///< By how much of it the window's median step is longer.
  // What makes up half of what they took longer, if anything does: a rank in a stage, or a stage of all ranks.
  std::optional<size_t> rank_idx = {};
  std::optional<model::Stage> stage = {};
};

struct OverTime {
  std::vector<Window> windows;  ///< A sixtieth of the job each, of few steps one a step. They add up to it.
  std::vector<Window> coarse;   ///< The same in tenths.
  std::vector<Change> changes;  ///< In order of steps; at most kMostChanges, those that took the job most.
};

constexpr size_t kMostWindows = 60;
constexpr size_t kMostCoarseWindows = 10;
constexpr size_t kMostChanges = 3;

/// `parts`: of AccountParts. Pure. Steps changed where windows in a row, of five steps or more, take 15 % longer in
/// their median than the others, four times what neighbours differ by, and it is a hundredth of the job's time.
OverTime FollowOverTime(const std::vector<Accounting>& parts);

}  // namespace lockstep::frontier
