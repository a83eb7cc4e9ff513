#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/finding.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// What the finding rules read, with the job's usual units at hand. Rules look at the first window of the run.
class FindingContext {
 public:
  FindingContext(const RunContext& shared, const AnalysisResult& result);

  const RunContext& shared() const { return shared_; }
  const AnalysisResult& result() const { return result_; }
  const AnalysisOptions& options() const { return shared_.options; }
  const model::Run& run() const { return *shared_.run; }

  bool InFirstWindow(size_t rank_index) const;
  int32_t RankOf(size_t rank_index) const { return run().ranks[rank_index].rank.value; }
  /// Ranks of the first window: how many have a trace, and of how many.
  struct Recorded {
    int64_t count = 0;
    int64_t world_size = 0;  ///< The largest that a trace names, `count` where that is more.
  };
  Recorded recorded() const;
  /// Breakdown rows of the first window that mean something; of the ranks with device events where any rank has them.
  const std::vector<BreakdownRow>& breakdown() const { return breakdown_; }

  /// False if devices did nothing but communicate: a recording of collectives alone (NCCL's profiler plugin), which
  /// does not show what runs beside or between them.
  bool knows_compute() const;

  bool has_steps() const { return step_count_ > 0; }
  /// Steps of a rank's window, 1 without steps: what per-step figures are divided by.
  int64_t StepsOf(size_t rank_index) const;
  /// Whether the ranks' windows hold as many steps: sums over windows that hold more are larger by that alone.
  bool StepCountsAgree() const;
  /// Mean length of a step over the ranks (of the window, without steps); 0 when unknown.
  int64_t step_ns() const { return step_ns_; }
  /// " per step" or "".
  const char* per_step() const { return has_steps() ? " per step" : ""; }

  /// Warning from 1 % of the step on, critical from 10 % on, else info.
  FindingSeverity SeverityOf(std::optional<int64_t> gain_ns) const;

 private:
  const RunContext& shared_;
  const AnalysisResult& result_;
  std::vector<BreakdownRow> breakdown_;
  std::vector<int64_t> steps_;  // by rank index
  int64_t step_count_ = 0;
  int64_t step_ns_ = 0;
};

/// part / whole; 0 where the whole is not above 0.
inline double Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// "46.8 ms": three digits and the unit that fits.
std::string TimeText(int64_t ns);
std::string BytesText(double bytes);
/// "37 %", and "0.4 %" below one.
std::string PercentText(double ratio);
/// "rank 2", "ranks 2 and 5", "ranks 1, 2, 3 and 12 more".
std::string RanksText(const std::vector<int32_t>& ranks);

/// A number that supports it, and what is said of it.
template <typename Number, typename... Args>
void AddEvidence(Finding* finding, std::string name, Number value, fmt::format_string<Args...> text, Args&&... args) {
  finding->evidence.push_back(
      {std::move(name), static_cast<double>(value), fmt::format(text, std::forward<Args>(args)...)});
}

// One function per question; each appends what it finds.
void FindStragglerFindings(const FindingContext& context, std::vector<Finding>* findings);
void FindCommunicationFindings(const FindingContext& context, std::vector<Finding>* findings);
void FindHostFindings(const FindingContext& context, std::vector<Finding>* findings);
void FindBalanceFindings(const FindingContext& context, std::vector<Finding>* findings);
void FindParallelismFindings(const FindingContext& context, std::vector<Finding>* findings);
void FindCoverageFindings(const FindingContext& context, std::vector<Finding>* findings);

}  // namespace lockstep::analysis
