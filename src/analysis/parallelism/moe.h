#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/parallelism/process_groups.h"
#include "analysis/parallelism/rank_traffic.h"

namespace lockstep::analysis {

/// Whether it is always the same rank that gets more than its share.
enum class LoadPattern : uint8_t {
  kEven,     ///< No rank gets much more than the mean, in no exchange.
  kChronic,  ///< Uneven, and over the whole trace at least half as uneven as in single exchanges.
  kVarying,  ///< Uneven in single exchanges, and most of it evens out.
  kOnce,     ///< Uneven by one exchange alone: it is not known whether it is always this rank.
  kUnknown,  ///< Sizes are not recorded, or of one rank alone.
};
const char* LoadPatternName(LoadPattern pattern);  ///< "even", "chronic", "varying", "once", "unknown".

/// Load in single exchanges from which a group is uneven: max / mean. The upper of the capacity factors at which Switch
/// Transformers do well (arXiv 2101.03961, section 2.2): what an expert may take of the mean before tokens are dropped.
inline constexpr double kUnevenLoadRatio = 1.25;

/// The all_to_alls of one group: for mixtures of experts, tokens to their experts and back. An exchange: one call of
/// every rank that has a trace, of two ranks or more, whose bytes both ways are known on all of them. Its load on a
/// rank is what the rank receives, or sends where that is the more uneven of the two: tokens come back from experts.
/// Source: docs/metrics.md#moe.
struct MoeRow {
  uint32_t group = 0;                              ///< ProcessGroupRow::number.
  uint32_t rank_count = 0;                         ///< Ranks with a trace that call.
  uint64_t call_count = 0;                         ///< Of all of them.
  uint64_t exchange_count = 0;                     ///< What load and pattern are of.
  std::optional<double> load_ratio = {};           ///< Largest load of a rank / mean; absent without exchanges.
  std::optional<double> exchange_load_ratio = {};  ///< The same within single exchanges, weighted by bytes.
  std::optional<size_t> hottest_rank_index = {};   ///< The rank of load_ratio; absent when all are equal.
  LoadPattern pattern = LoadPattern::kUnknown;
  int64_t duration_ns = 0;  ///< Sum of the calls' durations: waiting for others is in it.
  int64_t exposed_ns = 0;   ///< Their parts in which the rank computes nothing.
};

/// One rank's part in it.
struct MoeRankRow {
  size_t rank_index = 0;
  uint32_t group = 0;
  uint64_t call_count = 0;
  std::optional<int64_t> sent_bytes = {};      ///< Own share included. Absent when a call's is not recorded.
  std::optional<int64_t> received_bytes = {};  ///< The same.
  std::optional<double> load_ratio = {};       ///< Load over all exchanges / mean of the group's ranks.
  std::optional<double> load_variation = {};   ///< Standard deviation / mean of that over exchanges, weighted by bytes.
  int64_t duration_ns = 0;
  int64_t exposed_ns = 0;
};

struct Moe {
  static constexpr std::string_view kPass = "moe";

  std::vector<MoeRow> groups;     ///< By group; groups that call all_to_all.
  std::vector<MoeRankRow> ranks;  ///< By (group, rank).
};

/// Reads no events. `collectives`: as matched, times are not looked at. Cost: O(calls x log(calls)).
Moe FinishMoe(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
              const std::vector<ProcessGroupRow>& groups, const Collectives& collectives);

}  // namespace lockstep::analysis
