#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/evidence/nccl_job.h"
#include "model/evidence/nccl_state.h"

namespace lockstep::ingest {

/// "0-3, 7" of ascending numbers, at most twelve parts.
std::string RankRanges(const std::vector<int32_t>& ranks);

/// Errors first, then warnings.
int SeverityOrder(const std::string& severity);

/// The findings of the rules, with helpers that name processes.
class ProblemList {
 public:
  explicit ProblemList(const evidence::NcclJob& job) : job_(job) {}

  const evidence::NcclJob& job() const { return job_; }

  /// Adds a finding of these processes. `text` is whole sentences; who they are is added by the caller (Who).
  evidence::NcclLogFinding& Add(const char* kind, const char* severity, const std::vector<uint32_t>& processes,
                                evidence::NcclPlace place, std::string text, std::string remedy);

  /// "rank 3", "ranks 0-7, 12", or "node-a:4711, ..." where ranks are unknown.
  std::string Who(const std::vector<uint32_t>& processes) const;
  /// Hosts of these processes, "node-a, node-b and 3 more".
  std::string Hosts(const std::vector<uint32_t>& processes) const;

  /// Sorts: the worst first. Call once.
  std::vector<evidence::NcclLogFinding> Take();

 private:
  const evidence::NcclJob& job_;
  std::vector<evidence::NcclLogFinding> findings_;
};

// problems_agreement.cc: what should be equal between ranks, and is not.
void FindVersionMismatch(ProblemList& list);
void FindNetworkProblems(ProblemList& list);
void FindEnvironmentMismatch(ProblemList& list);
void FindGpuDirectProblems(ProblemList& list);
void FindChannelMismatch(ProblemList& list);
void FindDuplicateDevices(ProblemList& list);
void FindSlowTransports(ProblemList& list);

// problems_progress.cc: how far ranks came.
void FindIncompleteInit(ProblemList& list);
void FindSlowInit(ProblemList& list);
void FindOperationMismatch(ProblemList& list);

// problems_errors.cc
void FindErrors(ProblemList& list);

}  // namespace lockstep::ingest
