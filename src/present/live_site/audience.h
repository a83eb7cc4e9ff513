#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/http/event_stream.h"
#include "base/mutex.h"

namespace lockstep::live_site {

/// All clients of the stream of events. A new event replaces the previous one of its kind: a client that connects later
/// gets the newest of each kind, and a slow client misses some. Thread-safe.
class Audience {
 public:
  /// `on_join` is called, without a lock, when a client has connected; from any thread.
  explicit Audience(std::function<void()> on_join = {}) : on_join_(std::move(on_join)) {}

  /// A stream that has the newest of each kind in it.
  std::shared_ptr<http::EventStream> Join();
  /// `look` tells what is so now, one line of JSON. It is called with what others say held back, so that nothing that
  /// was so before is said after it; it must not say anything itself.
  void Say(const std::string& kind, const std::function<std::string()>& look);
  /// How many are there now.
  size_t size();
  /// Ends all streams, and those that come later.
  void Close();

 private:
  void DropGone() LOCKSTEP_REQUIRES(mutex_);

  const std::function<void()> on_join_;
  Mutex order_;  // Held from looking to saying; taken before mutex_.
  Mutex mutex_;
  std::map<std::string, std::string> newest_ LOCKSTEP_GUARDED_BY(mutex_);  // By kind, as it is sent.
  std::vector<std::shared_ptr<http::EventStream>> streams_ LOCKSTEP_GUARDED_BY(mutex_);
  bool is_closed_ LOCKSTEP_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::live_site
