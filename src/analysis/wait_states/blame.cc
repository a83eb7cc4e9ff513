#include "analysis/wait_states/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/wait_states/late_reasons.h"
#include "analysis/wait_states/root_table.h"
#include "analysis/wait_states/slow_links.h"

namespace lockstep::analysis {
namespace {

constexpr size_t kMaxChains = 8;
constexpr int64_t kMinimumShareOfWaiting = 200;  // causes of less than this share of the job's waiting are noise
constexpr double kNegligible = 1e-3;             // of a wait

struct Weight {
  uint32_t root = 0;
  double direct = 0;      // of the waiting for this node: what the late rank did itself
  double propagated = 0;  // what it waited for
  double sum() const { return direct + propagated; }
};

/// Part of a member's waiting that goes to one late node.
struct Charge {
  int32_t node = 0;
  uint32_t member = 0;
  int64_t wait_ns = 0;
};

class Blamer {
 public:
  Blamer(const model::Run& run, const Collectives& collectives, const WaitPlan& plan,
         const std::vector<WaitRankActivity>& activity)
      : run_(run),
        collectives_(collectives),
        plan_(plan),
        activity_(activity),
        slow_ns_(SlowTransfers(collectives, plan)),
        nodes_(plan.nodes.size()) {}

  WaitStates Finish() {
    WaitStates result;
    std::map<std::pair<size_t, WaitStateKind>, WaitStateRow> rows;
    for (uint32_t i = 0; i < collectives_.instances.size(); ++i) {
      const CollectiveInstance& instance = collectives_.instances[i];
      if (!plan_.HasWait(i)) continue;
      for (uint32_t m = 0; m < instance.members.size(); ++m) {
        const int64_t wait_ns = plan_.WaitOf(collectives_, i, m);
        if (wait_ns <= 0) continue;
        const WaitStateKind kind = KindOf(instance, m);
        WaitStateRow& row = rows[{instance.members[m].rank_index, kind}];
        row.rank_index = instance.members[m].rank_index;
        row.kind = kind;
        ++row.count;
        row.wait_ns += wait_ns;
        result.wait_ns += wait_ns;
        ChargeWait(i, m, wait_ns);
      }
      ChargeTransfer(i);
    }
    for (const auto& [key, row] : rows) result.rows.push_back(row);
    for (uint32_t root = 0; root < roots_.size(); ++root) MakeRow(root, &result);
    std::sort(result.causes.begin(), result.causes.end(), [](const RootCauseRow& a, const RootCauseRow& b) {
      const int64_t a_ns = a.direct_wait_ns + a.propagated_wait_ns;
      const int64_t b_ns = b.direct_wait_ns + b.propagated_wait_ns;
      return std::tie(b_ns, a.rank_indices, a.cause) < std::tie(a_ns, b.rank_indices, b.cause);
    });
    return result;
  }

 private:
  struct NodeState {
    enum class Progress : uint8_t { kNew, kWalking, kDone } progress = Progress::kNew;
    std::vector<Weight> weights;  // by root; sums to at most 1
    std::vector<HeldUp> held_up;
  };

  static WaitStateKind KindOf(const CollectiveInstance& instance, uint32_t m) {
    if (!IsMessage(instance)) return WaitStateKind::kWaitAtCollective;
    const bool receives = instance.members[m].kind == CollectiveKind::kReceive;
    return receives ? WaitStateKind::kLateSender : WaitStateKind::kLateReceiver;
  }

  /// The late members of a collective by (arrival, member). Kept for the one asked for last: every member asks.
  const std::vector<Charge>& LateMembers(uint32_t i) const {
    if (late_members_of_ == i) return late_members_;
    late_members_of_ = i;
    late_members_.clear();
    const std::vector<int64_t>& arrivals = plan_.arrival_ns[i];
    for (uint32_t k = 0; k < arrivals.size(); ++k) {
      const int32_t node = plan_.node_of_member[i][k];
      if (node >= 0) late_members_.push_back({node, k, 0});
    }
    std::sort(late_members_.begin(), late_members_.end(), [&](const Charge& a, const Charge& b) {
      return std::pair(arrivals[a.member], a.member) < std::pair(arrivals[b.member], b.member);
    });
    return late_members_;
  }

  /// Whom member m waited for. While several late members are missing they share it.
  std::vector<Charge> Charges(uint32_t i, uint32_t m) const {
    const std::vector<int64_t>& arrivals = plan_.arrival_ns[i];
    const std::vector<Charge>& late = LateMembers(i);
    const auto after =
        std::upper_bound(late.begin(), late.end(), arrivals[m],
                         [&](int64_t time_ns, const Charge& charge) { return time_ns < arrivals[charge.member]; });
    std::vector<Charge> charges(after, late.end());
    int64_t at_ns = arrivals[m];
    int64_t shared_ns = 0;
    for (size_t first = 0; first < charges.size(); ++first) {
      const int64_t until_ns = arrivals[charges[first].member];
      const int64_t each_ns = (until_ns - at_ns) / static_cast<int64_t>(charges.size() - first);
      shared_ns += each_ns;  // Those that come later share all of the earlier pieces.
      charges[first].wait_ns = shared_ns;
      at_ns = until_ns;
    }
    for (Charge& charge : charges) {
      charge.wait_ns = std::min(charge.wait_ns, plan_.nodes[static_cast<size_t>(charge.node)].lateness_ns);
    }
    return charges;
  }

  static void AddWeight(std::vector<Weight>* weights, Weight added) {
    const auto at = std::lower_bound(weights->begin(), weights->end(), added.root,
                                     [](const Weight& weight, uint32_t root) { return weight.root < root; });
    if (at != weights->end() && at->root == added.root) {
      at->direct += added.direct;
      at->propagated += added.propagated;
    } else {
      weights->insert(at, added);
    }
  }

  /// What part of the waiting for a late node goes to which first cause. Each node is worked out once; one that is met
  /// again while its own reasons are being walked yields nothing.
  const NodeState& Walk(int32_t index) {
    NodeState& state = nodes_[static_cast<size_t>(index)];
    if (state.progress != NodeState::Progress::kNew) return state;
    state.progress = NodeState::Progress::kWalking;
    const LateNode& node = plan_.nodes[static_cast<size_t>(index)];
    const LateReasons reasons = FindLateReasons(node, activity_, plan_);
    std::vector<Weight> weights;
    if (reasons.excess_ns > 0 && node.lateness_ns > 0) {
      const double explained = std::min(1.0, Ratio(reasons.excess_ns, node.lateness_ns));
      const int64_t delay_ns = std::min(node.total_ns, reasons.excess_ns);
      for (const LateReason& reason : reasons.reasons) {
        const uint32_t root = roots_.NumberOf(node.rank_index, reason.cause);
        const double share = Ratio(reason.excess_ns, reasons.excess_ns);
        AddWeight(&weights, {root, explained * share, 0});
        NoteDelay(root, node.step, static_cast<int64_t>(share * static_cast<double>(delay_ns)));
        if (reason.excess_ns > roots_[root].worst.excess_ns) roots_[root].worst = reason;
      }
      for (const HeldUp& held : reasons.held_up) {
        AddHeldUp(node.rank_index, held, explained / static_cast<double>(reasons.excess_ns), &weights);
      }
    }
    state.held_up = reasons.held_up;
    std::erase_if(weights, [](const Weight& weight) { return weight.sum() < kNegligible; });
    state.weights = std::move(weights);
    state.progress = NodeState::Progress::kDone;
    return state;
  }

  void AddHeldUp(uint32_t rank_index, const HeldUp& held, double per_ns, std::vector<Weight>* weights) {
    const SequencePlace& place = plan_.places[rank_index][held.place];
    if (held.transfer_ns > 0 && slow_ns_[place.instance] > 0) {
      const int64_t slow_ns = std::min(held.transfer_ns, slow_ns_[place.instance]);
      AddWeight(weights, {kLinkRoot, 0, per_ns * static_cast<double>(slow_ns)});
    }
    if (held.wait_ns <= 0) return;
    const std::vector<Charge> charges = Charges(place.instance, place.member);
    int64_t charged_ns = 0;
    for (const Charge& charge : charges) charged_ns += charge.wait_ns;
    if (charged_ns <= 0) return;
    const double scale = std::min(1.0, Ratio(held.wait_ns, charged_ns));
    for (const Charge& charge : charges) {
      const double part = per_ns * scale * static_cast<double>(charge.wait_ns);
      // By value: the walk may grow the table it comes from.
      const std::vector<Weight> inner = Walk(charge.node).weights;
      for (const Weight& weight : inner) AddWeight(weights, {weight.root, 0, part * weight.sum()});
    }
  }

  void NoteDelay(uint32_t root, int64_t step, int64_t delay_ns) {
    int64_t& known_ns = roots_[root].delay_by_step[step];
    known_ns = step < 0 ? known_ns + delay_ns : std::max(known_ns, delay_ns);
  }

  void ChargeWait(uint32_t i, uint32_t m, int64_t wait_ns) {
    const auto victim = static_cast<uint32_t>(collectives_.instances[i].members[m].rank_index);
    for (const Charge& charge : Charges(i, m)) {
      const auto charged_ns = static_cast<double>(std::min(charge.wait_ns, wait_ns));
      const std::vector<Weight> weights = Walk(charge.node).weights;
      for (const Weight& weight : weights) {
        RootTable::Root& root = roots_[weight.root];
        root.direct_ns += charged_ns * weight.direct;
        root.propagated_ns += charged_ns * weight.propagated;
        if (weight.sum() > 0.1) root.instances.insert(i);
        RootTable::Victim& of_victim = root.victims[victim];
        of_victim.wait_ns += charged_ns * weight.sum();
        const auto part_ns = static_cast<int64_t>(charged_ns * weight.sum());
        if (part_ns > of_victim.worst.wait_ns) of_victim.worst = {part_ns, i, charge.node};
      }
    }
  }

  void ChargeTransfer(uint32_t i) {
    if (slow_ns_[i] <= 0) return;
    const CollectiveInstance& instance = collectives_.instances[i];
    RootTable::Root& root = roots_[kLinkRoot];
    root.instances.insert(i);
    root.direct_ns += static_cast<double>(slow_ns_[i]) * static_cast<double>(instance.members.size());
    const auto rank_index = static_cast<uint32_t>(instance.members.front().rank_index);
    slow_by_step_[plan_.places[rank_index][plan_.place_of_member[i].front()].step] += slow_ns_[i];
    for (const CollectiveMember& member : instance.members) slow_by_rank_[member.rank_index] += slow_ns_[i];
    slow_by_group_[instance.group] += slow_ns_[i];
  }

  void MakeRow(uint32_t number, WaitStates* result) {
    RootTable::Root& root = roots_[number];
    if (number == kLinkRoot) root.delay_by_step = slow_by_step_;
    const StepPattern pattern = FindStepPattern(root.delay_by_step, plan_.steps, plan_.FloorNs());
    RootCauseRow row;
    row.direct_wait_ns = std::llround(root.direct_ns);
    row.propagated_wait_ns = std::llround(root.propagated_ns);
    const int64_t wait_ns = row.direct_wait_ns + row.propagated_wait_ns;
    if (pattern.delay_ns <= 0 || wait_ns <= 0 || wait_ns < result->wait_ns / kMinimumShareOfWaiting) return;
    row.cause = root.cause;
    row.wait_ratio = result->wait_ns > 0 ? Ratio(wait_ns, result->wait_ns) : 0;
    row.collective_count = root.instances.size();
    row.delay_ns = pattern.delay_ns;
    row.steps = pattern.steps;
    row.step_count = static_cast<int64_t>(plan_.steps.size());
    row.pattern = pattern.pattern;
    row.period_steps = pattern.period_steps;
    if (number == kLinkRoot) {
      DescribeLink(root, &row);
    } else {
      row.rank_index = root.rank_index;
      row.rank_indices = {root.rank_index};
      row.name = run_.names[root.worst.name];
      row.own_ns = root.worst.own_ns;
      row.peers_ns = root.worst.peers_ns;
    }
    row.chains = ChainsOf(number);
    result->causes.push_back(std::move(row));
  }

  void DescribeLink(const RootTable::Root& root, RootCauseRow* row) const {
    int64_t most_ns = 0;
    for (const auto& [rank_index, slow_ns] : slow_by_rank_) most_ns = std::max(most_ns, slow_ns);
    for (const auto& [rank_index, slow_ns] : slow_by_rank_) {
      if (10 * slow_ns >= 9 * most_ns) row->rank_indices.push_back(rank_index);
    }
    if (row->rank_indices.size() == 1) row->rank_index = row->rank_indices.front();
    const auto group = std::max_element(slow_by_group_.begin(), slow_by_group_.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    row->name = group->first;
    uint32_t worst = *root.instances.begin();
    for (const uint32_t i : root.instances) {
      if (slow_ns_[i] > slow_ns_[worst]) worst = i;
    }
    row->own_ns = *collectives_.instances[worst].transfer_ns;
    row->peers_ns = row->own_ns - slow_ns_[worst];
  }

  std::vector<WaitChain> ChainsOf(uint32_t number) {
    std::vector<WaitChain> chains;
    for (const auto& [victim, of_victim] : roots_[number].victims) {
      if (of_victim.worst.node < 0) continue;
      WaitChain chain;
      chain.victim_rank_index = victim;
      chain.wait_ns = std::llround(of_victim.wait_ns);
      chain.hops = Follow(number, victim, of_victim.worst.instance, of_victim.worst.node);
      if (chain.wait_ns > 0) chains.push_back(std::move(chain));
    }
    std::stable_sort(chains.begin(), chains.end(),
                     [](const WaitChain& a, const WaitChain& b) { return a.wait_ns > b.wait_ns; });
    if (chains.size() > kMaxChains) chains.resize(kMaxChains);
    return chains;
  }

  static double DirectOf(const NodeState& state, uint32_t root) {
    for (const Weight& weight : state.weights) {
      if (weight.root == root) return weight.direct - weight.propagated;
    }
    return 0;
  }

  std::vector<WaitHop> Follow(uint32_t root, uint32_t victim, uint32_t instance, int32_t node) {
    std::vector<WaitHop> hops;
    std::set<int32_t> seen;
    for (;;) {
      const auto late = plan_.nodes[static_cast<size_t>(node)].rank_index;
      hops.push_back({instance, victim, late, WaitOf(instance, victim)});
      if (!seen.insert(node).second || DirectOf(nodes_[static_cast<size_t>(node)], root) > 0) return hops;
      double most = 0;
      std::pair<uint32_t, int32_t> next{0, -1};
      for (const HeldUp& held : nodes_[static_cast<size_t>(node)].held_up) {
        const SequencePlace& place = plan_.places[late][held.place];
        for (const Charge& charge : Charges(place.instance, place.member)) {
          double part = 0;
          for (const Weight& weight : Walk(charge.node).weights) {
            if (weight.root == root) part = weight.sum() * static_cast<double>(std::min(charge.wait_ns, held.wait_ns));
          }
          if (part > most) most = part, next = {place.instance, charge.node};
        }
      }
      if (next.second < 0) return hops;
      victim = late;
      std::tie(instance, node) = next;
    }
  }

  int64_t WaitOf(uint32_t instance, uint32_t rank_index) const {
    const std::vector<CollectiveMember>& members = collectives_.instances[instance].members;
    for (uint32_t m = 0; m < members.size(); ++m) {
      if (members[m].rank_index == rank_index) return plan_.WaitOf(collectives_, instance, m);
    }
    return 0;
  }

  static double Ratio(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

  const model::Run& run_;
  const Collectives& collectives_;
  const WaitPlan& plan_;
  const std::vector<WaitRankActivity>& activity_;
  std::vector<int64_t> slow_ns_;
  std::vector<NodeState> nodes_;
  mutable uint32_t late_members_of_ = UINT32_MAX;
  mutable std::vector<Charge> late_members_;
  RootTable roots_;
  std::map<int64_t, int64_t> slow_by_step_;
  std::map<size_t, int64_t> slow_by_rank_;
  std::map<std::string, int64_t> slow_by_group_;
};

}  // namespace

WaitStates FinishWaitStates(const model::Run& run, const Collectives& collectives, const WaitPlan& plan,
                            const std::vector<WaitRankActivity>& activity) {
  return Blamer(run, collectives, plan, activity).Finish();
}

}  // namespace lockstep::analysis
