#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "node/agent/capture/capture_manager.h"
#include "node/control/api/inspection.h"

namespace lockstep::agent {

/// Inspects processes of this node on request, one request at a time on a thread of its own: a caller asks again for
/// the result, so that no route blocks. Thread-safe.
class InspectionDesk {
 public:
  static constexpr size_t kWaiting = 8;               ///< Requests that may wait for their turn.
  static constexpr size_t kKept = 4;                  ///< Answers that have not been fetched yet; older ones go.
  static constexpr int64_t kKeptNs = 60'000'000'000;  ///< And after this.

  /// What a request gives; called on the desk's thread. `allowed` says whose processes may be looked at.
  using Look = std::function<Result<control::Inspection>(const control::InspectionSpec& spec,
                                                         const std::function<bool(uint32_t uid)>& allowed)>;

  InspectionDesk(Look look, std::function<int64_t()> now_ns);
  /// Returns when the look under way has ended, and the rest is dropped.
  ~InspectionDesk();
  InspectionDesk(const InspectionDesk&) = delete;
  InspectionDesk& operator=(const InspectionDesk&) = delete;

  /// Queues it; the answer has an id and no result yet. Errors: kLimitExceeded (too many wait).
  Result<control::Inspection> Start(const control::InspectionSpec& spec, const Caller& caller);
  /// How far it is, as JSON; its whole result once it is done. Errors: kNotFound (never, not any more, or another
  /// caller's), and those of the look: kNotFound (no such process), kPermissionDenied (none that the caller may see).
  Result<std::string> Get(const std::string& id, const Caller& caller, bool* is_done);
  /// The result has been fetched.
  void Forget(const std::string& id);

 private:
  struct Entry {
    control::Inspection inspection;
    control::InspectionSpec spec;
    Caller caller;
    int64_t done_ns = 0;
    std::optional<Error> error;
    std::string result;  ///< JSON.
  };
  void Run(const std::stop_token& stop);
  void DropOld() LOCKSTEP_REQUIRES(mutex_);

  const Look look_;
  const std::function<int64_t()> now_ns_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<Entry>> entries_ LOCKSTEP_GUARDED_BY(mutex_);  // Shared with the look that is under way.
  std::jthread thread_;
};

}  // namespace lockstep::agent
