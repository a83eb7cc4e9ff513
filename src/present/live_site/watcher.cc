#include "present/live_site/watcher.h"

#include <chrono>
#include <sstream>
#include <utility>

#include "base/now.h"
#include "present/top/top_text.h"

namespace lockstep::live_site {

Watcher::Watcher(WatchOptions options, Audience& audience, ViewHistory& history, HealthLog& health)
    : options_(std::move(options)), audience_(audience), history_(history), health_(health), thread_([this] {
        Run();
      }) {}

Watcher::~Watcher() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watcher::Wake() {
  // No change may be missed between the check for clients and the beginning of the wait.
  const MutexLock lock(mutex_);
  changed_.notify_all();
}

std::shared_ptr<const std::string> Watcher::newest() const {
  const MutexLock lock(mutex_);
  return newest_;
}

void Watcher::Run() {
  if (options_.recall) options_.recall([this](const live::View& view) { history_.Add(view); });
  while (true) {
    const int64_t looked_ns = SteadyNow();
    Look();
    if (!WaitUntilDue(looked_ns)) return;
  }
}

/// False: it ends.
bool Watcher::WaitUntilDue(int64_t looked_ns) {
  MutexLock lock(mutex_);
  while (!ends_) {
    const int64_t interval_ns = audience_.size() > 0 ? options_.interval_ns : options_.idle_interval_ns;
    const int64_t left_ns = looked_ns + interval_ns - SteadyNow();
    if (left_ns <= 0) return true;
    changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
  }
  return false;
}

void Watcher::Look() {
  live::View view = options_.look();
  if (options_.on_view) options_.on_view(&view);
  history_.Add(view);
  std::ostringstream out;
  top::WriteTopJson(view, true, out);
  std::string json = std::move(out).str();
  json.pop_back();  // The end of the line.
  {
    const MutexLock lock(mutex_);
    newest_ = std::make_shared<const std::string>(json);
  }
  audience_.Say("view", [&] { return json; });
  if (health_.Take(view) || view.look_count == 1) audience_.Say("health", [this] { return health_.Json(); });
}

}  // namespace lockstep::live_site
