#include "hang/signature_vote.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace lockstep::hang {
namespace {

/// What a group called at each sequence number, as far as its members agree.
class Reference {
 public:
  explicit Reference(const GroupView& group) {
    size_t count = 0;
    for (const Track& track : group.tracks) {
      count += track.calls.size();
      if (!track.calls.empty()) {
        low_ = std::min(low_, track.calls.front().sequence);
        high_ = std::max(high_, track.calls.back().sequence);
      }
    }
    if (count > 0 && static_cast<uint64_t>(high_) - static_cast<uint64_t>(low_) < 4 * count + 1024) {
      dense_.resize(static_cast<size_t>(high_ - low_) + 1);
    }
  }
  Foreseen& At(int64_t sequence) {
    return dense_.empty() ? sparse_[sequence] : dense_[static_cast<size_t>(sequence - low_)];
  }
  Foreseen Find(int64_t sequence) const {
    if (sequence < low_ || sequence > high_) {
      return {};
    }
    if (!dense_.empty()) {
      return dense_[static_cast<size_t>(sequence - low_)];
    }
    const auto place = sparse_.find(sequence);
    return place == sparse_.end() ? Foreseen{} : place->second;
  }
  int64_t Low() const { return low_; }

 private:
  int64_t low_ = INT64_MAX;
  int64_t high_ = INT64_MIN;
  std::vector<Foreseen> dense_;
  std::unordered_map<int64_t, Foreseen> sparse_;
};

struct Party {
  uint32_t signature = 0;
  std::vector<int32_t> ranks;
  std::vector<int32_t> siblings;
  double votes = 0;
};

constexpr int64_t kContext = 6;
constexpr int64_t kHistory = 4096;
constexpr size_t kMaxMismatches = 64;

/// The sequence number before `sequence` at which the group was last in the same situation: the same calls before it.
/// `next` != 0 asks for the same call there, too. nullopt where it never was.
std::optional<int64_t> SameSituation(const JobView& view, const Reference& reference, int64_t sequence, uint32_t next) {
  for (int64_t context = kContext; context >= 1; context /= 2) {
    for (int64_t at = sequence - 1; at > reference.Low() && at > sequence - kHistory; --at) {
      bool same = next == 0 || Match(view, reference.Find(at).signature, next);
      for (int64_t back = 1; same && back <= context; ++back) {
        const uint32_t then = reference.Find(at - back).signature;
        const uint32_t now = reference.Find(sequence - back).signature;
        same = then != 0 && now != 0 && then == now;
      }
      if (same) {
        return at;
      }
    }
  }
  return std::nullopt;
}

const Call* CallAt(const GroupView& group, int32_t rank, int64_t sequence) {
  const Track* track = group.TrackOf(rank);
  return track == nullptr ? nullptr : FindCall(*track, sequence);
}

/// Members' calls at `sequence` all match, are all there and are done: whatever differed before did no harm.
bool WentWell(const JobView& view, const GroupView& group, int64_t sequence) {
  uint32_t first = 0;
  for (const Track& track : group.tracks) {
    const Call* call = FindCall(track, sequence);
    if (call == nullptr) {
      if (track.issued_upto < sequence) {
        return false;
      }
      continue;
    }
    if (!call->done || (first != 0 && !Match(view, first, call->signature))) {
      return false;
    }
    first = call->signature;
  }
  return first != 0;
}

/// all_gather's output is its input times the members, reduce_scatter's the other way round.
bool BreaksSizeRule(const JobView& view, const GroupView& group, int32_t rank, int64_t sequence) {
  const Track* track = group.TrackOf(rank);
  const Call* call = track == nullptr ? nullptr : FindCall(*track, sequence);
  if (call == nullptr || group.members_inferred) {
    return false;
  }
  const OperationKind kind = view.signatures[call->signature].kind;
  if (kind != OperationKind::kAllGather && kind != OperationKind::kReduceScatter) {
    return false;
  }
  const evidence::FlightRecord& record = *view.ranks[track->rank_index].evidence->record;
  const evidence::FlightEntry& entry = record.entries[call->entry];
  const auto count = [&](uint32_t list) {
    double sum = 0;
    for (const std::vector<int64_t>& shape : record.size_lists[list]) {
      double product = 1;
      for (const int64_t extent : shape) {
        product *= static_cast<double>(extent);
      }
      sum += product;
    }
    return sum;
  };
  const double input = count(entry.input_sizes);
  const double output = count(entry.output_sizes);
  const auto members = static_cast<double>(group.members.size());
  if (input <= 0 || output <= 0) {
    return false;
  }
  return kind == OperationKind::kAllGather ? output != input * members : input != output * members;
}

class GroupVote {
 public:
  GroupVote(const JobView& view, const std::vector<Reference>& references,
            const std::vector<std::vector<uint32_t>>& siblings, uint32_t group)
      : view_(view), references_(references), siblings_(siblings), index_(group), group_(view.groups[group]) {}

  Mismatch At(int64_t sequence) {
    sequence_ = sequence;
    CollectParties();
    AskSiblings();
    Mismatch mismatch;
    mismatch.group = index_;
    mismatch.sequence = sequence;
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
    for (const Track& track : group_.tracks) {
      if (const Call* call = FindCall(track, sequence)) {
        const int64_t created = view_.EntryOf(track, call->entry).created_unix_ns;
        if (created != evidence::kNotRecorded) {
          mismatch.created_ns = std::min(mismatch.created_ns.value_or(created), created);
        }
      }
    }
    Classify(mismatch);
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
    parties_.clear();
    for (const Track& track : group_.tracks) {
      if (const Call* call = FindCall(track, sequence_)) {
        Vote(call->signature, track.rank, true, 1);
      }
    }
  }

  /// A sibling counts only if it did the same as we until now: stages of a pipeline have equal descriptions, too.
  void AskSiblings() {
    const Reference& own = references_[index_];
    for (const uint32_t other : siblings_[group_.siblings]) {
      if (other == index_) {
        continue;
      }
      int64_t compared = 0;
      bool agrees = true;
      for (int64_t back = 1; agrees && back <= 8; ++back) {
        const uint32_t ours = own.Find(sequence_ - back).signature;
        const uint32_t theirs = references_[other].Find(sequence_ - back).signature;
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
    for (const uint32_t group : siblings_[group_.siblings]) {
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
    if (const std::optional<int64_t> then = SameSituation(view_, references_[index_], sequence_, 0)) {
      const uint32_t usual = references_[index_].Find(*then).signature;
      for (Party& party : parties_) {
        party.votes += Match(view_, party.signature, usual) ? 0.5 : 0;
      }
    }
    for (Party& party : parties_) {  // What is called nowhere else is odd.
      party.votes += CalledElsewhere(party.signature) ? 0.25 : 0;
    }
    std::stable_sort(parties_.begin(), parties_.end(),
                     [](const Party& a, const Party& b) { return a.votes > b.votes; });
    mismatch.margin = parties_[0].votes - parties_[1].votes;
    mismatch.by_history = mismatch.margin > 0;
  }

  uint32_t SiteOf(const std::vector<int32_t>& ranks, int64_t sequence) const {
    for (const int32_t rank : ranks) {
      const Call* call = CallAt(group_, rank, sequence);
      if (call != nullptr && call->site != 0) {
        return call->site;
      }
    }
    return 0;
  }

  bool SiteSeenBefore(uint32_t site) const {
    for (const Track& track : group_.tracks) {
      for (const Call& call : track.calls) {
        if (call.sequence >= sequence_) {
          break;
        }
        if (call.site == site) {
          return true;
        }
      }
    }
    return false;
  }

  /// What the others called `ahead` calls after the common one.
  Foreseen Seen(const Mismatch& mismatch, int64_t ahead) const {
    for (const std::vector<int32_t>* ranks : {&mismatch.others, &mismatch.siblings}) {
      for (const int32_t rank : *ranks) {
        for (const uint32_t group : siblings_[group_.siblings]) {
          const Track* track = view_.groups[group].TrackOf(rank);
          const Call* call = track == nullptr ? nullptr : FindCall(*track, sequence_ + ahead);
          if (call != nullptr) {
            return {call->signature, call->site};
          }
        }
      }
    }
    return {};
  }

  /// The same, and where nobody came so far as an earlier round tells.
  Foreseen After(const Mismatch& mismatch, int64_t ahead) const {
    const Foreseen seen = Seen(mismatch, ahead);
    if (seen.signature != 0) {
      return seen;
    }
    const std::optional<int64_t> then = SameSituation(view_, references_[index_], sequence_, mismatch.common_signature);
    if (!then || *then + ahead >= sequence_) {
      return {};
    }
    return references_[index_].Find(*then + ahead);
  }

  void Classify(Mismatch& mismatch) const {
    const Signature& common = view_.signatures[mismatch.common_signature];
    const Signature& deviant = view_.signatures[mismatch.deviant_signature];
    const std::vector<int32_t>& deviants =
        mismatch.deviants.empty() && mismatch.parties.size() > 1 ? mismatch.parties[1] : mismatch.deviants;
    const uint32_t deviant_site = SiteOf(deviants, sequence_);
    const uint32_t common_site = SiteOf(mismatch.others, sequence_);
    const bool sites_known = deviant_site != 0 && common_site != 0;
    const bool same_site = sites_known && deviant_site == common_site;
    const bool same_operation = common.kind == deviant.kind && common.name == deviant.name;
    const VerdictKind by_content = !same_operation                       ? VerdictKind::kOperationMismatch
                                   : common.elements != deviant.elements ? VerdictKind::kSizeMismatch
                                                                         : VerdictKind::kDtypeMismatch;
    mismatch.kind = by_content;
    if (same_site) {
      return;
    }
    // Where both sides went on and agree again at the same numbers, nothing is shifted: one call differs in place.
    int compared = 0;
    bool in_place = true;
    for (int64_t ahead = 1; ahead <= 6; ++ahead) {
      const uint32_t theirs = Seen(mismatch, ahead).signature;
      for (const int32_t rank : deviants) {
        const Call* call = CallAt(group_, rank, sequence_ + ahead);
        if (call != nullptr && theirs != 0) {
          ++compared;
          in_place = in_place && Match(view_, call->signature, theirs);
        }
      }
    }
    if (compared > 0 && in_place) {
      return;
    }
    uint32_t deviant_next = 0;
    for (const int32_t rank : deviants) {
      if (const Call* call = CallAt(group_, rank, sequence_ + 1)) {
        deviant_next = call->signature;
        break;
      }
    }
    const bool then_as_others = deviant_next != 0 && Match(view_, deviant_next, mismatch.common_signature);
    bool skips = false;
    Foreseen skipped_to;
    for (int64_t ahead = 1; ahead <= 3 && !skips; ++ahead) {
      skipped_to = After(mismatch, ahead);
      skips = skipped_to.signature != 0 && Match(view_, skipped_to.signature, mismatch.deviant_signature) &&
              (ahead == 1 || !sites_known || skipped_to.site == deviant_site);
    }
    mismatch.deviant_goes_on_as_others_later = skips;
    if (skips && then_as_others) {
      mismatch.kind = VerdictKind::kWrongOrder;
    } else if (then_as_others) {
      mismatch.kind = VerdictKind::kExtraCollective;
    } else if (skips) {
      // A call from where the others make it later skips what lies between; from a new place it comes too early.
      const bool new_place =
          sites_known && skipped_to.site != 0 && skipped_to.site != deviant_site && !SiteSeenBefore(deviant_site);
      mismatch.kind = new_place ? VerdictKind::kWrongOrder : VerdictKind::kSkippedCollective;
    } else if (sites_known) {
      const UserSite& here = view_.sites[deviant_site];
      const UserSite& there = view_.sites[common_site];
      const bool same_function = here.function == there.function && here.file == there.file;
      if (!same_function) {
        mismatch.kind = SiteSeenBefore(deviant_site) ? VerdictKind::kSkippedCollective : VerdictKind::kExtraCollective;
      }
    }
  }

  const JobView& view_;
  const std::vector<Reference>& references_;
  const std::vector<std::vector<uint32_t>>& siblings_;
  uint32_t index_;
  const GroupView& group_;
  int64_t sequence_ = 0;
  std::vector<Party> parties_;
};

/// Where a member has no record nobody in the group may contradict the others: then sibling groups do, for the newest
/// calls. Siblings that are whole may differ from one another by right.
void SuspectIncomplete(const JobView& view, const std::vector<Reference>& references,
                       const std::vector<std::vector<uint32_t>>& siblings, uint32_t index,
                       std::vector<int64_t>& suspects) {
  const GroupView& group = view.groups[index];
  if (group.tracks.empty() || group.tracks.size() >= group.members.size()) {
    return;
  }
  int64_t newest = 0;
  for (const Track& track : group.tracks) {
    newest = track.calls.empty() ? newest : std::max(newest, track.calls.back().sequence);
  }
  for (const uint32_t other : siblings[group.siblings]) {
    for (int64_t sequence = newest; other != index && sequence > 0 && sequence > newest - 3; --sequence) {
      const uint32_t ours = references[index].Find(sequence).signature;
      const uint32_t theirs = references[other].Find(sequence).signature;
      if (ours != 0 && theirs != 0 && !Match(view, ours, theirs)) {
        suspects.push_back(sequence);
      }
    }
  }
}

}  // namespace

bool Match(const JobView& view, uint32_t a, uint32_t b) {
  if (a == b) {
    return true;
  }
  const Signature& first = view.signatures[a];
  const Signature& second = view.signatures[b];
  const auto is_blank_launch = [](const Signature& signature) {
    return signature.kind == OperationKind::kCoalesced && signature.parts.empty();
  };
  if (is_blank_launch(first) || is_blank_launch(second)) {
    return true;  // Older versions record a launch and not what it holds.
  }
  if (first.kind != second.kind || first.name != second.name || first.parts.size() != second.parts.size()) {
    return false;
  }
  for (size_t i = 0; i < first.parts.size(); ++i) {
    if (!Match(view, first.parts[i], second.parts[i])) {
      return false;
    }
  }
  const bool same_elements = first.elements == second.elements || first.elements < 0 || second.elements < 0;
  const bool same_dtype = first.dtype == second.dtype || first.dtype == 0 || second.dtype == 0;
  return same_elements && same_dtype;
}

std::vector<Mismatch> VoteOnSignatures(const JobView& view, unsigned thread_count) {
  (void)thread_count;
  std::vector<Reference> references;
  references.reserve(view.groups.size());
  std::vector<std::vector<int64_t>> suspects(view.groups.size());
  std::vector<std::vector<uint32_t>> siblings;
  for (uint32_t g = 0; g < view.groups.size(); ++g) {
    const GroupView& group = view.groups[g];
    siblings.resize(std::max<size_t>(siblings.size(), group.siblings + 1));
    siblings[group.siblings].push_back(g);
    references.emplace_back(group);
    Reference& reference = references.back();
    for (const Track& track : group.tracks) {
      for (const Call& call : track.calls) {
        Foreseen& known = reference.At(call.sequence);
        if (known.signature == 0) {
          known = {call.signature, call.site};
        } else if (known.signature != call.signature && !Match(view, known.signature, call.signature)) {
          suspects[g].push_back(call.sequence);
        }
      }
    }
  }
  for (uint32_t g = 0; g < view.groups.size(); ++g) {
    SuspectIncomplete(view, references, siblings, g, suspects[g]);
    std::sort(suspects[g].begin(), suspects[g].end());
    suspects[g].erase(std::unique(suspects[g].begin(), suspects[g].end()), suspects[g].end());
  }
  std::vector<Mismatch> mismatches;
  for (uint32_t g = 0; g < view.groups.size(); ++g) {
    GroupVote vote(view, references, siblings, g);
    for (size_t i = 0; i < suspects[g].size() && i < kMaxMismatches; ++i) {
      if (WentWell(view, view.groups[g], suspects[g][i] + 1)) {
        continue;
      }
      Mismatch mismatch = vote.At(suspects[g][i]);
      if (mismatch.parties.size() > 1 || !mismatch.deviants.empty()) {
        mismatches.push_back(std::move(mismatch));
        break;
      }
    }
  }
  std::stable_sort(mismatches.begin(), mismatches.end(), [](const Mismatch& a, const Mismatch& b) {
    return a.created_ns.value_or(INT64_MAX) < b.created_ns.value_or(INT64_MAX);
  });
  return mismatches;
}

}  // namespace lockstep::hang
