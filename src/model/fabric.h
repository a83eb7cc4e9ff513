#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::model {

/// What a fabric does for one operation of one size, as `lockstep bench collectives` measured it.
struct FabricPoint {
  std::string operation;  ///< "all_reduce"
  int64_t bytes = 0;      ///< In nccl-tests' convention, as CollectiveInstance::bytes.
  double busbw_bytes_per_s = 0;
  /// The same by the time of the rank that took longest, and of the one that took shortest; between them is the spread
  /// over ranks.
  std::optional<double> slowest_busbw_bytes_per_s = {};
  std::optional<double> fastest_busbw_bytes_per_s = {};
  std::optional<double> mean_ns = {};  ///< Of a call, mean of the ranks.
};

/// Two ranks that were measured alone.
struct FabricPair {
  int64_t rank_a = 0;
  int64_t rank_b = 0;
  double latency_ns = 0;
  double bytes_per_s = 0;       ///< From a to b.
  double back_bytes_per_s = 0;  ///< From b to a.
  bool same_host = false;
  bool is_slow = false;
};

struct Fabric {
  std::string source;  ///< File.
  std::string backend;
  int64_t rank_count = 0;
  std::vector<std::string> hosts;   ///< By rank; "" where it was not said.
  std::vector<FabricPoint> points;  ///< By (operation, bytes).
  std::vector<FabricPair> pairs;    ///< By (rank_a, rank_b); empty where pairs were not measured.
};

}  // namespace lockstep::model
