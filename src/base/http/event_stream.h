#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "base/mutex.h"

namespace lockstep::http {

/// Text that goes out piece by piece while it comes into being: Server-Sent Events. Thread-safe.
class EventStream {
 public:
  static constexpr size_t kQueuedBytes = size_t{1} << 20;

  /// Queues bytes to be sent; false when the client has gone or holds more than 1 MiB back, or after Close: the writer
  /// may stop.
  bool Push(std::string bytes);
  /// The same for what replaces everything of its `kind` that was said before: of each kind the newest is kept, and
  /// goes out when the client takes it. So a slow client holds one of each back, whatever their size, and gets no
  /// backlog. Behind what Push has queued, kinds in the order of their names.
  bool PushLatest(const std::string& kind, std::string bytes);
  /// What is queued goes out, then the connection is closed.
  void Close();

  // For the transport.
  /// Takes what is queued; `closed` says whether more may come: true when this was the last.
  std::string Take(bool* closed);
  /// Calls `wake` when there is something new to take, from the pusher's thread and under this stream's lock: it may
  /// only post. Called at once when there is something already. Null: no more calls.
  void OnChange(std::function<void()> wake);
  /// The client has gone. No wake is called after this.
  void Abandon();
  /// Whether Abandon was called, or the client held back too much.
  bool is_abandoned();

 private:
  bool IsEmpty() const LOCKSTEP_REQUIRES(mutex_) { return queued_.empty() && latest_.empty(); }
  void Drop() LOCKSTEP_REQUIRES(mutex_);

  Mutex mutex_;
  std::string queued_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::string, std::string> latest_ LOCKSTEP_GUARDED_BY(mutex_);  // By kind.
  bool is_closed_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool is_abandoned_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::function<void()> wake_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::http
