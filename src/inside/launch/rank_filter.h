#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inside/launch/rank_environment.h"

namespace lockstep::launch {

/// Which ranks a profiler is to see, decided by each rank for itself.
class RankFilter {
 public:
  /// Terms with commas between, of which one has to be true: "all"; "3", "8-11" (ranks); "local:0", "local:0-1" (ranks
  /// of each node); "per-node:2" (so many of each node); "first:8"; "every:16" (0, 16, 32, ...); "node:0"; "host:NAME".
  /// Errors: kInvalidArgument for another term, an empty one, and one that can select no rank.
  static Result<RankFilter> Parse(std::string_view text);

  /// Whether the rank is asked for. A process without a launcher is rank 0 of 1 on node 0.
  /// Errors: kFailedPrecondition when the launcher does not say what a term needs and no other term selects the rank.
  Result<bool> Selects(const RankIdentity& identity, std::string_view host) const;

  bool SelectsAll() const;
  /// At most one rank of the whole job, whatever its size: "0", "first:1".
  bool SelectsOneAtMost() const;
  /// Whether it needs nothing but the rank itself, so that each rank knows of all others whether they are selected.
  bool NeedsRankOnly() const;
  const std::string& text() const { return text_; }

 private:
  enum class Kind : uint8_t { kAll, kRanks, kLocal, kEvery, kNode, kHost };
  struct Term {
    Kind kind = Kind::kAll;
    int64_t first = 0;  ///< Of kRanks, kLocal and kNode: the first number; of kEvery: the distance.
    int64_t last = 0;   ///< Inclusive.
    std::string host = {};
  };
  static Result<Term> ParseTerm(std::string_view text);

  std::string text_;
  std::vector<Term> terms_;
};

}  // namespace lockstep::launch
