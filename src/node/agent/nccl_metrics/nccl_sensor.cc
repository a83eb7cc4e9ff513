#include "node/agent/nccl_metrics/nccl_sensor.h"

#include <algorithm>

#include "base/now.h"
#include "base/utf8.h"
#include "node/agent/sensors/rank_label.h"
#include "node/proc/job_environment.h"
#include "node/proc/job_processes.h"
#include "node/proc/proc_reader.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostNames = 256;  // Of a job.
constexpr size_t kMostRings = 512;
constexpr int64_t kFindEveryNs = 5'000'000'000;
constexpr int64_t kFirstPauseNs = 2'000'000'000;
constexpr int64_t kLongestPauseNs = 15'000'000'000;
constexpr uint32_t kFirstWithKernels = 3;  // Of NCCL's interface.

}  // namespace

std::string CollectiveSeries::NameIn(Job* job, std::string_view name) const {
  // Cut where a character ends, so that the text stays valid.
  std::string cut = ValidUtf8(name.substr(0, kMostNameBytes));
  while (cut.size() > kMostNameBytes) cut = ValidUtf8(std::string_view(cut).substr(0, cut.size() - 3));
  if (job->names.contains(cut)) return cut;
  if (job->names.size() >= kMostNames) return "other";
  job->names.insert(cut);
  return cut;
}

void CollectiveSeries::AddTotals(Job* job, const MetricLabels& process, const ingest::NcclRingPulse& pulse,
                                 const std::vector<std::string>& groups) {
  for (const ingest::NcclRingTotal& total : *pulse.totals) {
    const std::optional<int32_t> ranks = pulse.communicators[total.communicator].rank_count;
    MetricLabels group = process;
    group.emplace_back("pg", groups[total.communicator]);
    const auto add = [this](const char* name, const MetricLabels& labels, double value) {
      values_[{name, labels}] += value;
    };
    add("lockstep_collective_enqueued_total", group, static_cast<double>(total.enqueued));
    if (pulse.interface_version >= kFirstWithKernels) {
      add("lockstep_collective_started_total", group, static_cast<double>(total.started));
    }
    add("lockstep_collective_completed_total", group, static_cast<double>(total.completed));
    MetricLabels operation = group;
    operation.emplace_back("op", NameIn(job, ingest::TorchOperation(total.function)));
    add("lockstep_collective_calls_total", operation, static_cast<double>(total.completed));
    add("lockstep_collective_seconds_total", operation, static_cast<double>(total.duration_ns) / 1e9);
    const std::optional<double> size = ingest::SizeFactor(total.function, ranks);
    const std::optional<double> bus = ingest::BusFactor(total.function, ranks);
    if (!size) continue;
    add("lockstep_collective_bytes_total", operation, static_cast<double>(total.bytes) * *size);
    if (bus) add("lockstep_collective_bus_bytes_total", operation, static_cast<double>(total.bytes) * *size * *bus);
  }
}

void CollectiveSeries::Add(const std::string& job_id, const std::string& rank, const ingest::NcclRingPulse& pulse,
                           int64_t now_ns) {
  Job& job = jobs_[job_id];
  job.is_there = true;
  const MetricLabels process = {{"job_id", job_id}, {"rank", rank}};
  std::vector<std::string> groups;
  for (const ingest::NcclRingCommunicator& communicator : pulse.communicators) {
    groups.push_back(NameIn(&job, communicator.name.empty() ? "unnamed" : std::string_view(communicator.name)));
  }
  if (pulse.totals) AddTotals(&job, process, pulse, groups);
  if (!pulse.knows_oldest) return;
  for (size_t i = 0; i < pulse.communicators.size(); ++i) {
    MetricLabels group = process;
    group.emplace_back("pg", groups[i]);
    const int64_t age_ns = pulse.oldest_begin_ns[i] ? std::max<int64_t>(now_ns - *pulse.oldest_begin_ns[i], 0) : 0;
    double& oldest = values_[{"lockstep_collective_oldest_inflight_seconds", group}];
    oldest = std::max(oldest, static_cast<double>(age_ns) / 1e9);
  }
}

std::vector<prometheus::MetricFamily> CollectiveSeries::Take() {
  MetricFamilies families(CollectiveMetricSpecs());
  for (const auto& [key, value] : values_) families.Add(key.first, key.second, value);
  values_.clear();
  std::erase_if(jobs_, [](const auto& job) { return !job.second.is_there; });
  for (auto& [id, job] : jobs_) job.is_there = false;
  return families.Take();
}

NcclSensor::NcclSensor(std::function<std::vector<int32_t>()> registered) : registered_(std::move(registered)) {}

void NcclSensor::OpenRing(int32_t pid, bool is_registered, int64_t now_ns, Process* process) {
  process->pause_ns = std::clamp(2 * process->pause_ns, kFirstPauseNs, kLongestPauseNs);
  process->look_at_ns = now_ns + process->pause_ns;
  const std::optional<proc::RingPlace> place = proc::FindRingPlace(pid);
  if (!place || (!place->is_named && !is_registered) || open_count_ >= kMostRings) return;
  process->ring = proc::OpenRing(*place);
  if (!process->ring) return;
  ++open_count_;
  proc::ProcessDetails details;
  proc::ReadJobEnvironment(place->environment, &details);
  process->job_id = JobLabel(details.job_id, pid);
  if (details.rank) process->rank = std::to_string(*details.rank);
}

void NcclSensor::FindRings(int64_t now_ns) {
  if (now_ns < find_at_ns_) return;
  find_at_ns_ = now_ns + kFindEveryNs;
  const std::vector<int32_t> registered = registered_();
  const std::set<int32_t> is_registered(registered.begin(), registered.end());
  std::map<int32_t, Process> processes;
  const proc::ProcReader reader("/proc");
  for (const int32_t pid : proc::ListProcesses()) {
    const std::optional<uint64_t> start_ticks = reader.StartOf(pid);
    if (!start_ticks) continue;
    Process process;
    const auto known = processes_.find(pid);
    if (known != processes_.end() && known->second.start_ticks == *start_ticks) process = std::move(known->second);
    process.start_ticks = *start_ticks;
    if (!process.ring && now_ns >= process.look_at_ns) {
      OpenRing(pid, is_registered.contains(pid), now_ns, &process);
    }
    processes.emplace(pid, std::move(process));
  }
  processes_ = std::move(processes);
  open_count_ = static_cast<size_t>(std::count_if(processes_.begin(), processes_.end(),
                                                  [](const auto& process) { return process.second.ring.has_value(); }));
}

Result<Reading> NcclSensor::Look() {
  FindRings(SteadyNow());
  const proc::ProcReader reader("/proc");
  bool is_present = false;
  for (auto& [pid, process] : processes_) {
    if (!process.ring) continue;
    // What has ended tells no more; its ring goes with the next search.
    if (!reader.IsAlive(pid, process.start_ticks)) continue;
    const auto pulse = ingest::ReadNcclRingPulse(
        [&ring = *process.ring](uint64_t offset, std::span<char> into) { return ring.ReadAt(offset, into); });
    if (!pulse) {
      // A file that was truncated or overwritten is no longer used; a new one may appear in its place.
      process.ring.reset();
      continue;
    }
    is_present = true;
    std::string rank = process.rank;
    if (rank.empty()) rank = RankLabel(pulse->rank, pid);
    series_.Add(process.job_id, rank, *pulse, SteadyNow());
  }
  return Reading{is_present, series_.Take()};
}

}  // namespace lockstep::agent
