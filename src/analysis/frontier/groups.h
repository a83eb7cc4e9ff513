#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/frontier/accounting.h"
#include "analysis/frontier/rounds.h"
#include "model/stages/rank_stages.h"

namespace lockstep::frontier {

/// A process group that is not the whole job: ranks that wait for one another apart from the others.
struct Group {
  std::string name;              ///< "dp": as the program or PyTorch calls it.
  std::vector<size_t> members;   ///< Two or more indices into the job's ranks, growing.
  std::vector<int64_t> wait_ns;  ///< By member: its waits for this group, in all of its steps.
  bool is_pairwise = false;      ///< Its ranks never meet all at once, but wait for each other, as a pipeline's do.
  Accounting account;            ///< Of its members, without its steps. Waits for other groups count as waits here.
};

/// Gives the groups of all ranks one numbering, in WaitedFor::group: N is the N-th of the texts that are returned, each
/// as in RankStages::groups. A wait for a group that its rank does not name is one for an unknown peer.
std::vector<std::string> NumberGroups(std::vector<model::RankStages>* ranks);

/// The groups of ranks that NumberGroups() numbered, by first member and name. `parts` are those of all ranks: what
/// ranks cost in their groups is put into them (TakeCosts), and time that no group's meeting ended stays unmet where
/// that is so for half of the ranks.
std::vector<Group> AccountGroups(const SharedSteps& steps, const std::vector<model::RankStages>& ranks,
                                 const std::vector<std::string>& names, std::vector<Accounting>* parts);

}  // namespace lockstep::frontier
