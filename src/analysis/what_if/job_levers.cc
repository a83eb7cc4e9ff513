#include "analysis/what_if/job_levers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "analysis/job_graph/job_graph.h"
#include "analysis/what_if/work_table.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;

// Levers of their own get the ranks with most work beyond their peers', and the names with most time.
constexpr size_t kMaxRankLevers = 16;
constexpr size_t kMaxNameLevers = 8;
constexpr size_t kMaxNameLength = 80;

enum class Change : uint8_t {
  kNothing,
  kMedianForAll,
  kMedianForRanks,
  kTransferOver,
  kOverlap,
  kNameTwice,
  kNoLoading
};

/// One lever before it is tried.
struct Plan {
  Lever lever;
  Change change = Change::kNothing;
  std::vector<size_t> rank_indices = {};  // kMedianForRanks
  int64_t divisor = 0;                    // kTransferOver: 0 = free
  uint32_t label = 0;                     // kNameTwice
  EdgeKind kind = EdgeKind::kHost;        // kNameTwice
};

/// What a lever makes of one step.
class StepSimulator {
 public:
  StepSimulator(const JobStepGraph& step, size_t rank_count)
      : step_(step), rank_count_(rank_count), table_(step.graph, rank_count) {}

  int64_t Time(const Plan& plan) const;

 private:
  template <typename WeightOf>
  int64_t Run(const WeightOf& weight_of) const {
    const auto times =
        graph::EarliestTimes(step_.graph, [&](uint32_t i) { return weight_of(i, step_.graph.edge(i).weight_ns); });
    return times[step_.sink] - times[step_.source];
  }

  int64_t Transfers(int64_t divisor) const {
    return Run([&](uint32_t i, int64_t weight_ns) {
      if (step_.graph.edge(i).kind != EdgeKind::kTransfer || weight_ns <= 0) return weight_ns;
      return divisor == 0 ? 0 : weight_ns / divisor;
    });
  }

  /// A rank cannot transfer more than one thing at a time.
  int64_t LongestTransfers() const {
    std::vector<int64_t> sums(rank_count_, 0);
    for (const graph::Edge& edge : step_.graph.edges()) {
      if (edge.kind == EdgeKind::kTransfer && edge.owner < rank_count_)
        sums[edge.owner] += std::max<int64_t>(edge.weight_ns, 0);
    }
    return sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
  }

  std::vector<int64_t> MediansOfAll() const {
    std::vector<int64_t> medians(table_.thing_count());
    for (uint32_t thing = 0; thing < medians.size(); ++thing) medians[thing] = table_.MedianNs(thing);
    return medians;
  }

  /// Weights of the chosen ranks' work scaled so that each thing takes what `medians` says.
  auto Scaled(std::vector<int64_t> medians, std::vector<bool> chosen) const {
    return [this, medians = std::move(medians), chosen = std::move(chosen)](uint32_t i, int64_t weight_ns) {
      const graph::Edge& edge = step_.graph.edge(i);
      if (weight_ns <= 0 || edge.owner >= rank_count_ || !chosen[edge.owner] || !WorkTable::IsWork(edge.kind)) {
        return weight_ns;
      }
      const uint32_t thing = table_.thing_of(i);
      const double ratio = static_cast<double>(medians[thing]) / static_cast<double>(table_.own_ns(edge.owner, thing));
      return static_cast<int64_t>(std::llround(static_cast<double>(weight_ns) * ratio));
    };
  }

  int64_t AtMedian(const std::vector<size_t>& ranks) const {
    std::vector<bool> chosen(rank_count_, false);
    for (const size_t rank : ranks) chosen[rank] = true;
    std::vector<bool> others(rank_count_);
    for (size_t rank = 0; rank < rank_count_; ++rank) others[rank] = !chosen[rank];
    std::vector<int64_t> medians(table_.thing_count());
    for (uint32_t thing = 0; thing < medians.size(); ++thing) medians[thing] = table_.MedianAmong(thing, others);
    return Run(Scaled(std::move(medians), std::move(chosen)));
  }

  const JobStepGraph& step_;
  size_t rank_count_;
  WorkTable table_;
};

int64_t StepSimulator::Time(const Plan& plan) const {
  switch (plan.change) {
    case Change::kNothing: return Run([](uint32_t, int64_t weight_ns) { return weight_ns; });
    case Change::kMedianForAll: return Run(Scaled(MediansOfAll(), std::vector<bool>(rank_count_, true)));
    case Change::kMedianForRanks: return AtMedian(plan.rank_indices);
    case Change::kTransferOver: return Transfers(plan.divisor);
    case Change::kOverlap: return std::max(Transfers(0), LongestTransfers());
    case Change::kNameTwice:
      return Run([&](uint32_t i, int64_t weight_ns) {
        const graph::Edge& edge = step_.graph.edge(i);
        return edge.label == plan.label && edge.kind == plan.kind ? weight_ns / 2 : weight_ns;
      });
    case Change::kNoLoading:
      return Run([&](uint32_t i, int64_t weight_ns) {
        return step_.graph.edge(i).kind == EdgeKind::kDataLoader ? std::min<int64_t>(weight_ns, 0) : weight_ns;
      });
  }
  return 0;
}

/// Time by rank and thing over all steps, from the ranks' own graphs: to choose levers by.
struct Totals {
  std::map<std::pair<EdgeKind, uint32_t>, int64_t> of_thing;
  std::map<std::pair<EdgeKind, uint32_t>, std::vector<int64_t>> by_rank;
  bool has_loading = false;
  bool has_collectives = false;
};

/// Without `by_things` only whether there are any loading and collectives: nothing is to be chosen then.
Totals AddUp(const std::vector<RankGraphs>& by_rank_index, const std::vector<JobStepKey>& keys, bool by_things) {
  Totals totals;
  for (const JobStepKey& key : keys) {
    for (size_t rank = 0; rank < key.parts.size(); ++rank) {
      if (key.parts[rank] == SIZE_MAX) continue;
      const RankStepGraph& step = by_rank_index[rank].steps[key.parts[rank]];
      totals.has_collectives = totals.has_collectives || !step.collectives.empty();
      for (const RankEdge& edge : step.edges) {
        if (!WorkTable::IsWork(edge.kind) || edge.weight_ns <= 0) continue;
        totals.has_loading = totals.has_loading || edge.kind == EdgeKind::kDataLoader;
        if (!by_things) continue;
        const auto thing = std::pair(edge.kind, edge.label.value);
        totals.of_thing[thing] += edge.weight_ns;
        auto& ranks = totals.by_rank[thing];
        ranks.resize(key.parts.size(), 0);
        ranks[rank] += edge.weight_ns;
      }
    }
  }
  return totals;
}

std::string Shortened(std::string_view name) {
  if (name.size() <= kMaxNameLength) return std::string(name);
  size_t cut = kMaxNameLength;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;  // not inside a character
  return std::string(name.substr(0, cut)) + "...";
}

class Planner {
 public:
  Planner(const model::Run& run, const Totals& totals, const std::vector<size_t>& ranks,
          const std::optional<std::set<std::string>>& only)
      : run_(run), totals_(totals), ranks_(ranks), only_(only) {}

  std::vector<Plan> Make() {
    if (ranks_.size() > 1) {
      Add("no_stragglers", "every rank takes what the median rank takes", {}, Change::kMedianForAll);
      AddRanks();
      AddNodes();
    }
    if (totals_.has_collectives) {
      Add("communication_free", "communication takes no time once everybody is there", {}, Change::kTransferOver);
      Add("communication_2x", "communication twice as fast", {}, Change::kTransferOver).divisor = 2;
      Add("perfect_overlap", "all communication beside other work", {}, Change::kOverlap);
    }
    if (totals_.has_loading) Add("no_data_stalls", "input is always there", {}, Change::kNoLoading);
    AddNames(EdgeKind::kCompute, "kernel_2x:");
    AddNames(EdgeKind::kHost, "operator_2x:");
    if (only_) std::erase_if(plans_, [&](const Plan& plan) { return only_->count(plan.lever.id) == 0; });
    return std::move(plans_);
  }

 private:
  Plan& Add(std::string id, std::string title, std::vector<int32_t> ranks, Change change) {
    Plan plan;
    plan.lever.id = std::move(id);
    plan.lever.title = std::move(title);
    plan.lever.ranks = std::move(ranks);
    plan.change = change;
    plans_.push_back(std::move(plan));
    return plans_.back();
  }
  int32_t RankOf(size_t rank_index) const { return run_.ranks[rank_index].rank.value; }

  void AddRanks() {
    std::vector<std::pair<int64_t, size_t>> excess;  // negated, for order
    for (const size_t rank : ranks_) excess.emplace_back(0, rank);
    for (const auto& [thing, by_rank] : totals_.by_rank) {
      std::vector<int64_t> sorted;
      for (const size_t rank : ranks_) sorted.push_back(by_rank[rank]);
      std::sort(sorted.begin(), sorted.end());
      const size_t middle = (sorted.size() - 2) / 2;  // of the others, who are one less
      for (auto& [sum_ns, rank] : excess) {
        // Without its own value those behind it move up.
        sum_ns -= by_rank[rank] - (by_rank[rank] > sorted[middle] ? sorted[middle] : sorted[middle + 1]);
      }
    }
    std::sort(excess.begin(), excess.end());
    if (excess.size() > kMaxRankLevers && !only_) excess.resize(kMaxRankLevers);
    for (const auto& entry : excess) {
      const int32_t rank = RankOf(entry.second);
      Add(fmt::format("rank_at_median:{}", rank),
          fmt::format("rank {} takes what the median of the others takes", rank), {rank}, Change::kMedianForRanks)
          .rank_indices = {entry.second};
    }
  }

  void AddNodes() {
    std::map<std::string, std::vector<size_t>> nodes;
    for (const size_t rank : ranks_) nodes[run_.ranks[rank].host].push_back(rank);
    if (nodes.size() < 2 || nodes.size() > kMaxRankLevers || nodes.count("") > 0) return;
    for (const auto& [host, members] : nodes) {
      if (members.size() < 2) continue;  // The rank's own lever says it.
      std::vector<int32_t> ranks;
      for (const size_t member : members) ranks.push_back(RankOf(member));
      Add("node_at_median:" + host, fmt::format("node {} takes what the median of the others takes", host),
          std::move(ranks), Change::kMedianForRanks)
          .rank_indices = members;
    }
  }

  void AddNames(EdgeKind kind, const char* id) {
    std::vector<std::tuple<int64_t, std::string_view, uint32_t>> names;  // negated time, for order
    for (const auto& [thing, total_ns] : totals_.of_thing) {
      const std::string_view name = run_.names[NameId{thing.second}];
      if (thing.first == kind && !name.empty()) names.emplace_back(-total_ns, name, thing.second);
    }
    std::sort(names.begin(), names.end());
    if (names.size() > kMaxNameLevers) names.resize(kMaxNameLevers);
    for (const auto& [time, name, label] : names) {
      Plan& plan =
          Add(id + std::string(name), fmt::format("{} twice as fast", Shortened(name)), {}, Change::kNameTwice);
      plan.label = label;
      plan.kind = kind;
    }
  }

  const model::Run& run_;
  const Totals& totals_;
  const std::vector<size_t>& ranks_;
  const std::optional<std::set<std::string>>& only_;
  std::vector<Plan> plans_;
};

/// The first window's steps that most of its ranks have.
std::vector<JobStepKey> UsualSteps(std::vector<JobStepKey> keys) {
  const auto count = [](const JobStepKey& key) {
    return key.parts.size() - static_cast<size_t>(std::count(key.parts.begin(), key.parts.end(), SIZE_MAX));
  };
  size_t most = 0;
  for (const JobStepKey& key : keys) {
    if (key.window == keys.front().window) most = std::max(most, count(key));
  }
  const int32_t first = keys.empty() ? 0 : keys.front().window;
  std::erase_if(keys, [&](const JobStepKey& key) { return key.window != first || count(key) < most; });
  return keys;
}

/// One step with nothing changed and with every lever; absent when its graph cannot be joined.
struct StepOutcome {
  WhatIfStep step;
  std::vector<int64_t> lever_ns;
};

}  // namespace

WhatIf SimulateJob(const model::Run& run, const Collectives& collectives, const std::vector<RankGraphs>& by_rank_index,
                   uint32_t thread_count, model::Ledger* ledger, const std::optional<std::set<std::string>>& only) {
  WhatIf what_if;
  if (only && only->empty()) return what_if;
  const std::vector<JobStepKey> keys = UsualSteps(ListJobSteps(run, by_rank_index));
  if (keys.empty()) return what_if;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < keys.front().parts.size(); ++i) {
    if (keys.front().parts[i] != SIZE_MAX) ranks.push_back(i);
  }
  std::vector<Plan> plans = Planner(run, AddUp(by_rank_index, keys, !only), ranks, only).Make();
  if (only && plans.empty()) return what_if;
  const CollectiveFinder finder(collectives);
  std::vector<std::optional<StepOutcome>> outcomes(keys.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k = next.fetch_add(1); k < keys.size(); k = next.fetch_add(1)) {
      const Result<JobStepGraph> step = JoinJobStep(run, collectives, finder, by_rank_index, keys[k]);
      if (!step) continue;
      const StepSimulator simulator(*step, by_rank_index.size());
      StepOutcome outcome;
      outcome.step = {.step = step->step, .observed_ns = step->observed_ns, .simulated_ns = simulator.Time(Plan())};
      for (const Plan& plan : plans) outcome.lever_ns.push_back(simulator.Time(plan));
      outcomes[k] = std::move(outcome);
    }
  };
  const size_t wanted = thread_count > 0 ? thread_count : std::max(1U, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(wanted, keys.size()); ++i) threads.emplace_back(work);
    work();
  }
  double observed = 0;
  double simulated = 0;
  double error = 0;
  std::vector<double> sums(plans.size(), 0);
  uint64_t failed = 0;
  for (const auto& outcome : outcomes) {
    if (!outcome) {
      ++failed;
      continue;
    }
    what_if.steps.push_back(outcome->step);
    const auto observed_ns = static_cast<double>(outcome->step.observed_ns);
    const auto simulated_ns = static_cast<double>(outcome->step.simulated_ns);
    observed += observed_ns;
    simulated += simulated_ns;
    if (observed_ns > 0) error += std::abs(simulated_ns - observed_ns) / observed_ns;
    for (size_t p = 0; p < plans.size(); ++p) sums[p] += static_cast<double>(outcome->lever_ns[p]);
  }
  if (failed > 0) {
    model::LedgerEntry entry;
    entry.code = "what_if_not_possible";
    entry.severity = model::Severity::kInfo;
    entry.count = failed;
    entry.message = "what-if: steps whose ranks wait for each other in a circle were left out";
    entry.advice = "their clocks or the matching of their collectives contradict each other: see the section clocks";
    ledger->Add(std::move(entry));
  }
  if (what_if.steps.empty()) return what_if;
  const auto count = static_cast<double>(what_if.steps.size());
  what_if.observed_step_ns = std::llround(observed / count);
  what_if.simulated_step_ns = std::llround(simulated / count);
  what_if.error_ratio = error / count;
  for (size_t p = 0; p < plans.size(); ++p) {
    plans[p].lever.step_ns = std::llround(sums[p] / count);
    what_if.levers.push_back(std::move(plans[p].lever));
  }
  RankLevers(&what_if);
  return what_if;
}

}  // namespace lockstep::analysis
