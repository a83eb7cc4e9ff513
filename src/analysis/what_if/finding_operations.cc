#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/analysis_result.h"
#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/what_if/analyze_operations.h"
#include "analysis/what_if/pipeline_bubbles.h"
#include "analysis/what_if/what_if.h"

namespace lockstep::analysis {
namespace {

// The study's: a job counts as slowed by stragglers from here on, and a group explains it from half of the loss on.
constexpr double kStragglingSlowdown = 1.1;
constexpr double kExplains = 0.5;
constexpr double kBubbleExcess = 0.05;
constexpr double kWarningShare = 0.01;
constexpr double kCriticalShare = 0.10;

FindingSeverity SeverityOf(int64_t gain_ns, int64_t step_ns) {
  const double share = step_ns > 0 ? static_cast<double>(gain_ns) / static_cast<double>(step_ns) : 0;
  return share >= kCriticalShare  ? FindingSeverity::kCritical
         : share >= kWarningShare ? FindingSeverity::kWarning
                                  : FindingSeverity::kInfo;
}

std::string Percent(double ratio) { return fmt::format("{:.0f} %", 100 * ratio); }

/// "DP rank 0, stage 0" of a rank.
std::string PlaceOf(const model::OperationTrace& trace, int32_t rank) {
  for (const model::Operation& operation : trace.operations) {
    if (operation.rank == rank) return fmt::format("DP rank {}, stage {}", operation.data_rank, operation.stage);
  }
  return "place unknown";
}

template <typename IsOne>
std::vector<int32_t> RanksWith(const model::OperationTrace& trace, const IsOne& is_one) {
  std::set<int32_t> ranks;
  for (const model::Operation& operation : trace.operations) {
    if (is_one(operation)) ranks.insert(operation.rank);
  }
  return {ranks.begin(), ranks.end()};
}

const StudyShare* Largest(const std::vector<StudyShare>& shares) {
  const auto largest = std::max_element(
      shares.begin(), shares.end(), [](const StudyShare& a, const StudyShare& b) { return a.slowdown < b.slowdown; });
  return largest == shares.end() ? nullptr : &*largest;
}

class StudyWords {
 public:
  StudyWords(const model::OperationTrace& trace, const StragglerStudy& study) : trace_(trace), study_(study) {}

  std::vector<Finding> Find() {
    if (study_.slowdown < kStragglingSlowdown) return {};
    const bool workers = study_.slow_workers_ratio.value_or(0) >= kExplains;
    const bool last = study_.last_stage_ratio.value_or(0) >= kExplains && study_.by_stage.size() > 1;
    if (workers) AddWorkers();
    if (last) AddStage(study_.last_stage, "the last pipeline stage", study_.no_delay_ns - study_.last_stage_fixed_ns);
    if (!workers && !last) AddOther();
    return std::move(findings_);
  }

 private:
  Finding Make(std::string id, std::string title, std::vector<int32_t> ranks, std::optional<int64_t> gain_ns) const {
    Finding finding;
    finding.id = std::move(id);
    finding.title = std::move(title);
    finding.ranks = std::move(ranks);
    finding.gain_ns_per_step = gain_ns;
    if (gain_ns && study_.no_delay_ns > 0) {
      finding.gain_ratio = static_cast<double>(*gain_ns) / static_cast<double>(study_.no_delay_ns);
    }
    finding.severity = std::max(FindingSeverity::kWarning, SeverityOf(gain_ns.value_or(0), study_.no_delay_ns));
    AddEvidence(&finding, "slowdown", study_.slowdown,
                "a step takes {:.2f} times as long as if every operation took what its "
                "kind takes on average ({} against {})",
                study_.slowdown, TimeText(study_.no_delay_ns), TimeText(study_.ideal_ns));
    return finding;
  }

  void AddWorkers() {
    std::string who;
    for (size_t i = 0; i < study_.slow_workers.size() && i < 3; ++i) {
      who += fmt::format("{}rank {} ({})", i == 0 ? "" : ", ", study_.slow_workers[i],
                         PlaceOf(trace_, study_.slow_workers[i]));
    }
    if (study_.slow_workers.size() > 3) who += fmt::format(" and {} more", study_.slow_workers.size() - 3);
    const int64_t gain_ns = study_.no_delay_ns - study_.slow_workers_fixed_ns;
    const bool one = study_.slow_workers.size() == 1;
    Finding finding = Make("slow_workers",
                           fmt::format("{} {} slow: {}, for which all others wait",
                                       one ? "one worker" : "a few workers", one ? "is" : "are", who),
                           study_.slow_workers, gain_ns);
    const double ratio = *study_.slow_workers_ratio;
    AddEvidence(&finding, "slow_workers_ratio", ratio,
                "with {} as fast as the average a step takes {}: {} of what stragglers "
                "cost (M_W)",
                one ? "this one" : "these", TimeText(study_.slow_workers_fixed_ns), Percent(ratio));
    finding.advice.emplace_back(
        "compare its machine with the others': clocks, temperature, other processes, memory errors, slots; "
        "if nothing is found, replace it");
    findings_.push_back(std::move(finding));
  }

  void AddStage(int32_t stage, const std::string& what, std::optional<int64_t> gain_ns) {
    Finding finding =
        Make("stage_imbalance", fmt::format("{} ({}) is the straggler: the stages' work is uneven", what, stage),
             RanksWith(trace_, [&](const model::Operation& o) { return o.stage == stage; }), gain_ns);
    if (stage == study_.last_stage && study_.last_stage_ratio) {
      AddEvidence(&finding, "last_stage_ratio", *study_.last_stage_ratio,
                  "with it as fast as the stages' average a step takes {}: {} of what "
                  "stragglers cost (M_S)",
                  TimeText(study_.last_stage_fixed_ns), Percent(*study_.last_stage_ratio));
    }
    for (const StudyShare& share : study_.by_stage) {
      if (share.name != std::to_string(stage)) continue;
      AddEvidence(&finding, "stage_slowdown", share.slowdown,
                  "its work alone makes the ideal step {:.2f} times as long", share.slowdown);
    }
    finding.advice.emplace_back(stage == study_.last_stage
                                    ? "give it fewer layers: the last stage also has the output layer and the loss"
                                    : "give it fewer layers, or the others more");
    findings_.push_back(std::move(finding));
  }

  /// Neither a few workers nor the last stage: the group whose own work slows the ideal job most.
  void AddOther() {
    const StudyShare* stage = Largest(study_.by_stage);
    const StudyShare* data_rank = Largest(study_.by_data_rank);
    const StudyShare* operation = Largest(study_.by_operation);
    const double half = 1 + kExplains * (study_.slowdown - 1);
    if (stage != nullptr && study_.by_stage.size() > 1 && stage->slowdown >= half &&
        (data_rank == nullptr || stage->slowdown >= data_rank->slowdown)) {
      AddStage(std::stoi(stage->name), "one pipeline stage", std::nullopt);
    } else if (data_rank != nullptr && study_.by_data_rank.size() > 1 && data_rank->slowdown >= half) {
      const int32_t index = std::stoi(data_rank->name);
      Finding finding = Make("slow_pipeline", fmt::format("the pipeline of DP rank {} is slow", index),
                             RanksWith(trace_, [&](const model::Operation& o) { return o.data_rank == index; }), {});
      AddEvidence(&finding, "data_rank_slowdown", data_rank->slowdown,
                  "its work alone makes the ideal step {:.2f} times as long", data_rank->slowdown);
      finding.advice.emplace_back(
          "compare its machines, and its share of the data (lengths of sequences), with the others'");
      findings_.push_back(std::move(finding));
    } else {
      Finding finding = Make("uneven_operations", "operations take unequally long, on no worker or stage in particular",
                             {}, study_.no_delay_ns - study_.ideal_ns);
      if (operation != nullptr) {
        AddEvidence(&finding, "operation_slowdown", operation->slowdown,
                    "most by {}: it alone makes the ideal step {:.2f} times as long", operation->name,
                    operation->slowdown);
      }
      finding.advice.emplace_back("look for uneven micro-batches (lengths of sequences) and for pauses of Python");
      findings_.push_back(std::move(finding));
    }
  }

  const model::OperationTrace& trace_;
  const StragglerStudy& study_;
  std::vector<Finding> findings_;
};

/// Steps idle more than a pipeline of even stages would.
void AddBubbles(const Bubbles& bubbles, std::vector<Finding>* findings) {
  double ratio = 0;
  double ideal = 0;
  double gain_ns = 0;
  double step_ns = 0;
  double count = 0;
  for (const PipelineStepRow& row : bubbles.steps) {
    if (row.warm_up || row.ideal_bubble_ratio >= 1) continue;
    const auto iteration_ns = static_cast<double>(row.iteration_ns);
    ratio += row.bubble_ratio;
    ideal += row.ideal_bubble_ratio;
    step_ns += iteration_ns;
    gain_ns += iteration_ns - iteration_ns * (1 - row.bubble_ratio) / (1 - row.ideal_bubble_ratio);
    ++count;
  }
  if (count == 0 || (ratio - ideal) / count < kBubbleExcess) return;
  const PipelineStepRow& row = bubbles.steps.back();
  Finding finding;
  finding.id = "pipeline_bubble";
  finding.gain_ns_per_step = std::llround(gain_ns / count);
  if (step_ns > 0) finding.gain_ratio = gain_ns / step_ns;
  finding.severity = SeverityOf(*finding.gain_ns_per_step, std::llround(step_ns / count));
  finding.title = fmt::format("pipeline stages have no work for {} of a step", Percent(ratio / count));
  AddEvidence(&finding, "bubble_ratio", ratio / count,
              "{} stages with {} micro-batches idle {} where their work is even and transfers are free",
              row.stage_count, row.micro_batch_count, Percent(ideal / count));
  finding.advice.emplace_back("even the stages out, use more micro-batches, or interleave model chunks");
  findings->push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> FindOperationFindings(const model::OperationTrace& trace, const AnalysisResult& result) {
  std::vector<Finding> findings;
  if (result.Has<WhatIf>() && result.Get<WhatIf>().study)
    findings = StudyWords(trace, *result.Get<WhatIf>().study).Find();
  // Where everything was simulated, the study's figures say it better.
  if (result.Has<Bubbles>() && !result.Has<WhatIf>()) AddBubbles(result.Get<Bubbles>(), &findings);
  SortFindings(&findings);
  return findings;
}

}  // namespace lockstep::analysis
