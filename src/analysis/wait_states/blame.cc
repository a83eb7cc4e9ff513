#include "analysis/wait_states/blame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/wait_states/culprits.h"
#include "analysis/wait_states/late_reasons.h"
#include "analysis/wait_states/root_table.h"
#include "analysis/wait_states/slow_links.h"
#include "analysis/wait_states/wait_rounds.h"
#include "analysis/wait_states/wait_sharing.h"
#include "analysis/wait_states/weight_sum.h"

namespace lockstep::analysis {
namespace {

constexpr size_t kMaxChains = 8;
constexpr int64_t kMinimumShareOfWaiting = 200;  // causes of less than this share of the job's waiting are noise
constexpr double kNegligible = 1e-3;             // of a wait
constexpr double kLeastPassedOn = 0.01;          // of a cause's waiting; who passes on less has no part in it

class Blamer {
 public:
  Blamer(const model::Run& run, const Collectives& collectives, const WaitPlan& plan,
         const std::vector<WaitRankActivity>& activity)
      : run_(run),
        collectives_(collectives),
        plan_(plan),
        activity_(activity),
        rounds_(plan),
        slow_ns_(SlowTransfers(collectives, plan)),
        nodes_(plan.nodes.size()) {}

  WaitStates Finish() {
    WaitStates result;
    std::map<std::pair<size_t, WaitStateKind>, WaitStateRow> rows;
    for (uint32_t i = 0; i < collectives_.instances.size(); ++i) {
      const CollectiveInstance& instance = collectives_.instances[i];
      unrecorded_ns_ += static_cast<double>(instance.unrecorded_wait_ns) * static_cast<double>(instance.members.size());
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
      }
      ChargeWaits(i);
      ChargeTransfer(i);
    }
    for (const auto& [key, row] : rows) result.rows.push_back(row);
    for (uint32_t root = 0; root < roots_.size(); ++root) MakeRow(root, result.wait_ns);
    FindVictims();
    for (auto& [root, row] : told_) {
      row.chains = ChainsOf(root);
      row.passed_on_by = ThosePassingOn(root);
      result.causes.push_back(std::move(row));
    }
    std::sort(result.causes.begin(), result.causes.end(), [](const RootCauseRow& a, const RootCauseRow& b) {
      const int64_t a_ns = a.direct_wait_ns + a.propagated_wait_ns;
      const int64_t b_ns = b.direct_wait_ns + b.propagated_wait_ns;
      return std::tie(b_ns, a.rank_indices, a.cause) < std::tie(a_ns, b.rank_indices, b.cause);
    });
    result.culprits = FindCulprits(TableOfWaits(), result.causes, result.wait_ns);
    late_start_.wait_ns = std::llround(late_start_ns_);
    late_start_.wait_ratio = result.wait_ns > 0 ? Ratio(late_start_.wait_ns, result.wait_ns) : 0;
    result.late_start = late_start_;
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

  /// Kept for the collectives asked for last: those of one time look back on the same few.
  std::shared_ptr<const WaitSharing> SharingOf(uint32_t i) {
    auto& [instance, sharing] = sharings_[i % sharings_.size()];
    if (sharing == nullptr || instance != i) {
      instance = i;
      sharing = std::make_shared<const WaitSharing>(plan_, i);
    }
    return sharing;
  }

  /// What part of the waiting for a late node goes to which first cause. Each node is worked out once; one that is met
  /// again while its own reasons are being walked yields nothing.
  const NodeState& Walk(int32_t index) {
    NodeState& state = nodes_[static_cast<size_t>(index)];
    if (state.progress != NodeState::Progress::kNew) return state;
    state.progress = NodeState::Progress::kWalking;
    const LateNode& node = plan_.nodes[static_cast<size_t>(index)];
    const LateReasons reasons = FindLateReasons(node, activity_, plan_);
    if (reasons.excess_ns > 0 && node.lateness_ns > 0) {
      const double explained = std::min(1.0, Ratio(reasons.excess_ns, node.lateness_ns));
      const int64_t delay_ns = std::min(node.total_ns, reasons.excess_ns);
      std::vector<std::pair<uint32_t, double>> own;
      for (const LateReason& reason : reasons.reasons) {
        const uint32_t root = roots_.NumberOf(node.rank_index, reason.cause);
        const double share = Ratio(reason.excess_ns, reasons.excess_ns);
        own.emplace_back(root, explained * share);
        NoteDelay(root, node.step, static_cast<int64_t>(share * static_cast<double>(delay_ns)));
        if (reason.excess_ns > roots_[root].worst.excess_ns) roots_[root].worst = reason;
      }
      // All walks before the first sum: a walk that comes back here sums up with the same table.
      for (const HeldUp& held : reasons.held_up) WalkThoseWaitedFor(node.rank_index, held);
      for (const auto& [root, direct] : own) sum_.Add({root, direct, 0});
      for (const HeldUp& held : reasons.held_up) {
        AddHeldUp(node.rank_index, held, explained / static_cast<double>(reasons.excess_ns));
      }
      state.weights = sum_.Take(kNegligible);
    }
    state.held_up = reasons.held_up;
    state.progress = NodeState::Progress::kDone;
    return state;
  }

  /// The waiting that the late members are charged with where this one was held up.
  static int64_t ChargedNs(const WaitSharing& sharing, const WaitSharing::Wait& wait) {
    int64_t charged_ns = 0;
    for (size_t k = wait.first; k < sharing.late().size(); ++k) charged_ns += sharing.Charge(wait, k);
    return charged_ns;
  }

  void WalkThoseWaitedFor(uint32_t rank_index, const HeldUp& held) {
    if (held.wait_ns <= 0) return;
    const SequencePlace& place = plan_.places[rank_index][held.place];
    const auto sharing = SharingOf(place.instance);
    const WaitSharing::Wait wait = sharing->WaitOf(place.member);
    if (ChargedNs(*sharing, wait) <= 0) return;
    for (size_t k = wait.first; k < sharing->late().size(); ++k) Walk(sharing->late()[k].node);
  }

  void AddHeldUp(uint32_t rank_index, const HeldUp& held, double per_ns) {
    const SequencePlace& place = plan_.places[rank_index][held.place];
    if (held.transfer_ns > 0 && slow_ns_[place.instance] > 0) {
      const int64_t slow_ns = std::min(held.transfer_ns, slow_ns_[place.instance]);
      sum_.Add({kLinkRoot, 0, per_ns * static_cast<double>(slow_ns)});
    }
    if (held.wait_ns <= 0) return;
    const auto sharing = SharingOf(place.instance);
    const WaitSharing::Wait wait = sharing->WaitOf(place.member);
    const int64_t charged_ns = ChargedNs(*sharing, wait);
    if (charged_ns <= 0) return;
    const double scale = std::min(1.0, Ratio(held.wait_ns, charged_ns));
    for (size_t k = wait.first; k < sharing->late().size(); ++k) {
      const std::vector<Weight>& weights = nodes_[static_cast<size_t>(sharing->late()[k].node)].weights;
      if (weights.empty()) continue;
      const double part = per_ns * scale * static_cast<double>(sharing->Charge(wait, k));
      for (const Weight& weight : weights) sum_.Add({weight.root, 0, part * weight.sum()});
    }
  }

  void NoteDelay(uint32_t root, int64_t step, int64_t delay_ns) {
    int64_t& known_ns = roots_[root].delay_by_step[step];
    known_ns = step < 0 ? known_ns + delay_ns : std::max(known_ns, delay_ns);
  }

  /// In the order in which the members' waiting leads to them. Out: the first of them that another rank waited for.
  size_t WalkLate(const WaitSharing& sharing, uint32_t i) {
    size_t walked_from = sharing.late().size();
    for (uint32_t m = 0; m < plan_.arrival_ns[i].size() && walked_from > 0; ++m) {
      if (plan_.WaitOf(collectives_, i, m) <= 0) continue;
      const size_t first = sharing.WaitOf(m).first;
      for (size_t k = first; k < walked_from; ++k) Walk(sharing.late()[k].node);
      walked_from = std::min(walked_from, first);
    }
    return walked_from;
  }

  /// A member of a message is never charged with more than the waiting. In collectives the charge cannot exceed it.
  int64_t ChargeOf(const WaitSharing& sharing, const WaitSharing::Wait& wait, size_t k, uint32_t i, uint32_t m) const {
    return std::min(sharing.Charge(wait, k), plan_.WaitOf(collectives_, i, m));
  }

  std::vector<int64_t> TotalsOf(const WaitSharing& sharing, uint32_t i) const {
    if (!IsMessage(collectives_.instances[i])) return sharing.Totals();
    std::vector<int64_t> totals(sharing.late().size());
    for (uint32_t m = 0; m < plan_.arrival_ns[i].size(); ++m) {
      if (plan_.WaitOf(collectives_, i, m) <= 0) continue;
      const WaitSharing::Wait wait = sharing.WaitOf(m);
      for (size_t k = wait.first; k < totals.size(); ++k) totals[k] += ChargeOf(sharing, wait, k, i, m);
    }
    return totals;
  }

  void ChargeWaits(uint32_t i) {
    const auto sharing = SharingOf(i);
    if (sharing->late().empty()) return;
    const size_t waited_for = WalkLate(*sharing, i);
    const std::vector<int64_t> totals = TotalsOf(*sharing, i);
    for (size_t k = waited_for; k < totals.size(); ++k) {
      const auto charged_ns = static_cast<double>(totals[k]);
      const LateNode& node = plan_.nodes[static_cast<size_t>(sharing->late()[k].node)];
      const size_t round = rounds_.Of(node.step, i);
      double told = 0;
      for (const Weight& weight : nodes_[static_cast<size_t>(sharing->late()[k].node)].weights) {
        RootTable::Root& root = roots_[weight.root];
        root.direct_ns += charged_ns * weight.direct;
        root.propagated_ns += charged_ns * weight.propagated;
        root.wait_by_round[round] += charged_ns * weight.sum();
        told += weight.sum();
        if (weight.sum() > 0.1) root.instances.insert(i);
      }
      if (!node.peers.empty() && !plan_.stretches[node.rank_index][node.stretch].from) {
        late_start_ns_ += charged_ns * std::max(0.0, 1 - told);
        const auto [first, last] = std::minmax_element(plan_.arrival_ns[i].begin(), plan_.arrival_ns[i].end());
        late_start_.spread_ns = std::max(late_start_.spread_ns, *last - *first);
      }
    }
  }

  /// The ranks that waited because of the listed causes. This needs pairs of members, so it is not done for other
  /// causes: in a large group half of the ranks are late by chance, each by its own cause.
  void FindVictims() {
    for (uint32_t i = 0; i < collectives_.instances.size() && !told_.empty(); ++i) {
      if (!plan_.HasWait(i)) continue;
      const auto sharing = SharingOf(i);
      std::vector<size_t> by_told_cause;
      for (size_t k = 0; k < sharing->late().size(); ++k) {
        const std::vector<Weight>& weights = nodes_[static_cast<size_t>(sharing->late()[k].node)].weights;
        if (std::any_of(weights.begin(), weights.end(), [&](const Weight& w) { return told_.count(w.root) > 0; })) {
          by_told_cause.push_back(k);
        }
      }
      for (uint32_t m = 0; m < plan_.arrival_ns[i].size() && !by_told_cause.empty(); ++m) {
        if (plan_.WaitOf(collectives_, i, m) <= 0) continue;
        const WaitSharing::Wait wait = sharing->WaitOf(m);
        const auto first = std::lower_bound(by_told_cause.begin(), by_told_cause.end(), wait.first);
        for (auto k = first; k != by_told_cause.end(); ++k) {
          AddVictim(i, m, sharing->late()[*k].node, ChargeOf(*sharing, wait, *k, i, m));
        }
      }
    }
  }

  void AddVictim(uint32_t i, uint32_t m, int32_t node, int64_t charged_ns) {
    const auto victim = static_cast<uint32_t>(collectives_.instances[i].members[m].rank_index);
    for (const Weight& weight : nodes_[static_cast<size_t>(node)].weights) {
      if (told_.count(weight.root) == 0) continue;
      RootTable::Root& root = roots_[weight.root];
      RootTable::Victim& of_victim = root.victims[victim];
      const double wait_ns = static_cast<double>(charged_ns) * weight.sum();
      of_victim.wait_ns += wait_ns;
      const size_t late = plan_.nodes[static_cast<size_t>(node)].rank_index;
      root.passed_on_ns[late] += static_cast<double>(charged_ns) * weight.propagated;
      const auto part_ns = static_cast<int64_t>(wait_ns);
      if (part_ns > of_victim.worst.wait_ns) of_victim.worst = {part_ns, i, node};
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

  void MakeRow(uint32_t number, int64_t job_wait_ns) {
    RootTable::Root& root = roots_[number];
    if (number == kLinkRoot) root.delay_by_step = slow_by_step_;
    const StepPattern pattern = FindStepPattern(root.delay_by_step, plan_.steps, plan_.FloorNs());
    RootCauseRow row;
    row.direct_wait_ns = std::llround(root.direct_ns);
    row.propagated_wait_ns = std::llround(root.propagated_ns);
    const int64_t wait_ns = row.direct_wait_ns + row.propagated_wait_ns;
    if (pattern.delay_ns <= 0 || wait_ns <= 0 || wait_ns < job_wait_ns / kMinimumShareOfWaiting) return;
    row.cause = root.cause;
    row.wait_ratio = job_wait_ns > 0 ? std::min(1.0, Ratio(wait_ns, job_wait_ns)) : 0;
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
    told_.emplace(number, std::move(row));
  }

  WaitTable TableOfWaits() {
    WaitTable table;
    table.round_count = rounds_.count();
    table.floor_ns = static_cast<double>(plan_.FloorNs());
    table.unrecorded_ns = unrecorded_ns_;
    for (size_t r = 0; r < plan_.places.size(); ++r) {
      table.windows.push_back(plan_.places[r].empty() ? -1 : run_.ranks[r].window);
    }
    for (uint32_t number = 0; number < roots_.size(); ++number) {
      if (number == kLinkRoot) continue;
      table.wait_ns[{roots_[number].rank_index, roots_[number].cause}] = std::move(roots_[number].wait_by_round);
    }
    return table;
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
    std::vector<std::pair<int64_t, uint32_t>> victims;  // most waiting first, then by rank
    for (const auto& [victim, of_victim] : roots_[number].victims) {
      const int64_t wait_ns = std::llround(of_victim.wait_ns);
      if (of_victim.worst.node >= 0 && wait_ns > 0) victims.emplace_back(-wait_ns, victim);
    }
    const size_t count = std::min(victims.size(), kMaxChains);
    std::partial_sort(victims.begin(), victims.begin() + static_cast<std::ptrdiff_t>(count), victims.end());
    std::vector<WaitChain> chains;
    for (size_t c = 0; c < count; ++c) {
      const auto [negative_ns, victim] = victims[c];
      const RootTable::Worst& worst = roots_[number].victims[victim].worst;
      chains.push_back({victim, -negative_ns, Follow(number, victim, worst.instance, worst.node)});
    }
    return chains;
  }

  std::vector<size_t> ThosePassingOn(uint32_t number) {
    const RootTable::Root& root = roots_[number];
    std::vector<size_t> ranks;
    for (const auto& [rank_index, wait_ns] : root.passed_on_ns) {
      if (wait_ns >= kLeastPassedOn * (root.direct_ns + root.propagated_ns)) ranks.push_back(rank_index);
    }
    return ranks;
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
        const auto sharing = SharingOf(place.instance);
        const WaitSharing::Wait wait = sharing->WaitOf(place.member);
        for (size_t k = wait.first; k < sharing->late().size(); ++k) {
          const int32_t late_node = sharing->late()[k].node;
          double part = 0;
          for (const Weight& weight : Walk(late_node).weights) {
            if (weight.root != root) continue;
            part = weight.sum() * static_cast<double>(std::min(sharing->Charge(wait, k), held.wait_ns));
          }
          if (part > most) most = part, next = {place.instance, late_node};
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
  const WaitRounds rounds_;
  std::vector<int64_t> slow_ns_;
  std::vector<NodeState> nodes_;
  std::array<std::pair<uint32_t, std::shared_ptr<const WaitSharing>>, 16> sharings_;
  WeightSum sum_;
  RootTable roots_;
  std::map<uint32_t, RootCauseRow> told_;  // by root: what is worth telling
  std::map<int64_t, int64_t> slow_by_step_;
  std::map<size_t, int64_t> slow_by_rank_;
  std::map<std::string, int64_t> slow_by_group_;
  LateStart late_start_;
  double late_start_ns_ = 0;
  double unrecorded_ns_ = 0;
};

}  // namespace

WaitStates FinishWaitStates(const model::Run& run, const Collectives& collectives, const WaitPlan& plan,
                            const std::vector<WaitRankActivity>& activity) {
  return Blamer(run, collectives, plan, activity).Finish();
}

}  // namespace lockstep::analysis
