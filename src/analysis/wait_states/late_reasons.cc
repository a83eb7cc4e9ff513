#include "analysis/wait_states/late_reasons.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/median.h"

namespace lockstep::analysis {
namespace {

constexpr int64_t kMinimumReasonNs = 2'000;
constexpr int64_t kMinimumReasonShare = 10;  // a reason below a tenth of the largest explains nothing
constexpr size_t kEnoughForSpread = 4;

int64_t MedianOrZero(std::vector<int64_t>* values) { return values->empty() ? 0 : LowerMedian(values); }

/// Own value less the peers' median, 0 unless it stands out from what the peers differ by among themselves.
int64_t Excess(int64_t own_ns, std::vector<int64_t>* peers) {
  const int64_t median_ns = MedianOrZero(peers);
  const int64_t excess_ns = own_ns - median_ns;
  if (excess_ns < kMinimumReasonNs) return 0;
  if (peers->size() >= kEnoughForSpread) {
    const auto upper = peers->begin() + static_cast<std::ptrdiff_t>(3 * peers->size() / 4);
    std::nth_element(peers->begin(), upper, peers->end());
    if (excess_ns < 2 * (*upper - median_ns)) return 0;
  }
  return excess_ns;
}

class ReasonFinder {
 public:
  ReasonFinder(const LateNode& node, const std::vector<WaitRankActivity>& activity, const WaitPlan& plan)
      : own_(activity[node.rank_index].stretches[node.stretch]) {
    if (node.step_stretch != node.stretch) own_step_ = &activity[node.rank_index].stretches[node.step_stretch];
    for (const PeerStretch& peer : node.peers) {
      peers_.push_back(&activity[peer.rank_index].stretches[peer.stretch]);
      step_peers_.push_back(&activity[peer.rank_index].stretches[peer.step_stretch]);
      const WaitStretch& stretch = plan.stretches[peer.rank_index][peer.stretch];
      shift_.push_back(static_cast<int64_t>(stretch.to) - static_cast<int64_t>(node.last));
    }
  }

  LateReasons Find() {
    LateReasons result;
    CompareCauses(&result);
    CompareWaits(&result);
    int64_t largest_ns = 0;
    for (const LateReason& reason : result.reasons) largest_ns = std::max(largest_ns, reason.excess_ns);
    for (const HeldUp& held : result.held_up) largest_ns = std::max(largest_ns, held.wait_ns + held.transfer_ns);
    const int64_t least_ns = largest_ns / kMinimumReasonShare;
    std::erase_if(result.reasons, [&](const LateReason& reason) { return reason.excess_ns < least_ns; });
    std::erase_if(result.held_up, [&](const HeldUp& held) { return held.wait_ns + held.transfer_ns < least_ns; });
    for (const LateReason& reason : result.reasons) result.excess_ns += reason.excess_ns;
    for (const HeldUp& held : result.held_up) result.excess_ns += held.wait_ns + held.transfer_ns;
    std::sort(result.reasons.begin(), result.reasons.end(), [](const LateReason& a, const LateReason& b) {
      return std::tie(b.excess_ns, a.cause) < std::tie(a.excess_ns, b.cause);
    });
    return result;
  }

 private:
  static std::array<int64_t, kRootCauseCount> Totals(const StretchActivity& stretch) {
    std::array<int64_t, kRootCauseCount> totals{};
    for (const ActivityShare& share : stretch.shares) totals[static_cast<size_t>(share.cause)] += share.duration_ns;
    return totals;
  }

  /// More than this the rank cannot have done more than its peers: the rest they did while they waited for it.
  int64_t ExcessSinceStep(size_t cause) const {
    if (own_step_ == nullptr) return INT64_MAX;
    std::vector<int64_t> values;
    for (const StretchActivity* peer : step_peers_) values.push_back(Totals(*peer)[cause]);
    return Totals(*own_step_)[cause] - MedianOrZero(&values);
  }

  void CompareCauses(LateReasons* result) const {
    const std::array<int64_t, kRootCauseCount> own = Totals(own_);
    std::vector<std::array<int64_t, kRootCauseCount>> of_peers;
    for (const StretchActivity* peer : peers_) of_peers.push_back(Totals(*peer));
    for (size_t c = 0; c < kRootCauseCount; ++c) {
      if (own[c] < kMinimumReasonNs) continue;
      std::vector<int64_t> values;
      for (const auto& totals : of_peers) values.push_back(totals[c]);
      LateReason reason;
      reason.cause = static_cast<RootCause>(c);
      reason.excess_ns = std::min(Excess(own[c], &values), ExcessSinceStep(c));
      if (reason.excess_ns < kMinimumReasonNs) continue;
      Name(&reason);
      result->reasons.push_back(reason);
    }
  }

  /// The name that grew most.
  void Name(LateReason* reason) const {
    int64_t most_ns = INT64_MIN;
    for (const ActivityShare& share : own_.shares) {
      if (share.cause != reason->cause) continue;
      std::vector<int64_t> values;
      for (const StretchActivity* peer : peers_) values.push_back(DurationOf(*peer, share));
      const int64_t peers_ns = MedianOrZero(&values);
      if (share.duration_ns - peers_ns <= most_ns) continue;
      most_ns = share.duration_ns - peers_ns;
      reason->name = share.name;
      reason->own_ns = share.duration_ns;
      reason->peers_ns = peers_ns;
    }
  }

  static int64_t DurationOf(const StretchActivity& stretch, const ActivityShare& wanted) {
    const auto at = std::lower_bound(stretch.shares.begin(), stretch.shares.end(), wanted,
                                     [](const ActivityShare& a, const ActivityShare& b) {
                                       return std::tie(a.cause, a.name) < std::tie(b.cause, b.name);
                                     });
    if (at == stretch.shares.end() || at->cause != wanted.cause || at->name != wanted.name) return 0;
    return at->duration_ns;
  }

  void CompareWaits(LateReasons* result) const {
    for (const OwnWait& own : own_.waits) {
      if (own.wait_ns + own.transfer_ns < kMinimumReasonNs) continue;
      std::vector<int64_t> waits;
      std::vector<int64_t> transfers;
      for (size_t k = 0; k < peers_.size(); ++k) {
        const int64_t place = static_cast<int64_t>(own.place) + shift_[k];
        const std::vector<OwnWait>& all = peers_[k]->waits;
        const auto at = std::lower_bound(all.begin(), all.end(), place, [](const OwnWait& wait, int64_t wanted) {
          return static_cast<int64_t>(wait.place) < wanted;
        });
        const bool found = at != all.end() && static_cast<int64_t>(at->place) == place;
        waits.push_back(found ? at->wait_ns : 0);
        transfers.push_back(found ? at->transfer_ns : 0);
      }
      const HeldUp held{own.place, Excess(own.wait_ns, &waits), Excess(own.transfer_ns, &transfers)};
      if (held.wait_ns + held.transfer_ns > 0) result->held_up.push_back(held);
    }
  }

  const StretchActivity& own_;
  const StretchActivity* own_step_ = nullptr;  // where that is another stretch
  std::vector<const StretchActivity*> peers_;
  std::vector<const StretchActivity*> step_peers_;
  std::vector<int64_t> shift_;  // a peer's place less that of the late rank
};

}  // namespace

LateReasons FindLateReasons(const LateNode& node, const std::vector<WaitRankActivity>& activity, const WaitPlan& plan) {
  if (node.peers.empty()) return {};
  return ReasonFinder(node, activity, plan).Find();
}

}  // namespace lockstep::analysis
