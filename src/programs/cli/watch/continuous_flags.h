#pragma once

#include <cstdint>
#include <string>

#include "analysis/profile_history/job_history.h"
#include "base/result.h"
#include "node/control/api/capture.h"
#include "programs/cli/run_input.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep::cli {

/// What `lockstep watch --every` is to do besides watching.
struct ContinuousRequest {
  int64_t every_ns = 0;
  control::CaptureWindow window;
  int64_t timeout_ns = 0;
  bool allow_unsafe = false;   ///< As that of `lockstep capture`.
  uint64_t capture_count = 0;  ///< End after so many; 0: without end.
  std::string folder;          ///< Empty: by the job's id.
  uint64_t budget_bytes = 0;
  std::string metrics_file;  ///< Empty: none.
  profile_history::HistoryOptions history;
};

/// The flags of continuous profiling.
class ContinuousFlags {
 public:
  ContinuousFlags();
  void Declare(CLI::App& app);
  /// Whether captures are to be made. Errors: kInvalidArgument, also for flags that mean nothing without --every, or
  /// that without --stages (`has_stages`).
  Result<bool> Read(bool has_stages);
  const ContinuousRequest& request() const { return request_; }
  RunInput& input() { return input_; }

 private:
  std::vector<const CLI::Option*> options_;         ///< Those that need --every.
  std::vector<const CLI::Option*> shared_options_;  ///< Those that need it or --stages.
  std::string every_;
  std::string duration_ = "500ms";
  int32_t iterations_ = 0;
  std::string folder_;
  ContinuousRequest request_;
  RunInput input_;
};

}  // namespace lockstep::cli
