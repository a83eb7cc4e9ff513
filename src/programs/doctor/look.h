#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "node/jobs/evidence_folder.h"
#include "node/jobs/nodes.h"

namespace lockstep::doctor {

/// What one rank uses of its node.
struct RankLoad {
  int32_t rank = 0;
  std::string host;
  std::optional<uint64_t> resident_bytes;
  std::optional<double> busy_cores;  ///< Processor time of all its threads by the time looked at; 1 = one core.
};

/// What one node's devices say.
struct NodeDevices {
  std::string host;
  std::vector<evidence::DeviceState> devices;
};

/// What one look at all ranks of a job gave.
struct JobLook {
  std::optional<hang::Diagnosis> verdict;  ///< As `lockstep hang` has it; unset: no rank could be examined,
  std::string no_verdict;                  ///< and why.
  std::vector<int32_t> moved_ranks;        ///< Issued something between two looks, ascending; empty after one look.
  std::vector<RankLoad> loads;             ///< By rank; of processes that say which rank they are.
  std::vector<NodeDevices> devices;        ///< By host, of nodes on which some rank's state was read.
};

/// Looks at the ranks on `nodes` as `lockstep hang` does, within about `deadline_ns`, 30 s at most. A job that seems
/// stuck is looked at twice: its ranks are not all seen at one moment, and one that goes on is not stuck. What it finds
/// is kept in a private temporary folder for as long as it is judged, and no longer. `names_daemon`: this node's daemon
/// itself is to look.
JobLook LookAtRanks(const jobs::Nodes& nodes, bool names_daemon, int64_t deadline_ns);

/// Ranks that in some group have issued more in `after` than in `before`, ascending.
std::vector<int32_t> MovedRanks(const hang::Diagnosis& before, const hang::Diagnosis& after);

/// The loads of a job's processes, by rank.
std::vector<RankLoad> LoadsOf(const jobs::CollectedJob& job);

/// The devices of the nodes of a job's processes, by host.
std::vector<NodeDevices> DevicesOf(const jobs::CollectedJob& job);

}  // namespace lockstep::doctor
