#include "node/proc/rank_finder.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/nanoseconds.h"
#include "base/timespec.h"
#include "node/proc/proc_reader.h"

namespace lockstep::proc {
namespace {

constexpr int64_t kShortestNs = 2 * kSecondNs;
constexpr int64_t kLongestNs = 60 * kSecondNs;

int64_t BootNs() { return ClockNs(CLOCK_BOOTTIME); }

}  // namespace

std::vector<JobProcess> RankFinder::Find() {
  const ProcReader reader(root_);
  const int64_t now_ns = BootNs();
  const int64_t tick_ns = kSecondNs / std::max<int64_t>(::sysconf(_SC_CLK_TCK), 1);
  std::map<int32_t, Known> known;
  std::vector<JobProcess> processes;
  for (const int32_t pid : ListProcesses(root_)) {
    const std::optional<uint64_t> start_ticks = reader.StartOf(pid);
    if (!start_ticks) continue;
    Known process;
    if (auto before = known_.extract(pid); !before.empty() && before.mapped().start_ticks == *start_ticks) {
      process = std::move(before.mapped());
    }
    if (now_ns >= process.look_again_ns) {
      process.start_ticks = *start_ticks;
      const int64_t age_ns =
          now_ns - static_cast<int64_t>(std::min<uint64_t>(*start_ticks, INT64_MAX / tick_ns)) * tick_ns;
      process.look_again_ns = now_ns + std::clamp(age_ns / 4, kShortestNs, kLongestNs);
      process.process = ReadJobProcess(pid, allowed_, root_);
      const bool may_be =
          process.process && (process.process->details.rank || !process.process->details.torch_version.empty());
      if (!may_be) process.process.reset();
    }
    if (process.process) processes.push_back(*process.process);
    known.emplace(pid, std::move(process));
  }
  known_ = std::move(known);
  return ChooseRanks(std::move(processes));
}

}  // namespace lockstep::proc
