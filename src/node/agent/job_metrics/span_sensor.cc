#include "node/agent/job_metrics/span_sensor.h"

#include <utility>

#include "node/proc/proc_reader.h"

namespace lockstep::agent {
namespace {

// All processes are asked what they are: a new rank may wait that long to be seen.
constexpr auto kFindEvery = std::chrono::seconds(5);
// Of one file at a look: what is more waits for the next, and holds up no other rank.
constexpr int kMostReadings = 4;

}  // namespace

SpanSensor::SpanSensor(std::string host, FindProcesses find, KeptSteps* kept)
    : host_(std::move(host)), find_(std::move(find)), kept_(kept) {}

void SpanSensor::FindRanks() {
  const auto now = std::chrono::steady_clock::now();
  if (now < find_again_) return;
  find_again_ = now + kFindEvery;
  for (proc::JobProcess& process : find_()) {
    Watched& watched = watched_[process.pid];
    if (watched.start_ticks != process.details.start_ticks) watched = {};
    watched.uid = process.uid;
    watched.start_ticks = process.details.start_ticks;
    watched.identity = {process.details.job_id,
                        process.details.rank,
                        process.details.world_size,
                        process.details.local_rank,
                        process.pid,
                        host_,
                        std::move(process.details.user),
                        std::move(process.details.device)};
    if (watched.file == nullptr || !watched.file->IsOpen(process.pid)) {
      if (auto file = SpanFile::Find(process.pid, process.uid)) {
        watched.file = std::move(file);
        kept_->Forget(process.pid);  // It is read from its beginning.
      }
    }
  }
}

Result<Reading> SpanSensor::Look() {
  FindRanks();
  const proc::ProcReader reader("/proc");
  for (auto at = watched_.begin(); at != watched_.end();) {
    auto& [pid, watched] = *at;
    if (!reader.IsAlive(pid, watched.start_ticks)) {
      jobs_.Forget(pid);
      kept_->Forget(pid);
      at = watched_.erase(at);
      continue;
    }
    ++at;
    if (watched.file == nullptr) {
      jobs_.See(watched.identity);
      continue;
    }
    auto& follower = watched.file->follower();
    bool has_more = true;
    for (int reading = 0; has_more && reading < kMostReadings; ++reading) {
      const auto followed = follower.ReadOn();
      if (!followed) {
        watched.file.reset();
        break;
      }
      kept_->Take(watched.identity, jobs_.Take(watched.identity, *followed, [&](uint32_t name) -> const std::string& {
        return follower.NameOf(name);
      }));
      has_more = followed->has_more;
    }
  }
  return Reading{!watched_.empty(), jobs_.Collect()};
}

}  // namespace lockstep::agent
