#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/process.h"

namespace lockstep::agent {

/// A configuration text waiting for a process's poll.
struct Offer {
  std::string token;                 ///< Of the one who offers; told back in events.
  std::string text;                  ///< Kineto's KEY=VALUE lines.
  int64_t deliver_from_unix_ns = 0;  ///< Not before this.
  /// Until then the process counts as requested (ProcessState::kRequested) after it has the text, unless its profiler
  /// begins before; 0: a minute after the delivery.
  int64_t pending_until_unix_ns = 0;
  int64_t start_after_ns =
      0;  ///< Delivered with a PROFILE_START_TIME this much later; 0: the text is delivered as it is.
};

/// What happened to a registered process. Events of one process come in order.
struct RegistryEvent {
  enum class Kind : uint8_t {
    kRegistered,
    kDelivered,  ///< `token`'s text is in the process.
    kBusy,       ///< A poll without the ACTIVITIES bit, after one with it: its profiler is in use.
    kFree,       ///< A poll with it, after one without.
    kSilent,     ///< No poll for three periods, and alive.
    kEnded,      ///< Has ended; the registry forgets it after this.
  };
  Kind kind = Kind::kRegistered;
  std::string process_id;
  std::string token = {};  ///< kDelivered.
  int64_t unix_ns = 0;
  control::ProcessEnd end = {};  ///< kEnded: how, where that is known.
};

/// The processes that poll a node's Kineto endpoint. Thread-safe; nothing here waits for disk or network with its lock
/// held.
class Registry {
 public:
  virtual ~Registry() = default;
  /// All of them, by (job, rank, pid); a process with two clients, Kineto's and lockstep's tracer, once: as the tracer
  /// while its steps go on, else as Kineto's. Find knows both.
  virtual std::vector<control::Process> Processes() const = 0;
  virtual std::optional<control::Process> Find(const std::string& process_id) const = 0;
  /// Queues the text for the process's next free poll. Errors: kNotFound; kFailedPrecondition when one is queued
  /// already.
  virtual Status Place(const std::string& process_id, Offer offer) = 0;
  /// Takes an offer back. False: it is not there (any more): it was delivered, or the process has ended. Of a delivered
  /// one it forgets that the process was asked: call it when the capture is over without the profiler having been busy.
  virtual bool Withdraw(const std::string& process_id, const std::string& token) = 0;
  /// Tells lockstep's tracer in the process, at its next poll, to drop or break off the request with this
  /// REQUEST_TRACE_ID. Kineto cannot be told.
  virtual void Stop(const std::string& process_id, const std::string& trace_id) = 0;
  /// The tracer's last report on a request, "TRACE_ID waits WHY" or "TRACE_ID refused WHY"; empty: nothing.
  virtual std::string Note(const std::string& process_id) const = 0;
  /// Calls `listener` for every event from now on, from a thread of the registry's that it must not hold up (queue, and
  /// return); one listener. Null: none; returns when no call is under way.
  virtual void Listen(std::function<void(const RegistryEvent&)> listener) = 0;
};

}  // namespace lockstep::agent
