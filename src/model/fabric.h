#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::model {

/// What a fabric does for one operation of one size, as `lockstep bench collectives` measured it.
struct FabricPoint {
  std::string operation;  ///< "all_reduce"
  int64_t bytes = 0;      ///< In nccl-tests' convention, as CollectiveInstance::bytes.
  double busbw_bytes_per_s = 0;
};

struct Fabric {
  std::string source;  ///< File.
  std::string backend;
  int64_t rank_count = 0;
  std::vector<FabricPoint> points;  ///< By (operation, bytes).
};

}  // namespace lockstep::model
