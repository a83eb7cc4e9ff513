#include "analysis/wait_states/wait_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/launch_noise.h"
#include "analysis/mix_hash.h"
#include "analysis/wait_states/wait_peers.h"
#include "base/median.h"

namespace lockstep::analysis {
namespace {

constexpr int64_t kEndsDifferNs = 20'000;  // between members of one collective, by rounding, stamping and the network
constexpr int64_t kFloorShareOfStep = 100;

uint64_t GroupKey(const CollectiveInstance& instance) {
  uint64_t key = std::hash<std::string_view>()(instance.group);
  for (const CollectiveMember& member : instance.members) key = MixHash(key, member.rank_index);
  return key;
}

bool KnowsClocks(const model::Run& run, const CollectiveInstance& instance) {
  return std::all_of(instance.members.begin(), instance.members.end(), [&](const CollectiveMember& member) {
    return run.ranks[member.rank_index].clock.uncertainty_ns.has_value();
  });
}

std::vector<int64_t> ArrivalsOf(const model::Run& run, const CollectiveInstance& instance) {
  std::vector<int64_t> arrivals;
  if (!TellsWaits(instance)) return arrivals;
  const bool known = KnowsClocks(run, instance);
  if (!instance.synchronising && !(known && IsMessage(instance))) return arrivals;
  for (const CollectiveMember& member : instance.members) {
    arrivals.push_back(known ? member.arrival_ns : -member.duration_ns);
  }
  return arrivals;
}

/// Puts every rank's places in the order of its program and marks what they are.
class PlaceLister {
 public:
  PlaceLister(const Collectives& collectives, const std::vector<WaitRankFacts>& facts, WaitPlan* plan)
      : collectives_(collectives), facts_(facts), plan_(plan) {}

  void List() {
    std::vector<uint64_t> groups(collectives_.instances.size());
    plan_->places.resize(facts_.size());
    plan_->unexplained.resize(facts_.size());
    plan_->place_of_member.resize(collectives_.instances.size());
    for (size_t i = 0; i < collectives_.instances.size(); ++i) {
      const CollectiveInstance& instance = collectives_.instances[i];
      if (!plan_->HasWait(static_cast<uint32_t>(i))) {
        if (!instance.complete) NoteUnexplained(instance);
        continue;
      }
      groups[i] = GroupKey(instance);
      plan_->place_of_member[i].assign(instance.members.size(), UINT32_MAX);
      for (size_t m = 0; m < instance.members.size(); ++m) {
        SequencePlace place;
        place.instance = static_cast<uint32_t>(i);
        place.member = static_cast<uint32_t>(m);
        place.step = StepOf(instance.members[m]);
        plan_->places[instance.members[m].rank_index].push_back(place);
      }
    }
    for (std::vector<SequencePlace>& places : plan_->places) Order(groups, &places);
  }

 private:
  void NoteUnexplained(const CollectiveInstance& instance) {
    for (const CollectiveMember& member : instance.members) {
      plan_->unexplained[member.rank_index].push_back({member.trace_start_ns, member.trace_end_ns});
    }
  }

  /// The step in which the member's collective was issued (or, unknown, began): the last to start before it.
  int64_t StepOf(const CollectiveMember& member) const {
    const std::vector<model::Step>& steps = facts_[member.rank_index].steps;
    const int64_t time_ns = member.issue ? member.issue->trace_ns : member.trace_start_ns;
    const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                        [](int64_t value, const model::Step& step) { return value < step.start_ns; });
    return after == steps.begin() ? -1 : (after - 1)->number;
  }

  const CollectiveMember& MemberOf(const SequencePlace& place) const {
    return collectives_.instances[place.instance].members[place.member];
  }

  void Order(const std::vector<uint64_t>& groups, std::vector<SequencePlace>* places) {
    const bool all_issued = std::all_of(places->begin(), places->end(),
                                        [&](const SequencePlace& place) { return MemberOf(place).issue.has_value(); });
    const auto key = [&](const SequencePlace& place) {
      const CollectiveMember& member = MemberOf(place);
      return std::tuple(all_issued ? member.issue->trace_ns : member.trace_start_ns, member.trace_start_ns,
                        place.instance);
    };
    std::sort(places->begin(), places->end(),
              [&](const SequencePlace& a, const SequencePlace& b) { return key(a) < key(b); });
    std::map<uint64_t, uint32_t> last_of_group;
    for (uint32_t p = 0; p < places->size(); ++p) {
      SequencePlace& place = (*places)[p];
      const CollectiveInstance& instance = collectives_.instances[place.instance];
      const bool same_step = p > 0 && (*places)[p - 1].step == place.step;
      place.in_step = same_step ? (*places)[p - 1].in_step + 1 : 0;
      place.signature = same_step ? (*places)[p - 1].signature : 1;
      place.signature = MixHash(place.signature, std::hash<std::string_view>()(instance.name));
      place.signature = MixHash(place.signature, static_cast<uint64_t>(instance.bytes.value_or(-1)));
      place.signature = MixHash(place.signature, instance.members.size());
      place.signature = MixHash(place.signature, static_cast<uint64_t>(MemberOf(place).kind));
      plan_->place_of_member[place.instance][place.member] = p;
      const auto [slot, is_new] = last_of_group.emplace(groups[place.instance], p);
      if (!is_new) place.previous_in_group = std::exchange(slot->second, p);
    }
  }

  const Collectives& collectives_;
  const std::vector<WaitRankFacts>& facts_;
  WaitPlan* const plan_;
};

/// Joins late members of a group to runs.
class NodeFinder {
 public:
  NodeFinder(const model::Run& run, const Collectives& collectives, WaitPlan* plan)
      : run_(run), collectives_(collectives), plan_(plan) {}

  void Find() {
    plan_->node_of_member.resize(collectives_.instances.size());
    for (uint32_t i = 0; i < collectives_.instances.size(); ++i) {
      const CollectiveInstance& instance = collectives_.instances[i];
      if (!plan_->HasWait(i)) continue;
      plan_->node_of_member[i].assign(instance.members.size(), -1);
      LookAt(i);
      for (uint32_t m = 0; m < instance.members.size(); ++m) {
        if (const int64_t lateness_ns = Lateness(i, m); lateness_ns > 0) Note(i, m, lateness_ns);
      }
    }
  }

 private:
  /// Sum of the member's and the worst other's; where durations are compared instead, by how much ends may differ.
  int64_t Uncertainty(const CollectiveInstance& instance, size_t m) const {
    if (!known_) return kEndsDifferNs;
    const int64_t own_ns = *run_.ranks[instance.members[m].rank_index].clock.uncertainty_ns;
    return own_ns + (own_ns == worst_ns_ ? second_worst_ns_ : worst_ns_);
  }

  /// What every member of a collective asks for.
  void LookAt(uint32_t i) {
    const CollectiveInstance& instance = collectives_.instances[i];
    sorted_ = plan_->arrival_ns[i];
    std::sort(sorted_.begin(), sorted_.end());
    known_ = KnowsClocks(run_, instance);
    worst_ns_ = second_worst_ns_ = 0;
    for (const CollectiveMember& member : instance.members) {
      const int64_t own_ns = run_.ranks[member.rank_index].clock.uncertainty_ns.value_or(0);
      second_worst_ns_ = std::max(second_worst_ns_, std::min(own_ns, worst_ns_));
      worst_ns_ = std::max(worst_ns_, own_ns);
    }
  }

  /// Against the median of the others; 0 where the clocks cannot tell.
  int64_t Lateness(uint32_t i, size_t m) const {
    const int64_t own_ns = plan_->arrival_ns[i][m];
    const size_t middle = (sorted_.size() - 2) / 2;  // of the others, if this is in the later half
    if (own_ns <= sorted_[middle]) return 0;
    const int64_t lateness_ns = own_ns - sorted_[middle];
    if (lateness_ns < kLaunchNoiseNs) return 0;
    return lateness_ns > Uncertainty(collectives_.instances[i], m) ? lateness_ns : 0;
  }

  void Note(uint32_t i, uint32_t m, int64_t lateness_ns) {
    const auto rank = static_cast<uint32_t>(collectives_.instances[i].members[m].rank_index);
    const uint32_t p = plan_->place_of_member[i][m];
    const SequencePlace& place = plan_->places[rank][p];
    if (place.previous_in_group) {
      const SequencePlace& previous = plan_->places[rank][*place.previous_in_group];
      const int32_t node = plan_->node_of_member[previous.instance].empty()
                               ? -1
                               : plan_->node_of_member[previous.instance][previous.member];
      if (node >= 0 && previous.step == place.step && !IsMessage(collectives_.instances[i])) {
        LateNode& run = plan_->nodes[static_cast<size_t>(node)];
        run.last = p;
        run.lateness_ns = std::max(run.lateness_ns, lateness_ns);
        run.total_ns += lateness_ns;
        plan_->node_of_member[i][m] = node;
        return;
      }
    }
    LateNode node;
    node.rank_index = rank;
    node.first = node.last = p;
    node.step = place.step;
    node.lateness_ns = node.total_ns = lateness_ns;
    plan_->node_of_member[i][m] = static_cast<int32_t>(plan_->nodes.size());
    plan_->nodes.push_back(std::move(node));
  }

  const model::Run& run_;
  const Collectives& collectives_;
  WaitPlan* const plan_;
  std::vector<int64_t> sorted_;  // arrivals
  bool known_ = false;           // are the members' clocks
  int64_t worst_ns_ = 0;         // of their uncertainties, and the second; equal where two share the worst
  int64_t second_worst_ns_ = 0;
};

void MeasureSteps(const model::Run& run, const std::vector<WaitRankFacts>& facts, WaitPlan* plan) {
  std::vector<int64_t> lengths;
  std::set<int64_t> numbers;
  for (size_t r = 0; r < facts.size(); ++r) {
    for (const model::Step& step : facts[r].steps) lengths.push_back(step.end_ns - step.start_ns);
    for (const SequencePlace& place : plan->places[r]) {
      if (place.step >= 0) numbers.insert(place.step);
    }
  }
  if (!lengths.empty()) {
    plan->step_ns = UpperMedian(&lengths);
  } else {
    for (const model::RankTrace& rank : run.ranks) {
      if (rank.first_ns && rank.last_ns) plan->step_ns = std::max(plan->step_ns, *rank.last_ns - *rank.first_ns);
    }
  }
  plan->steps.assign(numbers.begin(), numbers.end());
  std::map<int32_t, int64_t> start_of_window;
  for (const model::RankTrace& rank : run.ranks) {
    if (!rank.first_ns) continue;
    const int64_t first_ns = rank.clock.ToRun(*rank.first_ns);
    const auto [slot, is_new] = start_of_window.emplace(rank.window, first_ns);
    if (!is_new) slot->second = std::max(slot->second, first_ns);
  }
  for (const model::RankTrace& rank : run.ranks) {
    const int64_t run_ns = start_of_window[rank.window];
    plan->record_start_ns.push_back(run_ns + rank.clock.OffsetAt(run_ns + rank.clock.offset_ns));
  }
}

}  // namespace

bool IsMessage(const CollectiveInstance& instance) {
  if (instance.members.size() != 2) return false;
  const CollectiveKind first = instance.members[0].kind;
  const CollectiveKind second = instance.members[1].kind;
  return (first == CollectiveKind::kSend && second == CollectiveKind::kReceive) ||
         (first == CollectiveKind::kReceive && second == CollectiveKind::kSend);
}

int64_t WaitPlan::WaitOf(const Collectives& collectives, uint32_t instance, uint32_t member) const {
  if (!HasWait(instance)) return 0;
  const int64_t wait_ns = last_arrival_ns[instance] - arrival_ns[instance][member];
  const CollectiveInstance& of = collectives.instances[instance];
  return IsMessage(of) ? std::min(wait_ns, of.members[member].duration_ns) : wait_ns;
}

int64_t WaitPlan::FloorNs() const { return std::max(kLaunchNoiseNs, step_ns / kFloorShareOfStep); }

WaitPlan PlanWaitStates(const model::Run& run, const Collectives& collectives,
                        const std::vector<WaitRankFacts>& facts) {
  WaitPlan plan;
  for (const CollectiveInstance& instance : collectives.instances) {
    plan.arrival_ns.push_back(ArrivalsOf(run, instance));
    const std::vector<int64_t>& arrivals = plan.arrival_ns.back();
    plan.last_arrival_ns.push_back(arrivals.empty() ? 0 : *std::max_element(arrivals.begin(), arrivals.end()));
  }
  PlaceLister(collectives, facts, &plan).List();
  MeasureSteps(run, facts, &plan);
  NodeFinder(run, collectives, &plan).Find();
  ChoosePeers(run, collectives, &plan);
  return plan;
}

}  // namespace lockstep::analysis
