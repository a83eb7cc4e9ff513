#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/http/server_limits.h"

namespace lockstep::http {

/// Who is connected, and who may be: the limits on connections. Thread-safe.
class ConnectionTable {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;

  explicit ConnectionTable(const ServerLimits& limits) : limits_(limits) {}

  /// Counts a connection of `source` in, if the limits allow it: nullopt when they do not. May tell another connection
  /// that has waited for ServerLimits::crowded_seconds to give way.
  std::optional<Id> Enter(const std::string& source, Clock::time_point now);
  /// This connection waits for its client from `now` on; `give_way` is called, once and from any thread, when its place
  /// is given to another. It is destroyed by Busy and Leave.
  void Waiting(Id id, Clock::time_point now, std::function<void()> give_way);
  /// It has a whole request: nobody takes its place.
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

  // These want the lock.
  std::optional<Id> LongestWaiting(const std::string* source, Clock::time_point now) const;
  void Erase(std::unordered_map<Id, Entry>::iterator entry);

  const ServerLimits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<Id, Entry> entries_;              // guarded by mutex_
  std::unordered_map<std::string, size_t> by_source_;  // guarded by mutex_; those with connections
  std::list<Id> waiting_;                              // guarded by mutex_; first who has waited longest
  Id next_id_ = 1;                                     // guarded by mutex_
  ConnectionCounts counts_;                            // guarded by mutex_
};

}  // namespace lockstep::http
