#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep::cli {

/// What `lockstep watch --stages` is to do besides watching.
struct StageRequest {
  int64_t every_ns = 0;           ///< Between two looks at the stages.
  int32_t step_count = 5;         ///< That a capture holds: of two ranks, fewer seldom show more than chance does.
  uint64_t captures_an_hour = 6;  ///< At most.
  uint64_t kept_bytes = 0;        ///< Of traces and reports; the oldest captures' are removed first.
};

/// The flags of evidence on demand.
class StageFlags {
 public:
  StageFlags();
  void Declare(CLI::App& app);
  /// Whether stages are to be looked at. Errors: kInvalidArgument, also for flags that mean nothing without --stages.
  Result<bool> Read();
  const StageRequest& request() const { return request_; }

 private:
  bool is_wanted_ = false;
  std::vector<const CLI::Option*> options_;  ///< Those that need --stages.
  std::string every_ = "5s";
  StageRequest request_;
};

}  // namespace lockstep::cli
