#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "node/jobs/status_view.h"
#include "programs/doctor/check.h"
#include "programs/doctor/look.h"
#include "programs/doctor/network.h"

namespace lockstep::doctor {

/// What the checklist of a job, or of a cluster, is made of.
struct JobFacts {
  const jobs::StatusView& view;                 ///< Every node, whether it answered or not.
  std::vector<size_t> tested_nodes;             ///< Places in view.nodes; those of `pairs` are places in this.
  std::vector<PairResult> pairs;                ///< Empty: the network was not tested.
  std::optional<Check> collectives = {};        ///< As MPI found them; unset: not asked for.
  std::optional<hang::Diagnosis> verdict = {};  ///< Of the job's live evidence, where it was collected;
  std::string no_verdict = {};                  ///< else why not.
  std::vector<int32_t> moved_ranks = {};        ///< As JobLook has them.
  std::vector<NodeDevices> devices = {};        ///< By host; empty: no host could be examined.
  std::vector<RankLoad> loads = {};             ///< By rank; empty: no rank could be examined.
};

/// All of them, in the order in which they are worth reading. Pure.
std::vector<Check> CheckJob(const JobFacts& facts);

// Its parts.
void CheckNodes(const JobFacts& facts, std::vector<Check>* checks);
void CheckRanks(const JobFacts& facts, std::vector<Check>* checks);
void CheckNetwork(const JobFacts& facts, std::vector<Check>* checks);  // job_network.cc
void CheckVersions(const JobFacts& facts, std::vector<Check>* checks);
void CheckEnvironment(const JobFacts& facts, std::vector<Check>* checks);
void CheckGpus(const JobFacts& facts, std::vector<Check>* checks);  // job_devices.cc
void CheckClocks(const JobFacts& facts, std::vector<Check>* checks);
void CheckPtrace(const JobFacts& facts, std::vector<Check>* checks);
void CheckProgress(const JobFacts& facts, std::vector<Check>* checks);  // job_progress.cc
/// Whether some rank uses far more memory or processor time than the others.
void CheckBalance(const JobFacts& facts, std::vector<Check>* checks);

}  // namespace lockstep::doctor
