#include "analysis/stages/stage_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/finding_context.h"
#include "analysis/host_role.h"
#include "analysis/shortened_name.h"

namespace lockstep::analysis {
namespace {

// Two times agree that differ by less than this share of the larger one, or of a step.
constexpr double kSameRatio = 0.10;
constexpr double kSameOfStep = 0.02;
// What `lockstep stages` begins to name a rank at.
constexpr double kSlowRatio = 0.025;

bool AreAlike(int64_t a_ns, int64_t b_ns, int64_t step_ns) {
  const auto apart = static_cast<double>(std::max(a_ns, b_ns) - std::min(a_ns, b_ns));
  return apart <=
         std::max(kSameRatio * static_cast<double>(std::max(a_ns, b_ns)), kSameOfStep * static_cast<double>(step_ns));
}

class Comparison {
 public:
  Comparison(const StagesBeside& stages, const TraceAnswer& trace)
      : trace_(trace), job_(*stages.Scope("job")), traced_(stages.Scope("traced")), rest_(stages.Scope("not_traced")) {}

  std::vector<StageAgreementRow> Rows() {
    std::vector<StageAgreementRow> rows;
    rows.push_back(Straggler());
    if (traced_ == nullptr) {
      rows.push_back({"steps", std::nullopt});
      rows.back().sentence =
          "No step of the stage files lies in the time that the traces cover: they are of another run, or a clock was "
          "set.";
      return rows;
    }
    rows.push_back(Steps());
    if (trace_.step_ns) rows.push_back(StepTime());
    if (trace_.exposed_communication_ns) rows.push_back(Communication());
    if (trace_.input_ns) rows.push_back(Input());
    return rows;
  }

 private:
  std::string CoveredSteps() const {
    return fmt::format("the traces cover {} of {} steps ({} to {})", traced_->account.step_count,
                       job_.account.step_count, *traced_->first_step(), *traced_->last_step());
  }

  std::string NamedByStages() const {
    if (job_.has_straggler()) return fmt::format("rank {} in {}", *job_.rank(), job_.stage());
    switch (job_.verdict.doubt) {
      case frontier::Doubt::kNone: return "no rank";
      case frontier::Doubt::kTooFewSteps: return "no rank, as they are too few";
      case frontier::Doubt::kOneRank: return "no rank, as there is one alone";
      case frontier::Doubt::kNoMeeting: return "no rank, as none was seen to wait for a collective";
    }
    return "no rank";
  }

  std::string NamedByTrace() const {
    if (!trace_.rank) return "no rank";
    return trace_.cause.empty() ? fmt::format("rank {}", *trace_.rank)
                                : fmt::format("rank {} in {}", *trace_.rank, ShortenedName(trace_.cause));
  }

  /// Of the scope's time: what the rank costs in all stages.
  static double CostOf(const StageScope& scope, int32_t rank, std::optional<model::Stage> only) {
    const frontier::Accounting& account = scope.account;
    const auto place = std::find(account.ranks.begin(), account.ranks.end(), rank);
    if (place == account.ranks.end()) return 0;
    int64_t cost_ns = 0;
    for (const model::Stage stage : model::kStages) {
      if (only && stage != *only) continue;
      cost_ns += account.At(stage).cost[static_cast<size_t>(place - account.ranks.begin())].ns;
    }
    return Ratio(cost_ns, account.total_ns);
  }

  /// Why one names a rank that the other does not name.
  std::string WhyApart() const {
    if (traced_ == nullptr) return "";
    if (job_.has_straggler()) return WhyNotByTrace();
    if (traced_->has_straggler() && traced_->rank() == trace_.rank) {
      return Capital(CoveredSteps()) + ", and in these alone the stage files name it as well.";
    }
    if (job_.verdict.doubt == frontier::Doubt::kNone) {
      const double cost = CostOf(*traced_, *trace_.rank, std::nullopt);
      return fmt::format("By the stage files it cost {} of the traced steps{}.", PercentText(cost),
                         cost < kSlowRatio ? ", too little to be told from chance"
                                           : ", not three times as much as others, or in no one stage");
    }
    if (job_.verdict.doubt == frontier::Doubt::kNoMeeting) {
      return "A program that does not wait for its collectives itself, as on a GPU, shows nobody who comes last.";
    }
    return "";
  }

  /// The stage files name a rank, the traces none, or another one.
  std::string WhyNotByTrace() const {
    const int32_t rank = *job_.rank();
    const double cost = CostOf(*traced_, rank, job_.verdict.stage);
    if (cost < kSlowRatio) {
      const bool same_there = trace_.rank && traced_->rank() == trace_.rank;
      return fmt::format("{}, and in these rank {} was not slow: its {} cost {} of their time, {} of the job's.{}",
                         Capital(CoveredSteps()), rank, job_.stage(), PercentText(cost),
                         PercentText(job_.verdict.cost_ratio),
                         same_there ? " There the stage files name the same rank as the traces." : "");
    }
    const std::string by_stages =
        fmt::format("By the stage files rank {} cost {} of the traced steps", rank, PercentText(cost));
    if (trace_.rank) {
      return fmt::format(
          "{}, rank {} {}: they tell who came last, the traces follow waits back to what caused them first.", by_stages,
          *trace_.rank, PercentText(CostOf(*traced_, *trace_.rank, std::nullopt)));
    }
    const size_t rank_count = job_.account.ranks.size();
    if (trace_.rank_count < rank_count) {
      return fmt::format("{}, too: there are traces of {} of {} ranks alone.", by_stages, trace_.rank_count,
                         rank_count);
    }
    return fmt::format("{}, too: {}.", by_stages,
                       trace_.has_device ? "they go by what programs waited for, the traces by what devices did"
                                         : "the traces lack the collectives, or show no more than chance does");
  }

  StageAgreementRow Straggler() const {
    StageAgreementRow row{"straggler", std::nullopt};
    row.stages_rank = job_.rank();
    row.trace_rank = trace_.rank;
    row.stages_stage = job_.stage();
    if (trace_.stage) row.trace_stage = model::StageName(*trace_.stage);
    if (!row.stages_rank && !row.trace_rank) {
      if (job_.verdict.answer != frontier::Answer::kUndecided) row.agrees = true;
      row.sentence = row.agrees ? "Neither names a rank."
                                : fmt::format("The stage files name {}; the traces name none either.", NamedByStages());
      return row;
    }
    if (row.stages_rank != row.trace_rank) {
      if (job_.verdict.answer != frontier::Answer::kUndecided) row.agrees = false;
      row.sentence = fmt::format("The stage files name {}, the traces {}.", NamedByStages(), NamedByTrace());
      if (const std::string why = WhyApart(); !why.empty()) row.sentence += " " + why;
      return row;
    }
    row.agrees = row.trace_stage.empty() || row.trace_stage == row.stages_stage;
    if (*row.agrees) {
      row.sentence =
          fmt::format("Both name rank {}: the stage files in {}, the traces in {}.", *row.stages_rank, row.stages_stage,
                      trace_.cause.empty() ? "nothing that has a name" : ShortenedName(trace_.cause));
      return row;
    }
    const double cost = traced_ == nullptr ? 0 : CostOf(*traced_, *row.stages_rank, job_.verdict.stage);
    row.sentence = fmt::format("Both name rank {}, the stage files in {}, the traces in {}.", *row.stages_rank,
                               row.stages_stage, ShortenedName(trace_.cause));
    if (traced_ != nullptr && cost < kSlowRatio) {
      row.sentence +=
          fmt::format(" {}, and in these its {} cost {} of the time, {} of the job's.", Capital(CoveredSteps()),
                      job_.stage(), PercentText(cost), PercentText(job_.verdict.cost_ratio));
    } else if (traced_ != nullptr) {
      row.sentence += fmt::format(" By the stage files its {} cost {} of the traced steps and its {} {}.", job_.stage(),
                                  PercentText(cost), row.trace_stage,
                                  PercentText(CostOf(*traced_, *row.stages_rank, trace_.stage)));
    }
    return row;
  }

  /// Are the traced steps like the others?
  StageAgreementRow Steps() const {
    StageAgreementRow row{"steps", std::nullopt};
    row.stages_ns = rest_ == nullptr ? std::nullopt : std::optional(rest_->median_step_ns);
    row.trace_ns = traced_->median_step_ns;
    row.sentence = Capital(CoveredSteps());
    if (rest_ == nullptr) {
      row.agrees = true;
      row.sentence += ".";
      return row;
    }
    const int64_t rest_ns = rest_->median_step_ns, traced_ns = traced_->median_step_ns;
    row.agrees = AreAlike(rest_ns, traced_ns, 0);
    if (*row.agrees) {
      row.sentence +=
          fmt::format("; they took as long as the others ({}, else {}).", TimeText(traced_ns), TimeText(rest_ns));
    } else if (traced_ns > rest_ns) {
      row.sentence += fmt::format(
          "; they took {} longer than the others ({}, else {}): that is the profiler's cost, or "
          "they are not like the others.",
          PercentText(Ratio(traced_ns - rest_ns, rest_ns)), TimeText(traced_ns), TimeText(rest_ns));
    } else {
      row.sentence += fmt::format(
          "; they took {} less than the others ({}, else {}): they are not like the rest of the "
          "job.",
          PercentText(Ratio(rest_ns - traced_ns, rest_ns)), TimeText(traced_ns), TimeText(rest_ns));
    }
    return row;
  }

  StageAgreementRow Times(const char* question, int64_t stages_ns, int64_t trace_ns) const {
    StageAgreementRow row{question, AreAlike(stages_ns, trace_ns, traced_->median_step_ns)};
    row.stages_ns = stages_ns;
    row.trace_ns = trace_ns;
    return row;
  }

  StageAgreementRow StepTime() const {
    StageAgreementRow row = Times("step_time", traced_->median_step_ns, *trace_.step_ns);
    row.sentence = fmt::format("A traced step takes {} by the stage files and {} by the traces{}.",
                               TimeText(*row.stages_ns), TimeText(*row.trace_ns),
                               *row.agrees ? "" : ": they begin their steps at different places of the program");
    return row;
  }

  StageAgreementRow Communication() const {
    StageAgreementRow row = Times("exposed_communication", At(traced_->usual_ns, model::Stage::kCommunication),
                                  *trace_.exposed_communication_ns);
    const char* why = "";
    if (trace_.has_device) {
      row.agrees.reset();
      why = ": these are different times on a device, where the program goes on while its device communicates";
    } else if (!*row.agrees) {
      why =
          ": the stage files count what the program waits, the traces all communication without an operator beside it";
    }
    row.sentence = fmt::format(
        "The programs wait {} of a traced step for collectives by the stage files; {} is exposed "
        "communication by the traces{}.",
        TimeText(*row.stages_ns), TimeText(*row.trace_ns), why);
    return row;
  }

  StageAgreementRow Input() const {
    StageAgreementRow row = Times("input", traced_->mean_input_ns, *trace_.input_ns);
    row.sentence = fmt::format(
        "A traced step waits {} for input by the stage files; {} is in the data loader by the "
        "traces{}.",
        TimeText(*row.stages_ns), TimeText(*row.trace_ns),
        *row.agrees ? "" : ": input that is not PyTorch's DataLoader is seen by one of them alone");
    return row;
  }

  static std::string Capital(std::string text) {
    if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
      text.front() = static_cast<char>(text.front() - 32);
    return text;
  }

  const TraceAnswer& trace_;
  const StageScope& job_;
  const StageScope* const traced_;
  const StageScope* const rest_;
};

}  // namespace

std::optional<model::Stage> StageOfName(std::string_view name) {
  if (HostRoleOf(name) == HostRole::kDataLoader) return model::Stage::kInput;
  if (name.starts_with("Optimizer.")) return model::Stage::kOptimizer;
  if (name.ends_with(".forward")) return model::Stage::kForward;
  if (name.find("Backward") != std::string_view::npos || name.starts_with("autograd::")) {
    return model::Stage::kBackward;
  }
  return model::StageOf(name);
}

std::vector<StageAgreementRow> CompareWithTrace(const StagesBeside& stages, const TraceAnswer& trace) {
  if (stages.job == nullptr || !stages.has_traces) return {};
  return Comparison(stages, trace).Rows();
}

}  // namespace lockstep::analysis
