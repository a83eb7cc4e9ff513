#include "analysis/hang/call_history.h"

#include <algorithm>

#include "analysis/hang/signature_match.h"

namespace lockstep::hang {
namespace {

constexpr int64_t kLongestContext = 6;
constexpr int64_t kHistory = 4096;

}  // namespace

CallReference::CallReference(const GroupView& group) {
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

Foreseen CallReference::Find(int64_t sequence) const {
  if (sequence < low_ || sequence > high_) {
    return {};
  }
  if (!dense_.empty()) {
    return dense_[static_cast<size_t>(sequence - low_)];
  }
  const auto place = sparse_.find(sequence);
  return place == sparse_.end() ? Foreseen{} : place->second;
}

std::optional<int64_t> SameSituation(const JobView& view, const CallReference& reference, int64_t sequence,
                                     uint32_t next) {
  for (int64_t context = kLongestContext; context >= 1; context /= 2) {
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

}  // namespace lockstep::hang
