#include "python/extension/interruptible_load.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "python/extension/errors.h"

namespace lockstep::python {
namespace {

namespace py = pybind11;

constexpr auto kInterval = std::chrono::milliseconds(100);

/// What the reading thread and the calling one share.
struct Exchange {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;                               // Guarded by mutex.
  std::optional<ingest::IngestProgress> progress;  // Guarded by mutex; taken by the calling thread.
  std::atomic<bool> cancelled = false;
};

void Tell(const py::object& on_progress, const ingest::IngestProgress& now) {
  on_progress(now.consumed_bytes, now.total_bytes, now.json_bytes, now.event_count, now.finished_file_count,
              now.file_count);
}

/// Waits for the reading thread; returns what was raised meanwhile.
std::exception_ptr Attend(Exchange* exchange, const py::object& on_progress) {
  std::unique_lock lock(exchange->mutex);
  while (!exchange->done) {
    exchange->changed.wait_for(lock, kInterval);
    const std::optional<ingest::IngestProgress> progress = std::exchange(exchange->progress, std::nullopt);
    const bool done = exchange->done;
    lock.unlock();
    try {
      const py::gil_scoped_acquire acquire;
      if (!done && PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (progress && !on_progress.is_none()) Tell(on_progress, *progress);
    } catch (...) {
      exchange->cancelled = true;
      return std::current_exception();
    }
    lock.lock();
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<LoadedRun> LoadInterruptibly(const std::vector<std::string>& paths, LoadOptions options,
                                             const py::object& on_progress) {
  Exchange exchange;
  std::optional<Result<std::shared_ptr<LoadedRun>>> result;
  std::exception_ptr failure;
  std::exception_ptr raised;
  options.ingest.cancelled = &exchange.cancelled;
  options.ingest.on_progress = [&exchange](const ingest::IngestProgress& now) {
    const std::lock_guard lock(exchange.mutex);
    exchange.progress = now;
  };
  {
    const py::gil_scoped_release release;
    std::jthread reader([&] {
      try {
        result = LoadedRun::Load(paths, std::move(options));
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(exchange.mutex);
      exchange.done = true;
      exchange.changed.notify_one();
    });
    raised = Attend(&exchange, on_progress);
  }
  if (raised) std::rethrow_exception(raised);
  if (failure) std::rethrow_exception(failure);
  return ValueOrRaise(std::move(*result));
}

}  // namespace lockstep::python
