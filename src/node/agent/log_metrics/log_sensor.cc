#include "node/agent/log_metrics/log_sensor.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <set>
#include <string_view>

#include "base/as_user.h"
#include "base/text_scan.h"
#include "model/log_line/log_name.h"
#include "node/agent/sensors/rank_label.h"

namespace lockstep::agent {
namespace {

using evidence::LogEventKind;
using logs::Level;

constexpr auto kSearchEvery = std::chrono::seconds(5);
// The last lines of a rank that died are counted for as long as two scrapes may be apart.
constexpr auto kKeepEnded = std::chrono::seconds(30);
constexpr size_t kMostFiles = 256;
constexpr size_t kMostRanks = 1024;
constexpr int kMostDescriptors = 1 << 16;
constexpr const char* kUnknownRank = "unknown";
constexpr const char* kFilesJob = "files";  // Of files that only the settings know.

/// Kinds that have a series from the start, so that an alert sees the first one.
constexpr LogEventKind kKinds[] = {LogEventKind::kNcclError,        LogEventKind::kOutOfMemory,
                                   LogEventKind::kDeviceError,      LogEventKind::kCollectiveMismatch,
                                   LogEventKind::kTransportTimeout, LogEventKind::kStoreTimeout,
                                   LogEventKind::kPeerReset};

/// Which rank a file's name says: "rank3.node0.job1.20261123T021503Z.pid812.log", "all." of several. Nullopt: the name
/// is none of ours, or of a file that was rotated.
struct OwnName {
  bool is_of_all = false;
};
std::optional<OwnName> ReadOwnName(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const logs::RotatedName rotated = logs::ReadRotatedName(name);
  if (rotated.age != 0 || rotated.stem != name || name.find(".pid") == std::string_view::npos) return std::nullopt;
  if (!name.ends_with(".log") && !name.ends_with(".jsonl")) return std::nullopt;
  if (name.starts_with("all.")) return OwnName{true};
  return name.starts_with("rank") ? std::optional(OwnName{}) : std::nullopt;
}

/// A descriptor of a process that it writes to.
struct Written {
  int number = 0;
  std::string target;
};
std::vector<Written> WrittenFiles(const std::string& folder) {
  std::vector<Written> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) return files;
  int looked_at = 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    const auto number = WholeNumber<int>(entry->d_name);
    if (!number || ++looked_at > kMostDescriptors) continue;
    const bool is_stream = *number == 1 || *number == 2;
    const std::string path = fmt::format("{}/{}", folder, *number);
    char target[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
    if (length <= 0 || target[0] != '/') continue;
    const std::string_view text(target, static_cast<size_t>(length));
    struct stat link = {};
    if ((!is_stream && !ReadOwnName(text)) || ::lstat(path.c_str(), &link) != 0) continue;
    if ((link.st_mode & S_IWUSR) == 0) continue;  // Read alone: a log that is being compressed.
    files.push_back({*number, std::string(text)});
  }
  return files;
}

UniqueFd OpenDescriptor(const std::string& folder, int number) {
  // Following this link opens what the process has open, and nothing else.
  const std::string path = fmt::format("{}/{}", folder, number);
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return UniqueFd();
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

}  // namespace

const MetricSpecs& LogMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_log_lines_total", "counter", "job_id,rank,host,level", "Lines of the rank's logs."},
      {"lockstep_log_errors_total", "counter", "job_id,rank,host",
       "Messages of level error or fatal; a traceback is one."},
      {"lockstep_log_events_total", "counter", "job_id,rank,host,kind",
       "Lines that tell of a failure: nccl_error, out_of_memory, device_error, collective_mismatch, transport_timeout, "
       "store_timeout, peer_reset."},
      {"lockstep_watchdog_timeouts_total", "counter", "job_id,rank,host",
       "Collectives whose time-out NCCL's watchdog wrote of."},
      {"lockstep_log_skipped_bytes_total", "counter", "job_id,rank,host",
       "Bytes of logs that came faster than they are read."},
  };
  return specs;
}

LogSensor::LogSensor(std::string host, FindProcesses find, std::vector<std::string> paths, std::string proc, Clock now)
    : host_(std::move(host)),
      find_(std::move(find)),
      paths_(std::move(paths)),
      proc_(std::move(proc)),
      now_(std::move(now)) {}

void LogSensor::Follow(UniqueFd fd, uint32_t uid, const RankKey& owner, bool skips_own) {
  struct stat info = {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != uid) return;
  const LogFile::Identity identity(info.st_dev, info.st_ino);
  const auto known = watched_.find(identity);
  if (known != watched_.end()) {
    Watched& watched = known->second;
    // A file of two owners holds several ranks: the rank of a line that names none is unknown.
    if (watched.is_current && watched.owner != owner) watched.owner.second = kUnknownRank;
    if (!watched.is_current) watched.owner = owner;
    watched.skips_own = skips_own;
    watched.is_current = true;
    return;
  }
  if (watched_.size() >= kMostFiles) return;
  Watched watched{LogFile(std::move(fd), identity, !has_searched_), {}, owner, skips_own, true};
  watched_.emplace(identity, std::move(watched));
}

void LogSensor::SearchRank(const proc::JobProcess& process, const RankKey& owner) {
  const std::string folder = fmt::format("{}/{}/fd", proc_, process.pid);
  const std::vector<Written> written = WrittenFiles(folder);
  bool has_own = false;
  const auto follow_own = [&](const std::string& in, const Written& file) {
    const auto name = ReadOwnName(file.target);
    if (!name) return;
    has_own = true;
    Follow(OpenDescriptor(in, file.number), process.uid, name->is_of_all ? RankKey(owner.first, kUnknownRank) : owner,
           false);
  };
  for (const Written& file : written) follow_own(folder, file);
  // `lockstep run --logs` stands above its rank.
  if (!process.details.ancestors.empty()) {
    const std::string above = fmt::format("{}/{}", proc_, process.details.ancestors.front());
    struct stat info = {};
    if (::stat(above.c_str(), &info) == 0 && info.st_uid == process.uid) {
      for (const Written& file : WrittenFiles(above + "/fd")) follow_own(above + "/fd", file);
    }
  }
  for (const Written& file : written) {
    if (!ReadOwnName(file.target)) Follow(OpenDescriptor(folder, file.number), process.uid, owner, has_own);
  }
  // Of a log that several ranks share, lines may say whose they are.
  if ((has_own || !written.empty()) && counts_.size() < kMostRanks) counts_[owner];
}

void LogSensor::SearchPattern(const std::string& pattern) {
  glob_t found = {};
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && i < kMostFiles; ++i) {
      struct stat info = {};
      const char* const path = found.gl_pathv[i];
      if (::lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
      const auto known = watched_.find({info.st_dev, info.st_ino});
      if (known != watched_.end() && known->second.is_current) continue;  // A rank's.
      // Opened with the owner's rights, so that a path that is changed meanwhile cannot lead to files that this user
      // may not read.
      UniqueFd fd;
      AsUser(info.st_uid, info.st_gid,
             [&] { fd = UniqueFd(::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)); });
      Follow(std::move(fd), info.st_uid, {kFilesJob, kUnknownRank}, false);
    }
  }
  ::globfree(&found);
}

void LogSensor::Search() {
  const TimePoint now = now_();
  if (now < search_again_) return;
  search_again_ = now + kSearchEvery;
  // What is found once more below keeps its place; what is not is read to its end a last time.
  for (auto& [identity, watched] : watched_) watched.is_current = false;
  std::set<RankKey> there;
  for (const proc::JobProcess& process : find_()) {
    const RankKey owner(JobLabel(process.details.job_id, process.pid), RankLabel(process.details.rank, process.pid));
    there.insert(owner);
    SearchRank(process, owner);
  }
  for (const std::string& pattern : paths_) SearchPattern(pattern);
  for (const auto& [identity, watched] : watched_) there.insert(watched.owner);  // Also those read a last time.
  has_searched_ = true;
  const auto job_is_there = [&](const RankKey& key) {
    return there.contains(key) || (key.first == kFilesJob && there.contains({kFilesJob, kUnknownRank}));
  };
  for (auto& [key, counted] : counts_) {
    if (job_is_there(key)) counted.there_at = now;
  }
  const auto keep = counts_.size() < kMostRanks ? kKeepEnded : std::chrono::seconds(0);
  std::erase_if(counts_, [&](const auto& entry) { return now - entry.second.there_at > keep; });
  for (const auto& [identity, watched] : watched_) {
    if (counts_.size() < kMostRanks) counts_.try_emplace(watched.owner, Counted{.there_at = now});
  }
}

LogCounts* LogSensor::CountsOf(const RankKey& owner, std::optional<int32_t> rank) {
  if (rank && *rank >= 0) {
    const RankKey key(owner.first, std::to_string(*rank));
    const auto known = counts_.find(key);
    if (known != counts_.end()) return &known->second.counts;
    // Files do not tell which ranks there are.
    if (owner.first == kFilesJob && counts_.size() < kMostRanks) {
      Counted& counted = counts_[key];
      counted.there_at = now_();
      return &counted.counts;
    }
  }
  const auto known = counts_.find(owner);
  return known == counts_.end() ? nullptr : &known->second.counts;
}

Result<Reading> LogSensor::Look() {
  Search();
  for (auto& [identity, watched] : watched_) {
    const auto counts_of = [this, held = &watched](std::optional<int32_t> rank) { return CountsOf(held->owner, rank); };
    const LogFile::Look look = watched.file.ReadOn(
        [held = &watched] { held->meter.Break(); },
        [held = &watched, &counts_of](std::string_view bytes) { held->meter.Take(bytes, held->skips_own, counts_of); });
    if (LogCounts* const counts = CountsOf(watched.owner, std::nullopt)) counts->skipped_bytes += look.skipped_bytes;
  }
  std::erase_if(watched_, [](const auto& entry) { return !entry.second.is_current; });

  MetricFamilies out(LogMetricSpecs());
  for (const auto& [key, counted] : counts_) {
    const LogCounts& counts = counted.counts;
    const MetricLabels labels = {{"job_id", key.first}, {"rank", key.second}, {"host", host_}};
    for (size_t level = 0; level < kLogLevels; ++level) {
      MetricLabels with_level = labels;
      with_level.emplace_back("level", logs::LevelName(static_cast<Level>(level)));
      out.Add("lockstep_log_lines_total", std::move(with_level), static_cast<double>(counts.lines[level]));
    }
    const auto count_of = [held = &counts](LogEventKind kind) {
      const auto found = held->events.find(kind);
      return found == held->events.end() ? 0.0 : static_cast<double>(found->second);
    };
    out.Add("lockstep_log_errors_total", labels, static_cast<double>(counts.errors));
    for (const LogEventKind kind : kKinds) {
      MetricLabels with_kind = labels;
      with_kind.emplace_back("kind", evidence::LogEventKindName(kind));
      out.Add("lockstep_log_events_total", std::move(with_kind), count_of(kind));
    }
    out.Add("lockstep_watchdog_timeouts_total", labels, count_of(LogEventKind::kWatchdogTimeout));
    out.Add("lockstep_log_skipped_bytes_total", labels, static_cast<double>(counts.skipped_bytes));
  }
  return Reading{!watched_.empty(), out.Take()};
}

}  // namespace lockstep::agent
