#include "analysis/wait_states/wait_peers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/median.h"

namespace lockstep::analysis {
namespace {

constexpr size_t kMaxPeers = 16;
constexpr size_t kMinimumHistory = 3;

struct Match {
  uint32_t rank_index = 0;
  WaitStretch stretch;
};

class PeerChooser {
 public:
  PeerChooser(const model::Run& run, const Collectives& collectives, WaitPlan* plan)
      : run_(run), collectives_(collectives), plan_(plan) {
    for (const std::vector<SequencePlace>& places : plan->places) {
      std::map<int64_t, uint32_t>& begins = begin_of_step_.emplace_back();
      for (uint32_t p = 0; p < places.size(); ++p) {
        if (places[p].in_step == 0) begins.emplace(places[p].step, p);
      }
    }
    for (const LateNode& node : plan->nodes) wanted_.insert(KeyOf(node.rank_index, node.last));
    for (uint32_t r = 0; r < plan->places.size(); ++r) {
      for (uint32_t p = 0; p < plan->places[r].size(); ++p) {
        if (const Key key = KeyOf(r, p); wanted_.count(key) > 0) ranks_of_[key].push_back(r);
      }
    }
  }

  void Choose() {
    std::vector<std::vector<Match>> matches(plan_->nodes.size());
    std::vector<std::set<WaitStretch>> stretches(plan_->places.size());
    for (size_t n = 0; n < plan_->nodes.size(); ++n) {
      LateNode& node = plan_->nodes[n];
      matches[n] = PeersOf(&node);
      if (matches[n].empty()) continue;
      Confirm(matches[n], &node);
      if (node.lateness_ns <= 0) {
        matches[n].clear();
        continue;
      }
      stretches[node.rank_index].insert(OwnStretch(node));
      stretches[node.rank_index].insert(SinceStep(node.rank_index, OwnStretch(node)));
      for (const Match& match : matches[n]) {
        stretches[match.rank_index].insert(match.stretch);
        stretches[match.rank_index].insert(SinceStep(match.rank_index, match.stretch));
      }
    }
    for (const std::set<WaitStretch>& of_rank : stretches)
      plan_->stretches.emplace_back(of_rank.begin(), of_rank.end());
    for (size_t n = 0; n < plan_->nodes.size(); ++n) {
      LateNode& node = plan_->nodes[n];
      if (matches[n].empty()) continue;
      node.stretch = IndexOf(node.rank_index, OwnStretch(node));
      node.step_stretch = IndexOf(node.rank_index, SinceStep(node.rank_index, OwnStretch(node)));
      for (const Match& match : matches[n]) {
        node.peers.push_back({match.rank_index, IndexOf(match.rank_index, match.stretch),
                              IndexOf(match.rank_index, SinceStep(match.rank_index, match.stretch))});
      }
    }
  }

 private:
  using Key = std::tuple<int32_t, int64_t, uint32_t, uint64_t>;  // window, step, index in it, signature

  const SequencePlace& PlaceAt(uint32_t r, uint32_t p) const { return plan_->places[r][p]; }
  Key KeyOf(uint32_t r, uint32_t p) const {
    const SequencePlace& place = PlaceAt(r, p);
    return {run_.ranks[r].window, place.step, place.in_step, place.signature};
  }

  WaitStretch OwnStretch(const LateNode& node) const {
    return {PlaceAt(node.rank_index, node.first).previous_in_group, node.last};
  }

  /// The stretch, begun where the step before ended unless it begins earlier still.
  WaitStretch SinceStep(uint32_t r, const WaitStretch& stretch) const {
    const uint32_t begin = stretch.to - PlaceAt(r, stretch.to).in_step;
    if (!stretch.from || *stretch.from < begin) return stretch;
    WaitStretch since = stretch;
    since.from.reset();
    if (begin > 0) since.from = begin - 1;
    return since;
  }

  uint32_t IndexOf(uint32_t rank_index, const WaitStretch& stretch) const {
    const std::vector<WaitStretch>& all = plan_->stretches[rank_index];
    return static_cast<uint32_t>(std::lower_bound(all.begin(), all.end(), stretch) - all.begin());
  }

  /// Where `other` did in step `step` what the place did in its own.
  std::optional<uint32_t> SamePlace(const SequencePlace& place, uint32_t other, int64_t step) const {
    const auto begin = begin_of_step_[other].find(step);
    if (begin == begin_of_step_[other].end()) return std::nullopt;
    const uint32_t p = begin->second + place.in_step;
    if (p >= plan_->places[other].size()) return std::nullopt;
    const SequencePlace& same = PlaceAt(other, p);
    if (same.step != step || same.signature != place.signature) return std::nullopt;
    return p;
  }

  std::optional<Match> SameStretch(const LateNode& node, uint32_t other, int64_t steps_later) const {
    const WaitStretch own = OwnStretch(node);
    Match match;
    match.rank_index = other;
    const SequencePlace& last = PlaceAt(node.rank_index, own.to);
    const std::optional<uint32_t> to = SamePlace(last, other, last.step + steps_later);
    if (!to) return std::nullopt;
    match.stretch.to = *to;
    if (own.from) {
      const SequencePlace& first = PlaceAt(node.rank_index, *own.from);
      match.stretch.from = SamePlace(first, other, first.step + steps_later);
      if (!match.stretch.from || *match.stretch.from >= *to) return std::nullopt;
    }
    return match;
  }

  std::vector<Match> PeersOf(LateNode* node) {
    std::vector<Match> matches;
    const std::vector<uint32_t>& ranks = ranks_of_[KeyOf(node->rank_index, node->last)];
    const size_t stride = ranks.size() / (kMaxPeers + 2) + 1;
    for (size_t k = 0; k < ranks.size(); k += stride) {
      if (ranks[k] == node->rank_index) continue;
      if (const auto match = SameStretch(*node, ranks[k], 0)) matches.push_back(*match);
    }
    if (matches.empty()) matches = OtherMembers(*node);
    if (!matches.empty()) return matches;
    for (const auto& [step, begin] : begin_of_step_[node->rank_index]) {
      if (step == node->step || step < 0 || matches.size() >= kMaxPeers) continue;
      if (const auto match = SameStretch(*node, node->rank_index, step - node->step)) matches.push_back(*match);
    }
    node->by_history = true;
    if (matches.size() < kMinimumHistory) matches.clear();
    return matches;
  }

  /// Where programs differ or windows begin elsewhere, the members of the collective itself.
  std::vector<Match> OtherMembers(const LateNode& node) const {
    std::vector<Match> matches;
    const WaitStretch own = OwnStretch(node);
    const SequencePlace& last = PlaceAt(node.rank_index, own.to);
    const CollectiveInstance& instance = collectives_.instances[last.instance];
    if (IsMessage(instance)) return matches;
    const size_t stride = instance.members.size() / (kMaxPeers + 2) + 1;
    for (size_t m = 0; m < instance.members.size(); m += stride) {
      Match match;
      match.rank_index = static_cast<uint32_t>(instance.members[m].rank_index);
      if (match.rank_index == node.rank_index) continue;
      match.stretch.to = plan_->place_of_member[last.instance][m];
      if (own.from) {
        const uint32_t first = PlaceAt(node.rank_index, *own.from).instance;
        const std::vector<CollectiveMember>& members = collectives_.instances[first].members;
        for (size_t k = 0; k < members.size(); ++k) {
          if (members[k].rank_index == match.rank_index) match.stretch.from = plan_->place_of_member[first][k];
        }
        if (!match.stretch.from || *match.stretch.from >= match.stretch.to) continue;
      }
      matches.push_back(match);
    }
    return matches;
  }

  const CollectiveMember& MemberAt(uint32_t r, uint32_t p) const {
    const SequencePlace& place = PlaceAt(r, p);
    return collectives_.instances[place.instance].members[place.member];
  }

  /// Length of a stretch, which needs no clock of others.
  int64_t Length(uint32_t r, const WaitStretch& stretch) const {
    const int64_t from_ns = stretch.from ? MemberAt(r, *stretch.from).trace_end_ns : plan_->record_start_ns[r];
    return MemberAt(r, stretch.to).trace_start_ns - from_ns;
  }

  /// A rank that is last by its part (a pipeline's first stage) is late only against those with the same part.
  void Confirm(const std::vector<Match>& matches, LateNode* node) const {
    std::vector<int64_t> later;
    const auto own_uncertainty = run_.ranks[node->rank_index].clock.uncertainty_ns;
    int64_t uncertainty_ns = 0;
    for (const Match& match : matches) {
      if (node->by_history) {
        later.push_back(Length(node->rank_index, OwnStretch(*node)) - Length(match.rank_index, match.stretch));
        continue;
      }
      const auto uncertainty = run_.ranks[match.rank_index].clock.uncertainty_ns;
      if (!own_uncertainty || !uncertainty) {
        later.push_back(Length(node->rank_index, OwnStretch(*node)) - Length(match.rank_index, match.stretch));
        continue;
      }
      uncertainty_ns = std::max(uncertainty_ns, *own_uncertainty + *uncertainty);
      later.push_back(MemberAt(node->rank_index, node->last).arrival_ns -
                      MemberAt(match.rank_index, match.stretch.to).arrival_ns);
    }
    int64_t confirmed_ns = 0;
    if (!later.empty()) {
      const int64_t median_ns = UpperMedian(&later);
      confirmed_ns = median_ns > uncertainty_ns ? median_ns : 0;
    }
    // In a run of collectives the lateness of an earlier one may be the larger.
    if (node->first == node->last) {
      node->lateness_ns = node->total_ns = std::min(node->lateness_ns, confirmed_ns);
    } else if (confirmed_ns == 0) {
      node->lateness_ns = 0;
    }
  }

  const model::Run& run_;
  const Collectives& collectives_;
  WaitPlan* const plan_;
  std::vector<std::map<int64_t, uint32_t>> begin_of_step_;  // by rank: step number -> place
  std::set<Key> wanted_;
  std::map<Key, std::vector<uint32_t>> ranks_of_;
};

}  // namespace

void ChoosePeers(const model::Run& run, const Collectives& collectives, WaitPlan* plan) {
  PeerChooser(run, collectives, plan).Choose();
}

}  // namespace lockstep::analysis
