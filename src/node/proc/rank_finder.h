#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/proc/job_processes.h"

namespace lockstep::proc {

/// The node's ranks as FindJobProcesses() with an empty selector has them, to be asked for again and again: what a
/// process was found to be is believed for a quarter of its age, at least two seconds and at most a minute, as only a
/// young one calls exec or loads PyTorch. A look then costs one small read a process. Not thread-safe.
class RankFinder {
 public:
  explicit RankFinder(std::function<bool(uint32_t uid)> allowed, std::string root = "/proc")
      : allowed_(std::move(allowed)), root_(std::move(root)) {}

  /// By job, rank, then pid.
  std::vector<JobProcess> Find();

 private:
  struct Known {
    uint64_t start_ticks = 0;
    int64_t look_again_ns = 0;          ///< By the clock of the kernel's ticks.
    std::optional<JobProcess> process;  ///< Nullopt: neither a rank nor PyTorch's.
  };

  const std::function<bool(uint32_t)> allowed_;
  const std::string root_;
  std::map<int32_t, Known> known_;
};

}  // namespace lockstep::proc
