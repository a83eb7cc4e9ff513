#include "node/inspect/rings.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/nccl_ring/ring_copy.h"
#include "ingest/nccl_ring/ring_pulse.h"
#include "node/inspect/proc_files.h"
#include "node/proc/rings/ring_files.h"

namespace lockstep::inspect {
namespace {

using evidence::InspectedProcess;

constexpr size_t kMostOperations = 1024;  // Of those that are done; 256 bytes each.
constexpr size_t kMostFiles = 4096;
constexpr size_t kMostFolders = 16;

ingest::ReadRingAt ReaderOf(const proc::RingFile& file) {
  return [&file](uint64_t offset, std::span<char> into) { return file.ReadAt(offset, into); };
}

std::set<uint64_t> CommunicatorsOf(const std::vector<InspectedProcess>& inspected) {
  std::set<uint64_t> communicators;
  for (const InspectedProcess& process : inspected) {
    const auto ring =
        process.ring_bytes.empty() ? std::nullopt : std::optional(ingest::ReadNcclRing(process.ring_bytes));
    if (!ring || !*ring) continue;
    for (const ingest::NcclRingCommunicator& communicator : (*ring)->communicators)
      communicators.insert(communicator.id);
  }
  return communicators;
}

/// As the process that kept it saw itself. Of a process in a container nothing is known by its number here.
bool IsGone(const proc::RingPlace& place, int32_t own_pid) {
  if (place.own_pid != place.pid) return false;
  if (::kill(own_pid, 0) != 0 && errno == ESRCH) return true;
  const auto stat = ParseProcStat(ReadProcFile(own_pid, "stat").value_or(""));
  return stat && (stat->state == 'Z' || stat->state == 'X');
}

std::string ReadRingNow(pid_t pid) {
  const std::optional<proc::RingPlace> place = proc::FindRingPlace(pid);
  const std::optional<proc::RingFile> file = place ? proc::OpenRing(*place) : std::nullopt;
  if (!file) return {};
  auto copy = ingest::CopyNewest(ReaderOf(*file), kMostOperations);
  return copy ? std::move(*copy) : std::string();
}

}  // namespace

std::string ReadRing(pid_t pid, int64_t deadline_monotonic_ns) {
  try {
    std::packaged_task<std::string()> task([pid] { return ReadRingNow(pid); });
    std::future<std::string> ring = task.get_future();
    std::thread(std::move(task)).detach();
    const auto left = std::chrono::nanoseconds(std::max<int64_t>(deadline_monotonic_ns - MonotonicNs(), 0));
    return ring.wait_for(left) == std::future_status::ready ? ring.get() : std::string();
  } catch (const std::exception&) {
    return {};  // Neither memory nor a thread for it: the rest of the look goes on.
  }
}

std::vector<InspectedProcess> FindEndedRanks(const std::vector<proc::JobProcess>& processes,
                                             const std::vector<InspectedProcess>& inspected,
                                             const std::function<bool(int32_t rank)>& wanted) {
  std::vector<InspectedProcess> ended;
  const std::set<uint64_t> communicators = CommunicatorsOf(inspected);
  if (communicators.empty()) return ended;
  std::set<int32_t> ranks;
  for (const InspectedProcess& process : inspected) {
    if (process.rank) ranks.insert(*process.rank);
  }
  std::set<std::pair<std::string, uint32_t>> folders;
  std::map<int32_t, int64_t> opened_ns;  // By rank: of several rings the newest counts.
  for (size_t i = 0; i < processes.size() && i < inspected.size() && folders.size() < kMostFolders; ++i) {
    if (inspected[i].ring_bytes.empty()) continue;
    const std::optional<proc::RingPlace> place = proc::FindRingPlace(processes[i].pid);
    if (!place || !folders.emplace(place->folder, place->uid).second) continue;
    for (const proc::RingFile& file : proc::OpenRings(*place, kMostFiles)) {
      const auto pulse = ingest::ReadNcclRingPulse(ReaderOf(file));
      if (!pulse || !pulse->rank || pulse->host != inspected[i].host || ranks.contains(*pulse->rank) ||
          !wanted(*pulse->rank) || !IsGone(*place, pulse->pid)) {
        continue;
      }
      const bool is_of_job =
          std::any_of(pulse->communicators.begin(), pulse->communicators.end(),
                      [&](const auto& communicator) { return communicators.contains(communicator.id); });
      if (!is_of_job) continue;
      auto copy = ingest::CopyNewest(ReaderOf(file), kMostOperations);
      if (!copy) continue;
      const auto [newest, is_new] = opened_ns.emplace(*pulse->rank, pulse->opened_unix_ns);
      if (!is_new && newest->second >= pulse->opened_unix_ns) continue;
      newest->second = pulse->opened_unix_ns;
      std::erase_if(ended, [&](const InspectedProcess& process) { return process.rank == pulse->rank; });
      InspectedProcess& process = ended.emplace_back();
      process.pid = pulse->pid;
      process.host = pulse->host;
      process.rank = pulse->rank;
      process.world_size = pulse->world_size;
      process.job_id = inspected[i].job_id;
      process.liveness = evidence::Liveness::kGone;
      process.collected_unix_ns = UnixNs();
      process.record_unix_ns = process.collected_unix_ns;
      process.ring_bytes = std::move(*copy);
    }
  }
  return ended;
}

}  // namespace lockstep::inspect
