#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "node/live/job_view.h"

namespace lockstep::live_site {

enum class HealthPhase : uint8_t { kBegan, kEnded, kHappened };

/// What befell a node, a device or a job.
struct HealthEntry {
  uint64_t id = 0;  ///< Counts up.
  int64_t at_unix_ns = 0;
  std::string kind;  ///< "xid", "node_unheard", ...: docs/formats/live-page.md
  HealthPhase phase = HealthPhase::kHappened;
  live::AlarmSeverity severity = live::AlarmSeverity::kInfo;
  std::string text;
  std::string host;  ///< Empty, as those below: does not apply.
  std::string job_id;
  std::string rank;
  std::string device;
};

/// The log of what views show to begin, end and happen, by comparing each with the one before. What one rank of many
/// does is put together, so that a job of any size makes few entries. Thread-safe.
class HealthLog {
 public:
  static constexpr size_t kMostEntries = 256;

  /// Whether something was added.
  bool Take(const live::View& view);
  /// An event that no view shows: an action of a user.
  void Note(HealthEntry entry);
  std::string Json() const;
  std::deque<HealthEntry> entries() const;  ///< Newest first.

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // Kind, host or job, device.

  void LookAtNode(const live::NodeView& node, std::map<Key, HealthEntry>* conditions) LOCKSTEP_REQUIRES(mutex_);
  void LookAtJob(const live::JobView& job, std::map<Key, HealthEntry>* conditions) LOCKSTEP_REQUIRES(mutex_);
  void Add(HealthEntry entry) LOCKSTEP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::deque<HealthEntry> entries_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t entry_count_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  int64_t now_unix_ns_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  bool is_first_ LOCKSTEP_GUARDED_BY(mutex_) = true;
  std::map<Key, HealthEntry> conditions_ LOCKSTEP_GUARDED_BY(mutex_);  // That hold.
  /// Vendors, by host and name.
  std::map<std::pair<std::string, std::string>, std::string> gpus_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<Key, double> counts_ LOCKSTEP_GUARDED_BY(mutex_);                        // Of GPUs' errors.
  std::map<std::string, std::set<std::string>> ranks_ LOCKSTEP_GUARDED_BY(mutex_);  // By job.
};

}  // namespace lockstep::live_site
