#include "analysis/hang/signature_vote.h"

#include <algorithm>
#include <utility>

#include "analysis/hang/call_history.h"
#include "analysis/hang/group_vote.h"
#include "analysis/hang/signature_match.h"

namespace lockstep::hang {
namespace {

constexpr size_t kMaxMismatches = 64;

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

/// If a member has no record, the recorded members of its group may all agree. Then the group is compared with its
/// siblings, for the newest calls. Complete siblings may legitimately differ from one another.
void SuspectIncomplete(const CallHistory& history, uint32_t index, std::vector<int64_t>& suspects) {
  const GroupView& group = history.view->groups[index];
  if (group.tracks.empty() || group.tracks.size() >= group.members.size()) {
    return;
  }
  int64_t newest = 0;
  for (const Track& track : group.tracks) {
    newest = track.calls.empty() ? newest : std::max(newest, track.calls.back().sequence);
  }
  for (const uint32_t other : history.SiblingsOf(index)) {
    for (int64_t sequence = newest; other != index && sequence > 0 && sequence > newest - 3; --sequence) {
      const uint32_t ours = history.references[index].Find(sequence).signature;
      const uint32_t theirs = history.references[other].Find(sequence).signature;
      if (ours != 0 && theirs != 0 && !Match(*history.view, ours, theirs)) {
        suspects.push_back(sequence);
      }
    }
  }
}

}  // namespace

std::vector<Mismatch> VoteOnSignatures(const JobView& view) {
  CallHistory history;
  history.view = &view;
  history.references.reserve(view.groups.size());
  std::vector<std::vector<int64_t>> suspects(view.groups.size());
  for (uint32_t g = 0; g < view.groups.size(); ++g) {
    const GroupView& group = view.groups[g];
    history.siblings.resize(std::max<size_t>(history.siblings.size(), group.siblings + 1));
    history.siblings[group.siblings].push_back(g);
    CallReference& reference = history.references.emplace_back(group);
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
    SuspectIncomplete(history, g, suspects[g]);
    std::sort(suspects[g].begin(), suspects[g].end());
    suspects[g].erase(std::unique(suspects[g].begin(), suspects[g].end()), suspects[g].end());
  }
  std::vector<Mismatch> mismatches;
  for (uint32_t g = 0; g < view.groups.size(); ++g) {
    for (size_t i = 0; i < suspects[g].size() && i < kMaxMismatches; ++i) {
      if (WentWell(view, view.groups[g], suspects[g][i] + 1)) {
        continue;
      }
      Mismatch mismatch = VoteAt(history, g, suspects[g][i]);
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
