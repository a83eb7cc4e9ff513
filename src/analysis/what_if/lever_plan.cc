#include "analysis/what_if/lever_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/shortened_name.h"
#include "analysis/what_if/work_table.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;

// Levers of their own get the ranks with most work beyond their peers', and the names with most time.
constexpr size_t kMaxRankLevers = 16;
constexpr size_t kMaxNameLevers = 8;
constexpr size_t kMaxNameLength = 80;

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

std::string Faster(double speedup) {
  return speedup == 2 ? std::string("twice as fast") : fmt::format("{} times as fast", speedup);
}

class Planner {
 public:
  Planner(const model::Run& run, const Totals& totals, const std::vector<size_t>& ranks, const LeverOptions& options)
      : run_(run), totals_(totals), ranks_(ranks), options_(options), only_(options.only) {}

  std::vector<LeverPlan> Make() {
    if (ranks_.size() > 1) {
      Add("no_stragglers", "every rank takes what the median rank takes", {}, LeverChange::kMedianForAll);
      AddRanks();
      AddNodes();
      AddStages();
    }
    if (totals_.has_collectives) {
      Add("communication_free", "communication takes no time after all have arrived", {}, LeverChange::kTransferFaster);
      Add(fmt::format("communication_{}x", options_.speedup), "communication " + Faster(options_.speedup), {},
          LeverChange::kTransferFaster)
          .speedup = options_.speedup;
      Add("perfect_overlap", "all communication beside other work", {}, LeverChange::kOverlap);
    }
    if (totals_.has_loading) Add("no_data_stalls", "input is always there", {}, LeverChange::kNoLoading);
    AddNames(EdgeKind::kCompute, "kernel");
    AddNames(EdgeKind::kHost, "operator");
    if (only_) std::erase_if(plans_, [&](const LeverPlan& plan) { return only_->count(plan.lever.id) == 0; });
    return std::move(plans_);
  }

 private:
  LeverPlan& Add(std::string id, std::string title, std::vector<int32_t> ranks, LeverChange change) {
    LeverPlan plan;
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
          fmt::format("rank {} takes what the median of the others takes", rank), {rank}, LeverChange::kMedianForRanks)
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
          std::move(ranks), LeverChange::kMedianForRanks)
          .rank_indices = members;
    }
  }

  void AddStages() {
    if (options_.stages.size() < 2) return;
    LeverPlan& even = Add("even_stages", "the pipeline's stages have equal work", {}, LeverChange::kEvenStages);
    for (const auto& entry : options_.stages) even.stages.push_back(entry.second);
    if (options_.stages.size() > kMaxRankLevers) return;
    for (const auto& [stage, members] : options_.stages) {
      std::vector<int32_t> ranks;
      for (const size_t member : members) ranks.push_back(RankOf(member));
      Add(fmt::format("stage_at_median:{}", stage),
          fmt::format("stage {} takes what the median of the other stages' ranks takes", stage), std::move(ranks),
          LeverChange::kMedianForRanks)
          .rank_indices = members;
    }
  }

  void AddNames(EdgeKind kind, const char* what) {
    std::vector<std::tuple<int64_t, std::string_view, uint32_t>> names;  // negated time, for order
    for (const auto& [thing, total_ns] : totals_.of_thing) {
      const std::string_view name = run_.names[NameId{thing.second}];
      if (thing.first == kind && !name.empty()) names.emplace_back(-total_ns, name, thing.second);
    }
    std::sort(names.begin(), names.end());
    if (names.size() > kMaxNameLevers) names.resize(kMaxNameLevers);
    for (const auto& [time, name, label] : names) {
      LeverPlan& plan = Add(fmt::format("{}_{}x:{}", what, options_.speedup, name),
                            fmt::format("{} {}", ShortenedName(name, kMaxNameLength), Faster(options_.speedup)), {},
                            LeverChange::kNameFaster);
      plan.speedup = options_.speedup;
      plan.label = label;
      plan.kind = kind;
    }
  }

  const model::Run& run_;
  const Totals& totals_;
  const std::vector<size_t>& ranks_;
  const LeverOptions& options_;
  const std::optional<std::set<std::string>>& only_;
  std::vector<LeverPlan> plans_;
};

}  // namespace

std::vector<LeverPlan> MakeLeverPlans(const model::Run& run, const std::vector<RankGraphs>& by_rank_index,
                                      const std::vector<JobStepKey>& keys, const std::vector<size_t>& ranks,
                                      const LeverOptions& options) {
  const Totals totals = AddUp(by_rank_index, keys, !options.only);
  return Planner(run, totals, ranks, options).Make();
}

}  // namespace lockstep::analysis
