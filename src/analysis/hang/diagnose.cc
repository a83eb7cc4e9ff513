#include <algorithm>
#include <thread>

#include "analysis/hang/diagnosis.h"
#include "analysis/hang/findings.h"
#include "analysis/hang/record_age.h"
#include "base/nanoseconds.h"

namespace lockstep::hang {
namespace {

constexpr int64_t kLeastPatienceNs = kSecondNs;
constexpr int64_t kPatienceWithoutHistoryNs = 3'000'000'000;

std::optional<int64_t> CollectedAt(const evidence::JobEvidence& job) {
  if (job.collected_unix_ns) {
    return std::max<int64_t>(*job.collected_unix_ns, 0);
  }
  std::optional<int64_t> latest;
  for (const evidence::RankEvidence& rank : job.ranks) {
    if (rank.collected_unix_ns) {
      latest = std::max(latest.value_or(0), *rank.collected_unix_ns);  // Below 0 is nonsense of a file.
    }
  }
  return latest;
}

/// Whether some rank that others wait for has an open operation of its own: it left out the call that they wait in and
/// continued, or it waits in a circle with them.
bool SomebodyWentOn(const WaitGraph& waits) {
  for (size_t rank = 0; rank < waits.awaited_by.size(); ++rank) {
    if (waits.awaited_by[rank] > 0 && waits.has_open[rank] != 0) return true;
  }
  return false;
}

}  // namespace

Diagnosis Diagnose(const evidence::JobEvidence& job, const DiagnoseOptions& options) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const unsigned threads = options.thread_count != 0 ? options.thread_count : cores;
  Findings findings;
  findings.job = &job;
  findings.view = MakeJobView(job, threads);
  findings.conditions = ReadConditions(findings.view);
  findings.mismatches = VoteOnSignatures(findings.view);
  findings.waits = MakeWaitGraph(findings.view, findings.conditions);
  findings.lags = FindDeviceLag(findings.view);
  if (SomebodyWentOn(findings.waits)) {
    findings.forks = VoteOnProgram(findings.view);
  }
  findings.ras = ReadRas(findings.view);
  findings.arrival = MeasureArrival(findings.view);
  findings.now_ns = CollectedAt(job);
  findings.went_on = WentOnMeanwhile(findings.view, findings.conditions);
  findings.patience_ns = findings.arrival.longest_gap_ns > 0
                             ? std::max(kLeastPatienceNs, 3 * findings.arrival.longest_gap_ns)
                             : kPatienceWithoutHistoryNs;

  Diagnosis diagnosis;
  std::vector<Candidate> candidates = Decide(findings);
  WeighRas(findings, candidates.front());
  diagnosis.verdict = std::move(candidates.front().verdict);
  for (size_t i = 1; i < candidates.size() && diagnosis.context.size() < 8; ++i) {
    diagnosis.context.push_back(std::move(candidates[i].verdict));
  }
  if (job.world_size || !findings.view.ranks.empty()) {
    diagnosis.world_size = job.world_size ? job.world_size : static_cast<int32_t>(findings.view.ranks.size());
  }
  diagnosis.collected_unix_ns = findings.now_ns;
  diagnosis.problems = job.problems;
  DescribeJob(findings, diagnosis);
  CollectEvidence(findings, diagnosis);
  FindMissing(findings, diagnosis);
  return diagnosis;
}

}  // namespace lockstep::hang
