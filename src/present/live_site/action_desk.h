#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/http/http_message.h"
#include "base/mutex.h"
#include "base/result.h"

namespace lockstep::live_site {

/// Answers below an action's page: the request's path is what stands behind "/captures/ID".
using Pages = std::function<http::Response(const http::Request& request)>;

enum class ActionKind : uint8_t { kCapture, kHang };
enum class ActionState : uint8_t {
  kWaiting,
  kRunning,
  kFetching,
  kCollecting,
  kAnalysing,
  kReady,
  kFailed,
  kCancelled,
  kDropped,  ///< It was ready, and made room for newer ones.
};
const char* ActionStateName(ActionState state);  ///< "waiting", ...

/// What a user has asked for and what became of it; docs/formats/live-page.md#events.
struct Action {
  ActionKind kind = ActionKind::kCapture;
  std::string id;
  std::string job_id;
  ActionState state = ActionState::kWaiting;
  std::string reason;
  int64_t asked_unix_ns = 0;
  std::optional<int64_t> finished_unix_ns;
  std::string folder;
  std::string sentence;
  bool is_partial = false;
  // Captures.
  std::optional<int32_t> iterations;
  std::optional<int64_t> duration_ns;
  std::vector<int32_t> ranks;
  size_t target_count = 0;
  size_t kept_count = 0;
  // Hangs.
  size_t done_count = 0;
  size_t total_count = 0;
  std::string verdict;
  std::optional<double> confidence;

  friend bool operator==(const Action& a, const Action& b) = default;
};

/// Actions under way, each in a thread of its own, and the pages of those that are done. Thread-safe.
class ActionDesk {
 public:
  static constexpr size_t kMostUnderWay = 4;
  static constexpr size_t kMostPages = 8;    ///< Of each kind.
  static constexpr size_t kMostListed = 32;  ///< Of each kind.
  /// Of memory that pages hold, of both kinds together; the newest of each kind is kept however much it holds.
  static constexpr uint64_t kMostPageBytes = uint64_t{2} << 30;

  /// What an action's work has of it.
  class Desk {
   public:
    virtual ~Desk() = default;
    /// Calls `change` and, if something was changed, sends the new state to all clients.
    virtual void Change(const std::function<void(Action&)>& change) = 0;
    virtual const std::atomic<bool>& cancelled() const = 0;
    /// How much memory its pages hold, about; to be said before they are handed over.
    virtual void Hold(uint64_t bytes) = 0;
  };
  using Work = std::function<Result<Pages>(Desk& desk)>;

  /// `on_change` is called after every change, `on_end` when an action has ended; both without a lock, from any thread.
  ActionDesk(std::function<void()> on_change, std::function<void(const Action&)> on_end);
  /// Cancels what is under way and waits for it.
  ~ActionDesk();
  ActionDesk(const ActionDesk&) = delete;
  ActionDesk& operator=(const ActionDesk&) = delete;

  /// Begins `work`; `action` says whose and what, the rest is filled in. Result: its id. Errors: kFailedPrecondition
  /// (one of this kind is under way for this job), kLimitExceeded (kMostUnderWay are), kCancelled (it is ending).
  Result<std::string> Begin(Action action, Work work);
  /// Asks one to end. Errors: kNotFound, kFailedPrecondition (it has ended).
  Status Cancel(ActionKind kind, const std::string& id);
  /// Asks all to end and waits at most so long; false: something is still under way.
  bool End(int64_t patience_ns);
  /// Null: there is none, or it is not ready.
  std::shared_ptr<const Pages> FindPages(ActionKind kind, const std::string& id) const;
  /// Newest first: {"captures": [...], "hangs": [...]}
  std::string Json() const;

 private:
  struct Entry;
  class EntryDesk;
  void Run(const std::shared_ptr<Entry>& entry, const Work& work);
  void DropOld() LOCKSTEP_REQUIRES(mutex_);

  const std::function<void()> on_change_;
  const std::function<void(const Action&)> on_end_;
  mutable Mutex mutex_;
  std::list<std::shared_ptr<Entry>> entries_ LOCKSTEP_GUARDED_BY(mutex_);  // Newest first.
  bool ends_ LOCKSTEP_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::live_site
