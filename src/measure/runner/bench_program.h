#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/collectives/backend.h"
#include "measure/collectives/plan.h"

namespace lockstep::bench_program {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kMisused = 2;

enum class BackendKind : uint8_t { kMpi, kNccl };

/// What `lockstep bench` tells the programs that measure.
struct Words {
  collective_bench::Plan plan;
  BackendKind backend = BackendKind::kMpi;
  std::string nccl_library = {};
  std::chrono::seconds timeout{300};
  int start_count = 0;  ///< Ranks to start on this host; 0: this process is a rank.
  bool json = false;
  std::string csv_path = {};
  std::string page_path = {};
  std::string beside_path = {};  ///< What was measured before, to be drawn on the page.
};
std::vector<std::string> ToArguments(const Words& words);
/// Errors: kInvalidArgument.
Result<Words> FromArguments(const std::vector<std::string>& arguments);

/// Carries the plan out and prints at rank 0: what each rank's process does once it has a backend. Returns the exit
/// status, the same on all ranks but where results are wrong, which rank 0 alone knows. Errors are of this rank alone
/// where they name it; the others do not know then, and the process has to end the job.
Result<int> MeasureAndTell(collective_bench::Backend* backend, const Words& words);

/// "lockstep-nccl-bench: rank 3: ..." on stderr: an error that all ranks have is printed by rank 0 only.
void Complain(const char* program, bool is_root, const Error& error);

}  // namespace lockstep::bench_program
