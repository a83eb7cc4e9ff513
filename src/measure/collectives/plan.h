#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/collectives/operation.h"

namespace lockstep::collective_bench {

/// What to measure, the same on all ranks.
struct Plan {
  std::vector<Operation> operations = {kOperations.begin(), kOperations.end()};
  std::vector<int64_t> sizes_bytes;
  DataType type = DataType::kFloat32;
  Reduction reduction = Reduction::kSum;
  int root = 0;
  int iterations = 20;
  int warmup = 5;
  bool check = true;
  bool in_place = true;  ///< Besides out of place, where the backend has both.
  bool pairs = false;    ///< Also a matrix of every two ranks.
};

/// "8", "64K", "1M", "8G", with powers of 1024 as nccl-tests has them. Errors: kInvalidArgument.
Result<int64_t> ParseBytes(std::string_view text);
/// "1 MiB", "8 B".
std::string BytesText(int64_t bytes);

/// From `least` to `most`, each `factor` times the one before. Errors: kInvalidArgument when there is no such sweep.
Result<std::vector<int64_t>> Sweep(int64_t least, int64_t most, double factor);

/// The plan as words and back, from the command to the programs that measure. Errors: kInvalidArgument.
std::vector<std::string> ToWords(const Plan& plan);
Result<Plan> FromWords(const std::vector<std::string>& words);

}  // namespace lockstep::collective_bench
