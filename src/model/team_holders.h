#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/team.h"
#include "model/event_holders.h"
#include "model/run.h"

namespace lockstep::model {

/// What one process holds of a run: as many ranks as the run has, of which only some have a trace; all of its names.
struct HeldRun {
  Run run;
  std::vector<size_t> rank_indices = {};  ///< Those that are held here, ascending.
};

/// The runs of which a process holds something, by the number that the root gave them.
using HeldRuns = std::map<uint32_t, HeldRun>;

/// The question that Map asks.
struct MapRequest {
  uint32_t run = 0;
  std::string pass;
  std::string context;
  std::string args;
  std::vector<size_t> rank_indices;
};
inline constexpr const char* kMapQuestion = "map";
/// Rank index and bytes, of the ranks asked for that the process holds.
using MapAnswer = std::vector<std::pair<size_t, std::string>>;

/// At the root: the team's processes as holders of run `run`. They let the run go when this is destroyed.
/// `team` outlives it, and its processes answer kMapQuestion (analysis/rank_map.h) and what HandleRelease registers.
std::unique_ptr<EventHolders> MakeTeamHolders(Team* team, uint32_t run);

/// Lets processes forget a run when the root does.
void HandleRelease(Team* team, HeldRuns* runs);

}  // namespace lockstep::model
