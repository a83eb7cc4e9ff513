#include "analysis/hang/record_age.h"

#include <algorithm>

namespace lockstep::hang {
namespace {

/// The first sequence number that the rank has not completed, as far as its record tells for certain.
std::optional<int64_t> FirstOpen(const Track& track) {
  for (const Call& call : track.calls) {
    if (!call.done) {
      return call.sequence;
    }
  }
  return track.issued_exact ? std::optional(track.issued_upto + 1) : std::nullopt;
}

/// The newest that the rank has completed and that no member completes before all have come.
std::optional<int64_t> NewestProof(const JobView& view, const Track& track) {
  for (size_t i = track.calls.size(); i-- > 0;) {
    if (track.calls[i].done && NeedsAll(view.signatures[track.calls[i].signature].kind)) {
      return track.calls[i].sequence;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> OpenFor(const Findings& findings, const Track& track, uint32_t entry) {
  const int64_t created = findings.view.EntryOf(track, entry).created_unix_ns;
  const std::optional<int64_t>& made = findings.view.ranks[track.rank_index].record_ns;
  const std::optional<int64_t>& now = made ? made : findings.now_ns;
  if (!now || created == evidence::kNotRecorded) {
    return std::nullopt;
  }
  return *now - created;
}

bool WentOnMeanwhile(const JobView& view, const std::vector<RankCondition>& conditions) {
  const auto failed = [](const RankCondition& of) { return of.Failed() || of.peer_lost || of.size_complaint; };
  if (std::any_of(conditions.begin(), conditions.end(), failed)) {
    return false;
  }
  for (const GroupView& group : view.groups) {
    std::optional<int64_t> newest;
    for (const Track& track : group.tracks) {
      const std::optional<int64_t> proof = NewestProof(view, track);
      newest = proof && proof > newest ? proof : newest;
    }
    for (const Track& track : group.tracks) {
      const std::optional<int64_t> open = newest ? FirstOpen(track) : std::nullopt;
      // The very next one may be complete elsewhere while this rank's device still stands in it.
      if (open && *newest > *open) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace lockstep::hang
