#include "analysis/hang/mismatch_kind.h"

#include <optional>
#include <vector>

#include "analysis/hang/signature_match.h"

namespace lockstep::hang {
namespace {

/// How far ahead both sides are compared, and a skipped call is looked for.
constexpr int64_t kCallsCompared = 6;
constexpr int64_t kCallsSkipped = 3;

class KindTeller {
 public:
  KindTeller(const CallHistory& history, const Mismatch& mismatch)
      : history_(history),
        view_(*history.view),
        mismatch_(mismatch),
        group_(view_.groups[mismatch.group]),
        sequence_(mismatch.sequence),
        deviants_(mismatch.deviants.empty() && mismatch.parties.size() > 1 ? mismatch.parties[1] : mismatch.deviants),
        deviant_site_(SiteOf(deviants_)),
        common_site_(SiteOf(mismatch.others)) {}

  void Tell(Mismatch& result) const {
    result.kind = KindByContent();
    const bool sites_known = deviant_site_ != 0 && common_site_ != 0;
    const bool same_site = sites_known && deviant_site_ == common_site_;
    const bool differs_in_place = DiffersInPlace();
    const int least = differs_in_place ? 2 : 1;
    const bool shifted_to_the_end = IsShiftedToTheEnd(0, 1, least) || IsShiftedToTheEnd(1, 0, least);
    if (differs_in_place && !shifted_to_the_end) {
      return;
    }
    if (same_site && !shifted_to_the_end && !IsShifted()) {
      return;  // As gradient buckets, which are all called from one place.
    }
    const uint32_t deviant_next = DeviantsNext();
    const bool then_as_others = deviant_next != 0 && Match(view_, deviant_next, mismatch_.common_signature);
    bool skips = false;
    Foreseen skipped_to;
    for (int64_t ahead = 1; ahead <= kCallsSkipped && !skips; ++ahead) {
      skipped_to = After(ahead);
      skips = skipped_to.signature != 0 && Match(view_, skipped_to.signature, mismatch_.deviant_signature) &&
              (ahead == 1 || !sites_known || skipped_to.site == deviant_site_);
    }
    result.deviant_goes_on_as_others_later = skips;
    if (skips && then_as_others) {
      result.kind = VerdictKind::kWrongOrder;
    } else if (then_as_others) {
      result.kind = VerdictKind::kExtraCollective;
    } else if (skips) {
      // A call from where the others make it later skips what lies between; from a new place it comes too early.
      const bool new_place =
          sites_known && skipped_to.site != 0 && skipped_to.site != deviant_site_ && !SiteSeenBefore(deviant_site_);
      result.kind = new_place ? VerdictKind::kWrongOrder : VerdictKind::kSkippedCollective;
    } else if (sites_known) {
      const UserSite& here = view_.sites[deviant_site_];
      const UserSite& there = view_.sites[common_site_];
      const bool same_function = here.function == there.function && here.file == there.file;
      if (!same_function) {
        result.kind = SiteSeenBefore(deviant_site_) ? VerdictKind::kSkippedCollective : VerdictKind::kExtraCollective;
      }
    }
  }

 private:
  const Call* CallOf(int32_t rank, int64_t sequence) const {
    const Track* track = group_.TrackOf(rank);
    return track == nullptr ? nullptr : FindCall(*track, sequence);
  }

  uint32_t SiteOf(const std::vector<int32_t>& ranks) const {
    for (const int32_t rank : ranks) {
      const Call* call = CallOf(rank, sequence_);
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

  VerdictKind KindByContent() const {
    const Signature& common = view_.signatures[mismatch_.common_signature];
    const Signature& deviant = view_.signatures[mismatch_.deviant_signature];
    if (common.kind != deviant.kind || common.name != deviant.name) {
      return VerdictKind::kOperationMismatch;
    }
    return common.elements != deviant.elements ? VerdictKind::kSizeMismatch : VerdictKind::kDtypeMismatch;
  }

  /// What the others called `ahead` calls after the common one.
  Foreseen Seen(int64_t ahead) const {
    for (const std::vector<int32_t>* ranks : {&mismatch_.others, &mismatch_.siblings}) {
      for (const int32_t rank : *ranks) {
        for (const uint32_t group : history_.SiblingsOf(mismatch_.group)) {
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

  /// The same; if no rank came so far, from an earlier round.
  Foreseen After(int64_t ahead) const {
    const Foreseen seen = Seen(ahead);
    if (seen.signature != 0) {
      return seen;
    }
    const CallReference& reference = history_.references[mismatch_.group];
    const std::optional<int64_t> then = SameSituation(view_, reference, sequence_, mismatch_.common_signature);
    if (!then || *then + ahead >= sequence_) {
      return {};
    }
    return reference.Find(*then + ahead);
  }

  /// Where both sides went on and agree again at the same numbers, nothing is shifted: one call differs in place.
  bool DiffersInPlace() const {
    int compared = 0;
    for (int64_t ahead = 1; ahead <= kCallsCompared; ++ahead) {
      const uint32_t theirs = Seen(ahead).signature;
      for (const int32_t rank : deviants_) {
        const Call* call = CallOf(rank, sequence_ + ahead);
        if (call != nullptr && theirs != 0) {
          ++compared;
          if (!Match(view_, call->signature, theirs)) {
            return false;
          }
        }
      }
    }
    return compared > 0;
  }

  /// Both sides went on, and from `own` calls later on the deviants' calls are the others' from `theirs` calls later
  /// on, to the last of both, in at least `least` of them. In place they may agree as well, where several calls are
  /// alike, but not in how many there are.
  bool IsShiftedToTheEnd(int64_t own, int64_t theirs, int least) const {
    int compared = 0;
    for (const int32_t rank : deviants_) {
      const Track* track = group_.TrackOf(rank);
      const int64_t count = track->issued_upto - sequence_ - own + 1;
      if (count < 1 || count > static_cast<int64_t>(track->calls.size())) return false;
      if (Seen(theirs + count).signature != 0) return false;
      for (int64_t ahead = 0; ahead < count; ++ahead) {
        const Call* call = CallOf(rank, sequence_ + own + ahead);
        const uint32_t of_others = Seen(theirs + ahead).signature;
        if (call == nullptr || of_others == 0 || !Match(view_, call->signature, of_others)) return false;
        ++compared;
      }
    }
    return compared >= least;
  }

  /// The deviants' call is what the others call next and not what they called here, and what the deviants called after
  /// it is not what the others called at those numbers.
  bool IsShifted() const {
    const uint32_t next = After(1).signature;
    if (KindByContent() == VerdictKind::kOperationMismatch) return false;  // A branch at that line.
    if (next == 0 || Match(view_, next, mismatch_.common_signature)) return false;
    if (Match(view_, next, mismatch_.deviant_signature)) return true;
    const uint32_t deviant_next = DeviantsNext();
    return deviant_next != 0 && Match(view_, deviant_next, mismatch_.common_signature);
  }

  uint32_t DeviantsNext() const {
    for (const int32_t rank : deviants_) {
      if (const Call* call = CallOf(rank, sequence_ + 1)) {
        return call->signature;
      }
    }
    return 0;
  }

  const CallHistory& history_;
  const JobView& view_;
  const Mismatch& mismatch_;
  const GroupView& group_;
  const int64_t sequence_;
  const std::vector<int32_t>& deviants_;
  const uint32_t deviant_site_;
  const uint32_t common_site_;
};

}  // namespace

void TellKind(const CallHistory& history, Mismatch& mismatch) { KindTeller(history, mismatch).Tell(mismatch); }

}  // namespace lockstep::hang
