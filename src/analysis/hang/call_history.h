#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// What the group's earlier rounds predict as its next call after `sequence`: signature and site.
struct Foreseen {
  uint32_t signature = 0;  ///< 0 = not known.
  uint32_t site = 0;
};

/// What a group called at each sequence number, as far as its members agree.
class CallReference {
 public:
  /// Room for all that `group` holds, and nothing known yet.
  explicit CallReference(const GroupView& group);

  /// `sequence` is of one of the group's calls.
  Foreseen& At(int64_t sequence) {
    return dense_.empty() ? sparse_[sequence] : dense_[static_cast<size_t>(sequence - low_)];
  }
  /// Any sequence number.
  Foreseen Find(int64_t sequence) const;
  /// The oldest sequence number that any member's record holds; INT64_MAX = none has any.
  int64_t Low() const { return low_; }

 private:
  int64_t low_ = INT64_MAX;
  int64_t high_ = INT64_MIN;
  std::vector<Foreseen> dense_;
  std::unordered_map<int64_t, Foreseen> sparse_;
};

/// What every group called, and which groups are siblings.
struct CallHistory {
  const JobView* view = nullptr;
  std::vector<CallReference> references;        ///< By group.
  std::vector<std::vector<uint32_t>> siblings;  ///< Groups by GroupView::siblings.

  /// The group itself among them.
  const std::vector<uint32_t>& SiblingsOf(uint32_t group) const { return siblings[view->groups[group].siblings]; }
};

/// The sequence number before `sequence` at which the group was last in the same situation: the same calls before it.
/// `next` != 0 asks for the same call there, too. nullopt where it never was within the last 4,096.
std::optional<int64_t> SameSituation(const JobView& view, const CallReference& reference, int64_t sequence,
                                     uint32_t next);

}  // namespace lockstep::hang
