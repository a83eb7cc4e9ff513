#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/http/event_stream.h"

namespace lockstep::live_site {

/// Everybody who listens to the stream of events. What is said of one kind replaces what was said of it before: who
/// comes later hears the newest of each, who is slow misses some. Thread-safe.
class Audience {
 public:
  /// `on_join` is called, without a lock, when somebody has come; from any thread.
  explicit Audience(std::function<void()> on_join = {}) : on_join_(std::move(on_join)) {}

  /// A stream that has the newest of each kind in it.
  std::shared_ptr<http::EventStream> Join();
  /// `json`: one line.
  void Say(const std::string& kind, const std::string& json);
  /// How many are there now.
  size_t size();
  /// Ends all streams, and those that come later.
  void Close();

 private:
  void DropGone();

  const std::function<void()> on_join_;
  std::mutex mutex_;
  std::map<std::string, std::string> newest_;                // By kind, as it is sent; guarded by mutex_
  std::vector<std::shared_ptr<http::EventStream>> streams_;  // guarded by mutex_
  bool is_closed_ = false;                                   // guarded by mutex_
};

}  // namespace lockstep::live_site
