#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/diagnosis.h"

namespace lockstep::hang {

/// At one sequence number of one group, members called different things.
struct Mismatch {
  uint32_t group = 0;
  int64_t sequence = 0;
  std::vector<int32_t> deviants;  ///< Ascending; ranks whose call differs from the majority's. Empty: a tie.
  std::vector<int32_t> others;    ///< Members that called what most did.
  std::vector<int32_t> siblings;  ///< Ranks of sibling groups that called it at the same sequence number.
  uint32_t deviant_signature = 0;
  uint32_t common_signature = 0;
  std::vector<std::vector<int32_t>> parties;  ///< All members by signature, largest first.
  double margin = 0;                          ///< Votes for the common signature less those of the next.
  bool by_history = false;                    ///< Only what the group did in earlier rounds broke the tie.
  VerdictKind kind = VerdictKind::kOperationMismatch;
  bool deviant_goes_on_as_others_later = false;  ///< What the deviant called is what the others call next.
  std::optional<int64_t> created_ns;             ///< When the first of the calls was made.
};

}  // namespace lockstep::hang
