#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/http/server_limits.h"
#include "base/mutex.h"

namespace lockstep::http {

/// The open connections, and the limits on them. Thread-safe.
class ConnectionTable {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;

  explicit ConnectionTable(const ServerLimits& limits) : limits_(limits) {}

  /// Counts a connection of `source` in, if the limits allow it: nullopt when they do not. May close another connection
  /// that has waited for ServerLimits::crowded_seconds.
  std::optional<Id> Enter(const std::string& source, Clock::time_point now);
  /// This connection waits for its client from `now` on; `give_way` is called, once and from any thread, when its place
  /// is given to another. It is destroyed by Busy and Leave.
  void Waiting(Id id, Clock::time_point now, std::function<void()> give_way);
  /// It has a complete request: no other connection takes its place.
  void Busy(Id id);
  void Leave(Id id);

  ConnectionCounts counts() const;

 private:
  struct Entry {
    std::string source;
    std::function<void()> give_way = {};
    Clock::time_point waiting_since = {};
    std::optional<std::list<Id>::iterator> waiting = {};
  };

  std::optional<Id> LongestWaiting(const std::string* source, Clock::time_point now) const LOCKSTEP_REQUIRES(mutex_);
  void Erase(std::unordered_map<Id, Entry>::iterator entry) LOCKSTEP_REQUIRES(mutex_);

  const ServerLimits limits_;
  mutable Mutex mutex_;
  std::unordered_map<Id, Entry> entries_ LOCKSTEP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, size_t> by_source_ LOCKSTEP_GUARDED_BY(mutex_);  // Those with connections.
  std::list<Id> waiting_ LOCKSTEP_GUARDED_BY(mutex_);                              // First who has waited longest.
  Id next_id_ LOCKSTEP_GUARDED_BY(mutex_) = 1;
  ConnectionCounts counts_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::http
