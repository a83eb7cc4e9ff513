#include "present/live_site/health_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "present/report/json_stream.h"

namespace lockstep::live_site {
namespace {

using live::AlarmSeverity;

constexpr double kThrottled = 0.05;  // As the alarm of lockstep top has it.
constexpr size_t kNamedRanks = 8;
// lockstepd's sensors, by the vendors whose GPUs they read.
constexpr std::pair<std::string_view, const char*> kGpuCollectors[] = {{"nvidia", "nvml"}, {"amd", "amdgpu"}};

/// Whether the node's GPUs of the vendor were read: after a daemon's start, and while a driver hangs, they are not.
bool AreRead(const live::NodeView& node, const std::string& vendor) {
  return std::all_of(std::begin(kGpuCollectors), std::end(kGpuCollectors), [&](const auto& known) {
    if (!vendor.empty() && vendor != known.first) return true;
    const auto found = node.collectors.find(known.second);
    return found != node.collectors.end() && found->second.success.value_or(0) > 0;
  });
}

const char* PhaseName(HealthPhase phase) {
  switch (phase) {
    case HealthPhase::kBegan: return "began";
    case HealthPhase::kEnded: return "ended";
    case HealthPhase::kHappened: return "happened";
  }
  return "happened";
}

/// "rank 3", "ranks 0, 1 and 254 more"
std::string RanksText(const std::vector<std::string>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kNamedRanks; ++i) text += (i > 0 ? ", " : "") + ranks[i];
  if (ranks.size() > kNamedRanks) text += fmt::format(" and {} more", ranks.size() - kNamedRanks);
  return text;
}

HealthEntry Entry(const char* kind, AlarmSeverity severity, std::string text) {
  HealthEntry entry;
  entry.kind = kind;
  entry.severity = severity;
  entry.text = std::move(text);
  return entry;
}

}  // namespace

bool HealthLog::Take(const live::View& view) {
  const MutexLock lock(mutex_);
  now_unix_ns_ = view.taken_unix_ns;
  const uint64_t before = entry_count_;
  std::map<Key, HealthEntry> conditions;
  for (const live::NodeView& node : view.nodes) LookAtNode(node, &conditions);
  std::set<std::string> jobs;
  for (const live::JobView& job : view.jobs) {
    jobs.insert(job.job_id);
    LookAtJob(job, &conditions);
  }
  std::erase_if(ranks_, [&](const auto& known) LOCKSTEP_REQUIRES(mutex_) {
    if (jobs.contains(known.first)) return false;
    HealthEntry entry = Entry("job_gone", AlarmSeverity::kInfo, fmt::format("job {} has ended", known.first));
    entry.job_id = known.first;
    Add(std::move(entry));
    return true;
  });
  for (auto& [key, entry] : conditions_) {
    if (conditions.contains(key)) continue;
    entry.phase = HealthPhase::kEnded;
    entry.severity = AlarmSeverity::kInfo;
    Add(entry);
  }
  for (auto& [key, entry] : conditions) {
    entry.phase = HealthPhase::kBegan;
    if (!conditions_.contains(key)) Add(entry);
  }
  conditions_ = std::move(conditions);
  is_first_ = false;
  return entry_count_ > before;
}

void HealthLog::LookAtNode(const live::NodeView& node, std::map<Key, HealthEntry>* conditions) {
  const auto holds = [&](const std::string& device, HealthEntry entry) {
    entry.host = node.host;
    entry.device = device;
    Key key(entry.kind, node.host, device);
    conditions->emplace(std::move(key), std::move(entry));
  };
  if (node.error) {
    holds("", Entry("node_unheard", AlarmSeverity::kCritical,
                    fmt::format("{} does not answer: {}", node.host, node.error->message)));
    // What else held there is not known to have ended.
    for (const auto& [key, entry] : conditions_) {
      if (entry.host == node.host && entry.kind != "node_unheard") conditions->emplace(key, entry);
    }
    return;
  }
  for (const auto& [name, collector] : node.collectors) {
    if (collector.present.value_or(0) > 0 && collector.success.value_or(1) == 0) {
      holds(name, Entry("collector", AlarmSeverity::kWarning, fmt::format("{}: the sensor {} fails", node.host, name)));
    }
  }
  const auto take_count = [&](const char* kind, const live::GpuReading& gpu, std::optional<double> count,
                              const char* what) LOCKSTEP_REQUIRES(mutex_) {
    if (!count) return;
    const auto [known, is_new] = counts_.try_emplace(Key(kind, node.host, gpu.gpu), *count);
    // A counter that went back was restarted with its daemon or driver: its whole value is new.
    const double growth = is_new ? 0 : *count >= known->second ? *count - known->second : *count;
    known->second = *count;
    if (growth <= 0) return;
    HealthEntry entry =
        Entry(kind, AlarmSeverity::kCritical, fmt::format("{} gpu {}: {:.0f} {}", node.host, gpu.gpu, growth, what));
    entry.host = node.host;
    entry.device = gpu.gpu;
    Add(std::move(entry));
  };
  for (const live::GpuReading& gpu : node.lost_gpus) take_count("xid", gpu, gpu.xid_events, "Xid errors");
  if (node.visible_gpus && node.expected_gpus && *node.visible_gpus < *node.expected_gpus) {
    holds("", Entry("gpu_missing", AlarmSeverity::kCritical,
                    fmt::format("{}: {:.0f} of {:.0f} GPUs are there", node.host, *node.visible_gpus,
                                *node.expected_gpus)));
  }
  std::set<std::string> there;
  for (const live::GpuView& gpu : node.gpus) {
    const std::string& name = gpu.reading.gpu;
    const std::string who = fmt::format("{} gpu {}", node.host, name);
    there.insert(name);
    gpus_[{node.host, name}] = gpu.reading.vendor;
    take_count("xid", gpu.reading, gpu.reading.xid_events, "Xid errors");
    take_count("ecc", gpu.reading, gpu.reading.uncorrected_ecc_errors, "memory errors that could not be corrected");
    if (gpu.reading.unresponsive.value_or(0) > 0) {
      holds(name, Entry("gpu_unresponsive", AlarmSeverity::kCritical, who + ": its driver does not answer"));
    }
    if (gpu.thermal_throttle_ratio.value_or(0) > kThrottled) {
      holds(name, Entry("thermal", AlarmSeverity::kWarning, who + ": slowed down because it is too hot"));
    }
  }
  std::erase_if(gpus_, [&](const auto& known) LOCKSTEP_REQUIRES(mutex_) {
    const auto& [host, name] = known.first;
    if (host != node.host || there.contains(name) || !AreRead(node, known.second)) return false;
    HealthEntry entry = Entry("gpu_gone", AlarmSeverity::kCritical, fmt::format("{} gpu {}: is gone", host, name));
    entry.host = host;
    entry.device = name;
    Add(std::move(entry));
    return true;
  });
  for (const live::PortView& port : node.ports) {
    const std::string name = port.port.empty() ? port.device : fmt::format("{}/{}", port.device, port.port);
    if (port.reading.active && *port.reading.active == 0) {
      holds(name, Entry("link_down", AlarmSeverity::kWarning, fmt::format("{} {}: the link is down", node.host, name)));
    }
    if (port.errors_per_s.value_or(0) > 0) {
      holds(name, Entry("link_errors", AlarmSeverity::kWarning,
                        fmt::format("{} {}: {:.3g} errors a second", node.host, name, *port.errors_per_s)));
    }
  }
}

void HealthLog::LookAtJob(const live::JobView& job, std::map<Key, HealthEntry>* conditions) {
  std::vector<std::string> stuck;
  std::set<std::string> there;
  for (const live::RankView& rank : job.ranks) {
    there.insert(rank.rank);
    if (rank.state == live::RankState::kStuck) stuck.push_back(rank.rank);
  }
  const auto [known, is_new] = ranks_.try_emplace(job.job_id);
  if (is_new && !is_first_) {
    HealthEntry entry = Entry("job_seen", AlarmSeverity::kInfo,
                              fmt::format("job {}: {} rank{}", job.job_id, there.size(), there.size() == 1 ? "" : "s"));
    entry.job_id = job.job_id;
    Add(std::move(entry));
  }
  std::vector<std::string> gone;
  std::set_difference(known->second.begin(), known->second.end(), there.begin(), there.end(), std::back_inserter(gone));
  std::sort(gone.begin(), gone.end(), live::RankComesBefore);
  known->second = std::move(there);
  if (!gone.empty()) {
    HealthEntry entry =
        Entry("rank_gone", AlarmSeverity::kCritical,
              fmt::format("job {}: {} {} gone", job.job_id, RanksText(gone), gone.size() == 1 ? "is" : "are"));
    entry.job_id = job.job_id;
    if (gone.size() == 1) entry.rank = gone.front();
    Add(std::move(entry));
  }
  if (stuck.empty()) return;
  HealthEntry entry =
      Entry("rank_stuck", AlarmSeverity::kCritical, fmt::format("job {}: {} stuck", job.job_id, RanksText(stuck)));
  entry.job_id = job.job_id;
  if (stuck.size() == 1) entry.rank = stuck.front();
  conditions->emplace(Key("rank_stuck", job.job_id, ""), std::move(entry));
}

void HealthLog::Note(HealthEntry entry) {
  const MutexLock lock(mutex_);
  now_unix_ns_ = std::max(now_unix_ns_, entry.at_unix_ns);
  Add(std::move(entry));
}

void HealthLog::Add(HealthEntry entry) {
  entry.id = ++entry_count_;
  entry.at_unix_ns = now_unix_ns_;
  entries_.push_front(std::move(entry));
  if (entries_.size() > kMostEntries) entries_.pop_back();
}

std::string HealthLog::Json() const {
  const MutexLock lock(mutex_);
  report::JsonRow row;
  row.Key("dropped_count").Uint(entry_count_ - entries_.size());
  row.Key("entries").Each(entries_, [&](const HealthEntry& entry) {
    row.Key("id").Uint(entry.id).Key("at_unix_ns").Int(entry.at_unix_ns);
    row.Key("kind").Text(entry.kind).Key("phase").Text(PhaseName(entry.phase));
    row.Key("severity").Text(live::AlarmSeverityName(entry.severity)).Key("text").Text(entry.text);
    row.Key("host").TextOrNull(entry.host).Key("job_id").TextOrNull(entry.job_id);
    row.Key("rank").TextOrNull(entry.rank).Key("device").TextOrNull(entry.device);
  });
  return std::string(row.Finish());
}

std::deque<HealthEntry> HealthLog::entries() const {
  const MutexLock lock(mutex_);
  return entries_;
}

}  // namespace lockstep::live_site
