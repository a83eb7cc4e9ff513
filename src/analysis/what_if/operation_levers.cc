#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/what_if/straggler_study.h"
#include "base/median.h"

namespace lockstep::analysis {
namespace {

// Workers and stages that get a lever of their own: those with most work beyond their peers'.
constexpr size_t kMaxOwnLevers = 32;

using LeverKey = std::pair<int32_t, uint32_t>;  // of worker or stage, and type

/// What operations of a type take in the middle, by worker or stage.
class Medians {
 public:
  void Add(int32_t who, uint32_t type, int64_t work_ns) { values_[{who, type}].push_back(work_ns); }
  void Finish() {
    for (auto& [key, values] : values_) median_[key] = UpperMedian(&values);
    values_.clear();
  }
  const std::map<LeverKey, int64_t>& all() const { return median_; }

 private:
  std::map<LeverKey, std::vector<int64_t>> values_;
  std::map<LeverKey, int64_t> median_;
};

class LeverMaker {
 public:
  LeverMaker(const model::OperationTrace& trace, const OperationGraph& graph, const std::vector<int64_t>& ideal_ns,
             double speedup)
      : trace_(trace), graph_(graph), ideal_ns_(ideal_ns), speedup_(speedup), observed_ns_(graph.observed().work_ns) {
    for (const model::Operation& operation : trace.operations) {
      stage_of_rank_.emplace(operation.rank, operation.stage);
      ranks_of_stage_[operation.stage].insert(operation.rank);
    }
    for (size_t i = 0; i < observed_ns_.size(); ++i) {
      if (!graph.schedule().takes_part[i]) continue;
      const model::Operation& operation = trace.operations[i];
      of_rank_.Add(operation.rank, operation.type, observed_ns_[i]);
      of_stage_.Add(operation.stage, operation.type, observed_ns_[i]);
    }
    of_rank_.Finish();
    of_stage_.Finish();
  }

  std::vector<Lever> Make(const StragglerStudy& study) {
    Add("no_stragglers", "every operation takes what its type takes on average", {}, ideal_ns_);
    AddCommunication();
    AddOperations();
    AddEvenStages();
    AddRanks();
    AddStages();
    AddStudy(study);
    return std::move(levers_);
  }

 private:
  OperationKind KindOf(size_t operation) const { return graph_.schedule().kinds[operation]; }

  void Add(std::string id, std::string title, std::vector<int32_t> ranks, std::vector<int64_t> work_ns) {
    Lever lever;
    lever.id = std::move(id);
    lever.title = std::move(title);
    lever.ranks = std::move(ranks);
    lever.step_ns = std::llround(MeanStep(graph_.StepTimes({.work_ns = std::move(work_ns), .delayed = false})));
    levers_.push_back(std::move(lever));
  }

  /// Observed work, with `change(index, work)` for each operation.
  template <typename Change>
  std::vector<int64_t> Changed(const Change& change) const {
    std::vector<int64_t> work_ns = observed_ns_;
    for (size_t i = 0; i < work_ns.size(); ++i) work_ns[i] = change(i, work_ns[i]);
    return work_ns;
  }

  int64_t Faster(int64_t work_ns) const { return static_cast<int64_t>(static_cast<double>(work_ns) / speedup_); }
  std::string HowFast() const {
    return speedup_ == 2 ? std::string("twice as fast") : fmt::format("{} times as fast", speedup_);
  }

  void AddCommunication() {
    Add("communication_free", "communication takes no time after all have arrived", {},
        Changed([&](size_t i, int64_t work_ns) { return IsCommunication(KindOf(i)) ? 0 : work_ns; }));
    Add(fmt::format("communication_{}x", speedup_), "communication " + HowFast(), {},
        Changed([&](size_t i, int64_t work_ns) { return IsCommunication(KindOf(i)) ? Faster(work_ns) : work_ns; }));
  }

  void AddOperations() {
    std::map<std::string, std::set<uint32_t>> types;
    for (uint32_t type = 0; type < trace_.types.size(); ++type) {
      const OperationKind kind = KindOfType(trace_.types[type]);
      if (kind != OperationKind::kOther) types[StudyOperation(trace_.types[type], kind)].insert(type);
    }
    for (const auto& [name, ids] : types) {
      Add(fmt::format("operation_{}x:{}", speedup_, name), name + " " + HowFast(), {},
          Changed([&, &among = ids](size_t i, int64_t work_ns) {
            return among.count(trace_.operations[i].type) > 0 ? Faster(work_ns) : work_ns;
          }));
    }
  }

  /// Forward and backward of every stage scaled to the mean over the stages.
  void AddEvenStages() {
    if (ranks_of_stage_.size() < 2) return;
    std::map<LeverKey, std::pair<double, double>> sums;  // by stage and type: work, count
    std::map<uint32_t, std::pair<double, double>> of_type;
    for (size_t i = 0; i < observed_ns_.size(); ++i) {
      if (KindOf(i) != OperationKind::kForward && KindOf(i) != OperationKind::kBackward) continue;
      const model::Operation& operation = trace_.operations[i];
      for (auto* sum : {&sums[{operation.stage, operation.type}], &of_type[operation.type]}) {
        sum->first += static_cast<double>(observed_ns_[i]);
        sum->second += 1;
      }
    }
    Add("even_stages", "the stages' forward and backward work is equal", {}, Changed([&](size_t i, int64_t work_ns) {
          const model::Operation& operation = trace_.operations[i];
          const auto own = sums.find({operation.stage, operation.type});
          if (own == sums.end() || own->second.first <= 0) return work_ns;
          const auto& all = of_type.at(operation.type);
          const double ratio = (all.first / all.second) / (own->second.first / own->second.second);
          return static_cast<int64_t>(std::llround(static_cast<double>(work_ns) * ratio));
        }));
  }

  /// `who` and its peers, by the medians of each type: how long its operations would take if it were like its peers,
  /// and how much of its work that saves. The median is that of the others, so that of two the slower one is found too.
  struct Slower {
    double excess_ns = 0;
    int32_t who = 0;
    std::map<uint32_t, std::pair<int64_t, int64_t>> medians;  // by type: own, peers'
  };

  std::vector<Slower> SlowerOnes(const Medians& medians, const std::map<int32_t, std::set<int32_t>>& peers_of) const {
    std::map<int32_t, Slower> slower;
    std::map<LeverKey, size_t> counts;
    for (const auto& [key, own_ns] : medians.all()) {
      const auto peers = peers_of.find(key.first);
      if (peers == peers_of.end()) continue;
      std::vector<int64_t> others;
      for (const int32_t peer : peers->second) {
        const auto found = medians.all().find({peer, key.second});
        if (peer != key.first && found != medians.all().end()) others.push_back(found->second);
      }
      if (others.empty()) continue;
      std::sort(others.begin(), others.end());
      const int64_t peers_ns = others[others.size() / 2];
      Slower& entry = slower[key.first];
      entry.who = key.first;
      entry.medians[key.second] = {own_ns, peers_ns};
      entry.excess_ns += static_cast<double>(own_ns - peers_ns);
    }
    std::vector<Slower> list;
    for (auto& [who, entry] : slower) list.push_back(std::move(entry));
    std::stable_sort(list.begin(), list.end(),
                     [](const Slower& a, const Slower& b) { return a.excess_ns > b.excess_ns; });
    if (list.size() > kMaxOwnLevers) list.resize(kMaxOwnLevers);
    return list;
  }

  /// The operations of `slower` at its peers' median.
  template <typename IsOwn>
  std::vector<int64_t> AtMedian(const Slower& slower, const IsOwn& is_own) const {
    return Changed([&](size_t i, int64_t work_ns) {
      const model::Operation& operation = trace_.operations[i];
      if (!is_own(operation)) return work_ns;
      const auto found = slower.medians.find(operation.type);
      return found == slower.medians.end() ? work_ns : found->second.second;
    });
  }

  void AddRanks() {
    // Peers are those with the same stage, whose work should be the same.
    std::map<int32_t, std::set<int32_t>> peers_of;
    for (const auto& [rank, stage] : stage_of_rank_) {
      if (ranks_of_stage_.at(stage).size() > 1) peers_of[rank] = ranks_of_stage_.at(stage);
    }
    for (const Slower& slower : SlowerOnes(of_rank_, peers_of)) {
      Add(fmt::format("rank_at_median:{}", slower.who),
          fmt::format("rank {} takes what the others of its stage take", slower.who), {slower.who},
          AtMedian(slower, [&](const model::Operation& o) { return o.rank == slower.who; }));
    }
  }

  void AddStages() {
    std::set<int32_t> stages;
    for (const auto& entry : ranks_of_stage_) stages.insert(entry.first);
    std::map<int32_t, std::set<int32_t>> peers_of;
    for (const int32_t stage : stages) peers_of[stage] = stages;
    for (const Slower& slower : SlowerOnes(of_stage_, peers_of)) {
      const std::set<int32_t>& ranks = ranks_of_stage_.at(slower.who);
      Add(fmt::format("stage_at_median:{}", slower.who),
          fmt::format("stage {} takes what the other stages take", slower.who), {ranks.begin(), ranks.end()},
          AtMedian(slower, [&](const model::Operation& o) { return o.stage == slower.who; }));
    }
  }

  void AddStudy(const StragglerStudy& study) {
    const auto ideal_for = [&](const auto& takes) {
      return Changed([&](size_t i, int64_t work_ns) { return takes(trace_.operations[i]) ? ideal_ns_[i] : work_ns; });
    };
    const std::set<int32_t> slow(study.slow_workers.begin(), study.slow_workers.end());
    if (!slow.empty()) {
      Add("slow_workers_ideal", "the slowest 3 % of the workers take what all take on average", study.slow_workers,
          ideal_for([&](const model::Operation& o) { return slow.count(o.rank) > 0; }));
    }
    const std::set<int32_t>& last = ranks_of_stage_.rbegin()->second;
    if (ranks_of_stage_.size() > 1) {
      Add("last_stage_ideal",
          fmt::format("stage {}, the last, takes what all stages take on average", study.last_stage),
          {last.begin(), last.end()},
          ideal_for([&](const model::Operation& o) { return o.stage == study.last_stage; }));
    }
  }

  const model::OperationTrace& trace_;
  const OperationGraph& graph_;
  const std::vector<int64_t>& ideal_ns_;
  const double speedup_;
  const std::vector<int64_t>& observed_ns_;
  std::map<int32_t, int32_t> stage_of_rank_;
  std::map<int32_t, std::set<int32_t>> ranks_of_stage_;
  Medians of_rank_;
  Medians of_stage_;
  std::vector<Lever> levers_;
};

}  // namespace

std::vector<Lever> OperationLevers(const model::OperationTrace& trace, const OperationGraph& graph,
                                   const std::vector<int64_t>& ideal_ns, const StragglerStudy& study, double speedup) {
  if (trace.operations.empty()) return {};
  return LeverMaker(trace, graph, ideal_ns, speedup).Make(study);
}

}  // namespace lockstep::analysis
