#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/collectives/backend.h"
#include "measure/collectives/plan.h"

namespace lockstep::collective_bench {

/// One way of calling an operation of one size: means over the iterations, per rank.
struct Timing {
  double mean_ns = 0;  ///< Mean over ranks.
  double fastest_ns = 0;
  double slowest_ns = 0;
  int fastest_rank = 0;
  int slowest_rank = 0;
  std::optional<double> median_ns = {};  ///< Of all iterations of all ranks; absent where calls are queued.
  std::optional<double> p99_ns = {};
  std::optional<double> algbw_bytes_per_s = {};  ///< bytes / mean.
  std::optional<double> busbw_bytes_per_s = {};  ///< Absent for one rank.
  std::optional<uint64_t> wrong_count = {};      ///< Elements over all ranks; absent where it was not checked.
  std::vector<int> wrong_ranks = {};
};

/// A row of the result.
struct Row {
  Operation operation = Operation::kAllReduce;
  int64_t bytes = 0;
  size_t count = 0;  ///< Elements of a rank's share.
  std::optional<Timing> out_of_place = {};
  std::optional<Timing> in_place = {};
  std::string skipped = {};  ///< Why it was not measured.
};

/// A rank's process.
struct RankFacts {
  std::string host;
  int64_t pid = 0;
  std::string device = {};  ///< Empty: the host itself.
};

/// Two ranks, measured alone.
struct Pair {
  int a = 0;
  int b = 0;
  bool same_host = false;
  double latency_ns = 0;        ///< Half of a round trip of 8 bytes, median.
  double bytes_per_s = 0;       ///< Of the larger direction's transfers of kPairBytes.
  double back_bytes_per_s = 0;  ///< From b to a.
  bool is_slow = false;         ///< Its slower direction has less than half of the median of pairs like it.
};
inline constexpr int64_t kPairBytes = int64_t{4} << 20;

/// What was measured; at rank 0.
struct Results {
  std::string backend;
  std::vector<RankFacts> ranks;
  Plan plan;
  std::vector<Row> rows;
  std::vector<Pair> pairs;
};

/// Carries out the plan. `on_row` is called at rank 0 as rows come. Errors: the backend's; kInvalidArgument for a root
/// outside. Source of the method: docs/metrics.md#collective-bench.
Result<Results> Measure(Backend* backend, const Plan& plan, const std::function<void(const Row&)>& on_row);

/// Marks slow pairs among those of one host and among those of two.
void MarkSlowPairs(std::vector<Pair>* pairs);

}  // namespace lockstep::collective_bench
