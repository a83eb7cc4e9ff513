#pragma once

#include <optional>
#include <vector>

#include "analysis/hang/arrival.h"
#include "analysis/hang/device_lag.h"
#include "analysis/hang/diagnosis.h"
#include "analysis/hang/job_view.h"
#include "analysis/hang/program_vote.h"
#include "analysis/hang/rank_condition.h"
#include "analysis/hang/ras_reading.h"
#include "analysis/hang/signature_vote.h"
#include "analysis/hang/wait_graph.h"

namespace lockstep::hang {

/// All that the single readings found, for the rules that decide.
struct Findings {
  const evidence::JobEvidence* job = nullptr;
  JobView view;
  std::vector<RankCondition> conditions;  ///< By rank.
  std::vector<Mismatch> mismatches;
  std::vector<DeviceLag> lags;
  RasReading ras;
  std::vector<ProgramFork> forks;  ///< Computed only if some rank that others wait for waits itself.
  WaitGraph waits;
  ArrivalTable arrival;
  std::optional<int64_t> now_ns;  ///< When the evidence was collected, where that is known.
  bool went_on = false;           ///< The job moved while the records were made (WentOnMeanwhile).
  int64_t patience_ns = 0;        ///< Shorter waits are ordinary for the job.
};

/// An explanation and its order among the others: lower goes first, whatever its confidence.
struct Candidate {
  int order = 0;
  Verdict verdict;
  bool by_ras = false;  ///< It is based on RAS, which therefore cannot support it again.
};

/// Each rule returns its explanations, none or several, with culprits, sites and sentences.
std::vector<Candidate> ExplainMismatches(const Findings& findings);
std::vector<Candidate> ExplainDeviceLag(const Findings& findings);
std::vector<Candidate> ExplainDeaths(const Findings& findings);
std::vector<Candidate> ExplainAbsence(const Findings& findings);
/// What PyTorch reports of ranks: monitored barriers, desync reports, fingerprints that differ, watchdogs.
std::vector<Candidate> ExplainReports(const Findings& findings);
std::vector<Candidate> ExplainCycles(const Findings& findings);
std::vector<Candidate> ExplainProgramForks(const Findings& findings);
std::vector<Candidate> ExplainStacks(const Findings& findings);
/// Ranks that are lost or behind according to NCCL's RAS. Its OK proves nothing.
std::vector<Candidate> ExplainRas(const Findings& findings);
std::vector<Candidate> ExplainCalm(const Findings& findings);
/// The ranks that others wait for now were late in every earlier round: a slow job, recorded without times mid-round.
std::vector<Candidate> ExplainLateRoots(const Findings& findings);

/// The cycle of waits that the rank is in; empty if it is in none.
std::vector<WaitEdge> CycleThrough(const Findings& findings, int32_t rank);

/// Whether some rank waits longer than is ordinary for the job, as far as times are known.
bool IsHung(const Findings& findings);

/// Raises the confidence of a verdict that RAS supports, and lowers that of one that RAS contradicts.
void WeighRas(const Findings& findings, Candidate& candidate);

/// The best first. Never empty.
std::vector<Candidate> Decide(const Findings& findings);

/// Groups, ranks, stacks, evidence and what is missing, for the verdict that was chosen.
void DescribeJob(const Findings& findings, Diagnosis& diagnosis);
void CollectEvidence(const Findings& findings, Diagnosis& diagnosis);
void AddRas(const Findings& findings, Diagnosis& diagnosis);
void FindMissing(const Findings& findings, Diagnosis& diagnosis);

}  // namespace lockstep::hang
