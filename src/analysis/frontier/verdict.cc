#include "analysis/frontier/verdict.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/median.h"

namespace lockstep::frontier {

using model::Stage;

namespace {

// Shares of the job's time below which nothing is said: what scheduling alone makes of a healthy job stays below them.
constexpr double kLeastStraggler = 0.025;
constexpr double kLeastImbalance = 0.10;
constexpr double kLeastStage = 0.10;
constexpr double kLeastCommunication = 0.25;
// A rank is named where it costs so many times what any other rank costs: otherwise it is whose turn it was.
constexpr int64_t kDominance = 3;
// A single cost is told from so much of a median step on, if it is longer than what an operating system may take away
// from a process at any time, and of that share of the job's time.
constexpr double kLeastEvent = 0.30;
constexpr int64_t kLeastEventNs = 10'000'000;
constexpr double kLeastEventRatio = 0.005;
constexpr size_t kParts = 8;

using Suspect = std::pair<size_t, Stage>;  // A rank and its stage.

double Ratio(int64_t part_ns, int64_t whole_ns) {
  return whole_ns > 0 ? static_cast<double>(part_ns) / static_cast<double>(whole_ns) : 0;
}

/// The largest cost by `measure` of all ranks and stages, and the largest of any other rank.
struct Ranking {
  Suspect first = {0, Stage::kOther};
  int64_t ns = 0;
  int64_t rival_ns = 0;
};
Ranking RankBy(const Accounting& account, int64_t Cost::*measure) {
  Ranking ranking;
  const auto each = [&](const auto& visit) {
    for (const Stage stage : model::kStages) {
      const std::vector<Cost>& costs = account.At(stage).cost;
      for (size_t i = 0; i < costs.size(); ++i) visit(stage, i, costs[i].*measure);
    }
  };
  each([&](Stage stage, size_t rank_idx, int64_t ns) {
    if (ns > ranking.ns) {
      ranking.ns = ns;
      ranking.first = {rank_idx, stage};
    }
  });
  each([&](Stage, size_t rank_idx, int64_t ns) {
    if (rank_idx != ranking.first.first) ranking.rival_ns = std::max(ranking.rival_ns, ns);
  });
  return ranking;
}

/// In how many of the job's eighths the suspect cost most.
double ShareOfParts(const Accounting& account, const Suspect& suspect) {
  const size_t part_count = std::min(kParts, account.steps.size());
  size_t won = 0;
  for (size_t part = 0; part < part_count; ++part) {
    std::map<Suspect, int64_t> costs;
    for (size_t i = account.steps.size() * part / part_count; i < account.steps.size() * (part + 1) / part_count; ++i) {
      const StepAccount& step = account.steps[i];
      costs[{step.rank_idx, step.stage}] += step.cost_ns;
    }
    const auto most =
        std::max_element(costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    won += most != costs.end() && most->first == suspect ? 1 : 0;
  }
  return part_count == 0 ? 0 : static_cast<double>(won) / static_cast<double>(part_count);
}

int64_t MedianStepNs(const Accounting& account) {
  std::vector<int64_t> steps_ns;
  for (const StepAccount& step : account.steps) steps_ns.push_back(step.ns);
  return steps_ns.empty() ? 0 : Median(&steps_ns);
}

/// What the suspect cost in a step, each that it cost most in.
std::vector<int64_t> CostsOf(const Accounting& account, const Suspect& suspect) {
  std::vector<int64_t> costs_ns;
  for (const StepAccount& step : account.steps) {
    if (Suspect{step.rank_idx, step.stage} == suspect && step.cost_ns > 0) costs_ns.push_back(step.cost_ns);
  }
  return costs_ns;
}

/// The dearest steps, which make up half of all, cost that or more each.
int64_t UsualCost(std::vector<int64_t> costs_ns) {
  std::sort(costs_ns.begin(), costs_ns.end(), std::greater<>());
  const int64_t half_ns = std::accumulate(costs_ns.begin(), costs_ns.end(), int64_t{}) / 2;
  int64_t dearest_ns = 0;
  for (const int64_t ns : costs_ns) {
    dearest_ns += ns;
    if (dearest_ns >= half_ns) return ns;
  }
  return 0;
}

bool NameStraggler(const Accounting& account, Verdict* verdict) {
  const int64_t median_ns = MedianStepNs(account);
  const Ranking sums = RankBy(account, &Cost::ns);
  const Ranking events = RankBy(account, &Cost::largest_ns);
  const bool is_steady = Ratio(sums.ns, account.total_ns) >= kLeastStraggler && sums.ns >= kDominance * sums.rival_ns;
  const bool is_event = events.ns >= kLeastEventNs && Ratio(events.ns, account.total_ns) >= kLeastEventRatio &&
                        static_cast<double>(events.ns) >= kLeastEvent * static_cast<double>(median_ns) &&
                        events.ns >= kDominance * events.rival_ns;
  if (!is_steady && !is_event) return false;
  const Suspect suspect = is_steady ? sums.first : events.first;
  const Cost& cost = account.At(suspect.second).cost[suspect.first];
  verdict->answer = Answer::kStraggler;
  std::tie(verdict->rank_idx, verdict->stage) = suspect;
  verdict->cost_ns = cost.ns;
  const std::vector<int64_t> costs_ns = CostsOf(account, suspect);
  // Worth telling is a tenth of a step, or what a steady cost of less is in most of its steps.
  const int64_t least_ns = is_steady ? std::min(median_ns / 10, UsualCost(costs_ns) / 2) : median_ns / 10;
  verdict->step_count = std::count_if(costs_ns.begin(), costs_ns.end(), [&](int64_t ns) { return ns >= least_ns; });
  verdict->is_occasional = verdict->step_count * 4 < account.step_count;
  verdict->confidence = is_steady && !verdict->is_occasional
                            ? ShareOfParts(account, suspect)
                            : 1 - Ratio(events.rival_ns, std::max<int64_t>(cost.largest_ns, 1));
  return true;
}

bool NameStage(const Accounting& account, Verdict* verdict) {
  for (const Stage stage : model::kStages) {
    const int64_t imbalance_ns = account.At(stage).imbalance_ns;
    if (imbalance_ns > verdict->cost_ns && Ratio(imbalance_ns, account.total_ns) >= kLeastImbalance) {
      verdict->answer = Answer::kImbalance;
      verdict->stage = stage;
      verdict->cost_ns = imbalance_ns;
    }
  }
  if (verdict->answer == Answer::kImbalance) return true;
  for (const Stage stage : {Stage::kInput, Stage::kHostToDevice, Stage::kCommunication, Stage::kCheckpoint,
                            Stage::kValidation, Stage::kGarbageCollection}) {
    const double least = stage == Stage::kCommunication ? kLeastCommunication : kLeastStage;
    const int64_t frontier_ns = account.At(stage).frontier_ns;
    if (frontier_ns > verdict->cost_ns && Ratio(frontier_ns, account.total_ns) >= least) {
      verdict->answer = Answer::kStage;
      verdict->stage = stage;
      verdict->cost_ns = frontier_ns;
    }
  }
  return verdict->answer == Answer::kStage;
}

Doubt DoubtOf(const Accounting& account) {
  if (account.step_count < kLeastSteps) return Doubt::kTooFewSteps;
  if (account.ranks.size() < 2) return Doubt::kOneRank;
  if (account.unmet_ns * 2 > account.total_ns) return Doubt::kNoMeeting;
  return Doubt::kNone;
}

}  // namespace

const char* AnswerName(Answer answer) {
  switch (answer) {
    case Answer::kStraggler: return "straggler";
    case Answer::kImbalance: return "imbalance";
    case Answer::kStage: return "stage";
    case Answer::kEven: return "even";
    case Answer::kUndecided: break;
  }
  return "undecided";
}

const char* DoubtName(Doubt doubt) {
  switch (doubt) {
    case Doubt::kTooFewSteps: return "too_few_steps";
    case Doubt::kOneRank: return "one_rank";
    case Doubt::kNoMeeting: return "no_meeting";
    case Doubt::kNone: break;
  }
  return nullptr;
}

Verdict Judge(const Accounting& account) {
  Verdict verdict;
  verdict.doubt = DoubtOf(account);
  const bool has_costs = verdict.doubt == Doubt::kNone;
  if (verdict.doubt != Doubt::kTooFewSteps && !(has_costs && NameStraggler(account, &verdict)) &&
      !NameStage(account, &verdict)) {
    verdict.answer = has_costs ? Answer::kEven : Answer::kUndecided;
  }
  verdict.cost_ratio = Ratio(verdict.cost_ns, account.total_ns);
  return verdict;
}

}  // namespace lockstep::frontier
