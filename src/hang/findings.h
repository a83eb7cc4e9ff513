#pragma once

#include <optional>
#include <vector>

#include "hang/arrival.h"
#include "hang/device_lag.h"
#include "hang/diagnosis.h"
#include "hang/job_view.h"
#include "hang/program_vote.h"
#include "hang/rank_condition.h"
#include "hang/ras_reading.h"
#include "hang/signature_vote.h"
#include "hang/wait_graph.h"

namespace lockstep::hang {

/// All that the single readings found, for the rules that decide.
struct Findings {
  const evidence::JobEvidence* job = nullptr;
  JobView view;
  std::vector<RankCondition> conditions;  ///< By rank.
  std::vector<Mismatch> mismatches;
  std::vector<DeviceLag> lags;
  RasReading ras;
  std::vector<ProgramFork> forks;  ///< Only looked for where somebody is awaited who waits itself.
  WaitGraph waits;
  ArrivalTable arrival;
  std::optional<int64_t> now_ns;  ///< When the evidence was collected, where that is known.
  bool went_on = false;           ///< The job moved while the records were made (WentOnMeanwhile).
  int64_t patience_ns = 0;        ///< A wait shorter than this is a job's ordinary course.
};

/// An explanation and where it stands among the others: lower goes first, whatever its confidence.
struct Candidate {
  int order = 0;
  Verdict verdict;
  bool by_ras = false;  ///< RAS is what it rests on, and cannot support it once more.
};

/// Each gives what it can say, none or several. Culprits and sites filled, sentences written.
std::vector<Candidate> ExplainMismatches(const Findings& findings);
std::vector<Candidate> ExplainDeviceLag(const Findings& findings);
std::vector<Candidate> ExplainDeaths(const Findings& findings);
std::vector<Candidate> ExplainAbsence(const Findings& findings);
/// What PyTorch itself says of ranks: monitored barriers, desync reports, fingerprints that differ, watchdogs.
std::vector<Candidate> ExplainReports(const Findings& findings);
std::vector<Candidate> ExplainCycles(const Findings& findings);
std::vector<Candidate> ExplainProgramForks(const Findings& findings);
std::vector<Candidate> ExplainStacks(const Findings& findings);
/// Ranks that NCCL's RAS has lost, or has behind. Its OK explains nothing.
std::vector<Candidate> ExplainRas(const Findings& findings);
std::vector<Candidate> ExplainCalm(const Findings& findings);
/// Who is awaited now was late in every round before: records without a time show a slow job in the middle of a round.
std::vector<Candidate> ExplainLateRoots(const Findings& findings);

/// The circle of waits that the rank is in; empty where it is in none.
std::vector<WaitEdge> CycleThrough(const Findings& findings, int32_t rank);

/// Whether somebody waits longer than the job's ordinary course, as far as times are known.
bool IsHung(const Findings& findings);

/// Makes a verdict surer that RAS supports, and one less sure that it speaks against.
void WeighRas(const Findings& findings, Candidate& candidate);

/// The best first. Never empty.
std::vector<Candidate> Decide(const Findings& findings);

/// Groups, ranks, stacks, evidence and what is missing, for the verdict that was chosen.
void DescribeJob(const Findings& findings, Diagnosis& diagnosis);
void CollectEvidence(const Findings& findings, Diagnosis& diagnosis);
void AddRas(const Findings& findings, Diagnosis& diagnosis);
void FindMissing(const Findings& findings, Diagnosis& diagnosis);

}  // namespace lockstep::hang
