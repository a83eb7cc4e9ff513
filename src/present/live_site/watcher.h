#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/nanoseconds.h"
#include "node/live/job_view.h"
#include "present/live_site/audience.h"
#include "present/live_site/health_log.h"
#include "present/live_site/view_history.h"

namespace lockstep::live_site {

struct WatchOptions {
  std::function<live::View()> look;  ///< Asks all nodes; called from one thread.
  /// Hands over what was before, oldest first; called once, from that thread, before the first look. May be empty.
  std::function<void(const std::function<void(const live::View&)>& take)> recall = {};
  std::function<void(live::View* view)> on_view = {};  ///< May add to what a look saw; from that thread. May be empty.
  int64_t interval_ns = kSecondNs;
  int64_t idle_interval_ns = 10'000'000'000;  ///< While no client is connected.
};

/// Looks on and on, in a thread of its own, and tells the audience: "view", and "health" when something befell. One
/// look serves all who listen.
class Watcher {
 public:
  /// What is borrowed must outlive this.
  Watcher(WatchOptions options, Audience& audience, ViewHistory& history, HealthLog& health);
  /// Waits for the look that is under way.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// A client has connected: looks now, if the last look is old.
  void Wake();
  /// lockstep.top/1; null before the first look.
  std::shared_ptr<const std::string> newest() const;

 private:
  void Run();
  bool WaitUntilDue(int64_t looked_ns);
  void Look();

  const WatchOptions options_;
  Audience& audience_;
  ViewHistory& history_;
  HealthLog& health_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool ends_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const std::string> newest_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::live_site
