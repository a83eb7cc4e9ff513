#include "analysis/hang/group_vote.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/hang/mismatch_kind.h"
#include "analysis/hang/signature_match.h"
#include "analysis/hang/size_rule.h"

namespace lockstep::hang {
namespace {

struct Party {
  uint32_t signature = 0;
  std::vector<int32_t> ranks;
  std::vector<int32_t> siblings;
  double votes = 0;
};

class GroupVote {
 public:
  GroupVote(const CallHistory& history, uint32_t group, int64_t sequence)
      : history_(history), view_(*history.view), index_(group), group_(view_.groups[group]), sequence_(sequence) {}

  Mismatch Take() {
    CollectParties();
    AskSiblings();
    Mismatch mismatch;
    mismatch.group = index_;
    mismatch.sequence = sequence_;
    std::stable_sort(parties_.begin(), parties_.end(),
                     [](const Party& a, const Party& b) { return a.votes > b.votes; });
    mismatch.margin = parties_.size() < 2 ? parties_[0].votes : parties_[0].votes - parties_[1].votes;
    if (mismatch.margin == 0) {
      BreakTie(mismatch);
    }
    const Party& common = parties_[0];
    mismatch.common_signature = common.signature;
    mismatch.others = common.ranks;
    mismatch.siblings = common.siblings;
    for (size_t i = 0; i < parties_.size(); ++i) {
      if (!parties_[i].ranks.empty()) {
        mismatch.parties.push_back(parties_[i].ranks);
      }
      if (i > 0 && !parties_[i].ranks.empty()) {
        if (mismatch.deviant_signature == 0) {
          mismatch.deviant_signature = parties_[i].signature;
        }
        if (mismatch.margin > 0) {
          mismatch.deviants.insert(mismatch.deviants.end(), parties_[i].ranks.begin(), parties_[i].ranks.end());
        }
      }
    }
    std::sort(mismatch.deviants.begin(), mismatch.deviants.end());
    mismatch.created_ns = FirstCreated();
    TellKind(history_, mismatch);
    const bool shifts = mismatch.kind == VerdictKind::kSkippedCollective ||
                        mismatch.kind == VerdictKind::kExtraCollective || mismatch.kind == VerdictKind::kWrongOrder;
    if (by_oddness_ && shifts) {  // Then the odd call is one that both sides make.
      mismatch.margin = 0;
      mismatch.by_history = false;
      mismatch.deviants.clear();
    }
    return mismatch;
  }

 private:
  void Vote(uint32_t signature, int32_t rank, bool is_member, double weight) {
    Party* found = nullptr;
    for (Party& party : parties_) {
      if (Match(view_, party.signature, signature)) {
        found = &party;
        break;
      }
    }
    if (found == nullptr) {
      parties_.emplace_back();
      found = &parties_.back();
      found->signature = signature;
    }
    found->votes += weight;
    if (rank >= 0) {
      (is_member ? found->ranks : found->siblings).push_back(rank);
    }
  }

  void CollectParties() {
    for (const Track& track : group_.tracks) {
      if (const Call* call = FindCall(track, sequence_)) {
        Vote(call->signature, track.rank, true, 1);
      }
    }
  }

  /// A sibling counts only if it did the same as we until now: stages of a pipeline have equal descriptions, too.
  void AskSiblings() {
    const CallReference& own = history_.references[index_];
    for (const uint32_t other : history_.SiblingsOf(index_)) {
      if (other == index_) {
        continue;
      }
      int64_t compared = 0;
      bool agrees = true;
      for (int64_t back = 1; agrees && back <= 8; ++back) {
        const uint32_t ours = own.Find(sequence_ - back).signature;
        const uint32_t theirs = history_.references[other].Find(sequence_ - back).signature;
        if (ours != 0 && theirs != 0) {
          agrees = ours == theirs;
          ++compared;
        }
      }
      if (!agrees || (compared == 0 && sequence_ > 1 && !AreOpenOnly(group_))) {
        continue;
      }
      // Dumps of open operations alone show no past that could agree: such a sibling only breaks ties.
      const double weight = compared == 0 && sequence_ > 1 ? 0.25 : 1;
      for (const Track& track : view_.groups[other].tracks) {
        const Call* call = FindCall(track, sequence_);
        if (call != nullptr) {
          Vote(call->signature, track.rank, false, weight);
        }
      }
    }
  }

  bool AreOpenOnly(const GroupView& group) const {
    return std::all_of(group.tracks.begin(), group.tracks.end(),
                       [&](const Track& track) { return view_.ranks[track.rank_index].active_only; });
  }

  bool CalledElsewhere(uint32_t signature) const {
    for (const uint32_t group : history_.SiblingsOf(index_)) {
      for (const Track& track : view_.groups[group].tracks) {
        for (const Call& call : track.calls) {
          if (call.sequence != sequence_ && Match(view_, call.signature, signature)) {
            return true;
          }
        }
      }
    }
    return false;
  }

  void BreakTie(Mismatch& mismatch) {
    for (Party& party : parties_) {  // A broken size rule needs no majority.
      const bool breaks = std::any_of(party.ranks.begin(), party.ranks.end(),
                                      [&](int32_t rank) { return BreaksSizeRule(view_, group_, rank, sequence_); });
      party.votes -= breaks ? 0.5 : 0;
    }
    if (const std::optional<int64_t> then = SameSituation(view_, history_.references[index_], sequence_, 0)) {
      const uint32_t usual = history_.references[index_].Find(*then).signature;
      for (Party& party : parties_) {
        party.votes += Match(view_, party.signature, usual) ? 0.5 : 0;
      }
    }
    const bool is_tied = std::all_of(parties_.begin(), parties_.end(),
                                     [&](const Party& party) { return party.votes == parties_[0].votes; });
    for (Party& party : parties_) {  // What is called nowhere else is odd.
      party.votes += CalledElsewhere(party.signature) ? 0.25 : 0;
    }
    std::stable_sort(parties_.begin(), parties_.end(),
                     [](const Party& a, const Party& b) { return a.votes > b.votes; });
    mismatch.margin = parties_[0].votes - parties_[1].votes;
    mismatch.by_history = mismatch.margin > 0;
    by_oddness_ = is_tied && mismatch.by_history;
  }

  std::optional<int64_t> FirstCreated() const {
    std::optional<int64_t> first;
    for (const Track& track : group_.tracks) {
      if (const Call* call = FindCall(track, sequence_)) {
        const int64_t created = view_.EntryOf(track, call->entry).created_unix_ns;
        if (created != evidence::kNotRecorded) {
          first = std::min(first.value_or(created), created);
        }
      }
    }
    return first;
  }

  const CallHistory& history_;
  const JobView& view_;
  const uint32_t index_;
  const GroupView& group_;
  const int64_t sequence_;
  std::vector<Party> parties_;
  bool by_oddness_ = false;  // Only that a call is made nowhere else broke the tie.
};

}  // namespace

Mismatch VoteAt(const CallHistory& history, uint32_t group, int64_t sequence) {
  return GroupVote(history, group, sequence).Take();
}

}  // namespace lockstep::hang
