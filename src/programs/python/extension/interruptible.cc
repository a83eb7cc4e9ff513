#include "programs/python/extension/interruptible.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "programs/python/extension/errors.h"

namespace lockstep::python {
namespace {

namespace py = pybind11;

constexpr auto kInterval = std::chrono::milliseconds(100);

/// Whether the work has ended; for those who wait for it.
class Ending {
 public:
  void Set() {
    const MutexLock lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  /// Whether it is set, after `interval` at the latest.
  bool WaitFor(std::chrono::milliseconds interval) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, interval, [this]() LOCKSTEP_REQUIRES(mutex_) { return is_set_; });
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_set_ LOCKSTEP_GUARDED_BY(mutex_) = false;
};

/// Returns what was raised before the work ended, or in the last tick.
std::exception_ptr Attend(Ending* ending, const std::function<void()>& tick, const std::function<void()>& cancel) {
  std::exception_ptr raised;
  for (bool ended = false; !ended;) {
    ended = ending->WaitFor(kInterval);
    if (raised) {
      if (!ended) cancel();
      continue;
    }
    try {
      const py::gil_scoped_acquire acquire;
      if (!ended && PyErr_CheckSignals() != 0) throw py::error_already_set();
      tick();
    } catch (...) {
      raised = std::current_exception();
      if (!ended) cancel();
    }
  }
  return raised;
}

}  // namespace

void RunInterruptibly(const std::function<void()>& work, const std::function<void()>& tick,
                      const std::function<void()>& cancel) {
  Ending ending;
  std::exception_ptr thrown;
  std::exception_ptr raised;
  {
    const py::gil_scoped_release release;
    std::jthread worker([&] {
      try {
        work();
      } catch (...) {
        thrown = std::current_exception();
      }
      ending.Set();
    });
    raised = Attend(&ending, tick, cancel);
  }
  if (raised) std::rethrow_exception(raised);
  if (thrown) std::rethrow_exception(thrown);
}

std::shared_ptr<LoadedRun> LoadInterruptibly(const std::vector<std::string>& paths, LoadOptions options,
                                             const py::object& on_progress) {
  Mutex mutex;
  std::optional<ingest::IngestProgress> latest;  // Guarded by mutex.
  std::atomic<bool> cancelled = false;
  std::optional<Result<std::shared_ptr<LoadedRun>>> result;
  options.ingest.cancelled = &cancelled;
  options.ingest.on_progress = [&](const ingest::IngestProgress& now) {
    const MutexLock lock(mutex);
    latest = now;
  };
  const auto tell = [&] {
    std::optional<ingest::IngestProgress> now;
    {
      const MutexLock lock(mutex);
      now = std::exchange(latest, std::nullopt);
    }
    if (!now || on_progress.is_none()) return;
    on_progress(now->consumed_bytes, now->total_bytes, now->json_bytes, now->event_count, now->finished_file_count,
                now->file_count);
  };
  RunInterruptibly([&] { result = LoadedRun::Load(paths, std::move(options)); }, tell, [&] { cancelled = true; });
  return ValueOrRaise(std::move(*result));
}

std::shared_ptr<const Table> QueryInterruptibly(LoadedRun* run, const std::string& sql,
                                                const query::QueryLimits& limits) {
  QueryCancel cancel;
  std::optional<Result<std::shared_ptr<const Table>>> result;
  RunInterruptibly([&] { result = run->Query(sql, limits, &cancel); }, [] {}, [&] { cancel.Ask(); });
  return ValueOrRaise(std::move(*result));
}

}  // namespace lockstep::python
