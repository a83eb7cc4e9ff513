#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "node/agent/kineto/datagram.h"
#include "node/agent/kineto/registry.h"
#include "node/control/api/process.h"
#include "node/proc/process_details.h"

namespace lockstep::agent {

/// Where a datagram came from. The kernel vouches for pid and uid.
struct Sender {
  size_t socket_idx = 0;  ///< Of the socket that received it.
  std::string address;    ///< sun_path, as the kernel gave it: an abstract one begins with a zero byte.
  int32_t pid = 0;        ///< 0: in a pid namespace that cannot be seen from here.
  uint32_t uid = 0;
};

struct Arrival {
  std::span<const std::byte> bytes;
  Sender sender;
  int64_t sent_unix_ns = 0;  ///< The kernel's stamp from when it was sent.
  int64_t now_unix_ns = 0;
  int64_t now_monotonic_ns = 0;
};

/// Sends replies; replaced in tests. Must not block.
class ReplySink {
 public:
  enum class Outcome : uint8_t { kSent, kGone, kFailed };
  virtual ~ReplySink() = default;
  /// kGone: no process has that address any more. kFailed: not now (its queue is full).
  virtual Outcome Send(const Sender& to, std::span<const std::byte> header, std::string_view payload) = 0;
  /// No process has that address any more.
  virtual bool IsGone(const Sender& /*to*/) { return false; }
};

/// What the endpoint has met so far. Counts only grow.
struct KinetoCounters {
  uint64_t datagrams = 0;
  uint64_t malformed = 0;
  uint64_t unknown_tags = 0;
  uint64_t forged = 0;        ///< Another process's credentials on a known address.
  uint64_t unanswerable = 0;  ///< From a socket without a name, or a name that a reply must not be sent to.
  uint64_t limited = 0;       ///< Over a client's rate, or over the count of clients of a user or of all.
  uint64_t late = 0;          ///< Handled too late to be answered.
  uint64_t withheld = 0;      ///< Not answered because the client may still hold an older reply.
  uint64_t replies = 0;
  uint64_t failed_replies = 0;
  uint64_t deliveries = 0;
  uint64_t registrations = 0;
  uint64_t ended = 0;
};

struct ProcessTableOptions {
  std::string host = {};
  std::vector<std::string> sockets = {"abstract"};  ///< Process::socket, by Sender::socket_idx.
  size_t client_limit = 4096;
  size_t uid_client_limit = 1024;
  size_t pid_client_limit = 4;  ///< Kineto has one; another library in the process may have a second.
  std::function<int64_t()> wall_clock_ns = {};
};

/// The registered clients and their pending requests: all decisions of the endpoint, without sockets, threads or
/// /proc. Thread-safe; the lock is held over ReplySink::Send, so that an offer is delivered or withdrawn and never
/// both.
class ProcessTable {
 public:
  explicit ProcessTable(ProcessTableOptions options);
  ~ProcessTable();

  /// What the endpoint should do after a datagram.
  struct Next {
    uint64_t new_client = 0;       ///< Serial of a client to look up (SetDetails) and to watch; 0: none.
    uint64_t withheld_client = 0;  ///< Serial of one that was left without an answer to empty its queue; 0: none.
    uint64_t refresh_client = 0;   ///< Serial of one whose details may have changed; 0: none.
  };
  /// Takes one datagram, and replies where it may. A client's budget is 50 ms from `sent_unix_ns`, and it takes a later
  /// reply for the answer to its NEXT poll, for ever: so none is sent that might be late, and none to a client that may
  /// hold one.
  Next Handle(const Arrival& arrival, ReplySink* sink);

  /// What /proc says; the first call publishes the client (kRegistered). `gone`: there is no such process any more.
  void SetDetails(uint64_t serial, proc::ProcessDetails details, bool gone);
  /// Its process has ended, or its address is dead.
  void End(uint64_t serial, control::ProcessEnd end);
  /// Its queue was seen to hold a reply that it has not read: so many polls stay without an answer.
  void OweSilence(uint64_t serial);

  /// A client that Sweep has let go, or that is to be looked at.
  struct Swept {
    std::vector<uint64_t> silent_clients;  ///< Silent and alive as far as known: is the process still there?
    int64_t next_monotonic_ns = 0;         ///< When to sweep again; 0: nothing to watch.
  };
  /// Finds silent clients, and forgets those that cannot be shown to be alive. Call it each second or later.
  Swept Sweep(int64_t now_monotonic_ns);

  /// Sender of a client that is registered, or nullopt.
  std::optional<Sender> FindSender(uint64_t serial) const;
  /// What is known of it, or null.
  std::shared_ptr<const proc::ProcessDetails> FindDetails(uint64_t serial) const;
  /// Senders of clients that have ended since the last call.
  std::vector<std::pair<uint64_t, Sender>> TakeEnded();
  /// Events since the last call, in order.
  std::vector<RegistryEvent> TakeEvents();
  bool has_events() const;
  /// A datagram that was not handed over because no reply may go to its sender.
  void CountUnanswerable();
  KinetoCounters Counters() const;
  size_t client_count() const;

  // See Registry.
  std::vector<control::Process> Processes() const;
  std::optional<control::Process> Find(const std::string& process_id) const;
  Status Place(const std::string& process_id, Offer offer);
  bool Withdraw(const std::string& process_id, const std::string& token);
  void Stop(const std::string& process_id, const std::string& trace_id);
  std::string Note(const std::string& process_id) const;

 private:
  struct Client;

  Client* FindOrRegister(const Arrival& arrival, ReplySink* sink, bool* is_new) LOCKSTEP_REQUIRES(mutex_);
  bool MakeRoom(const Sender& sender, ReplySink* sink) LOCKSTEP_REQUIRES(mutex_);
  bool TakeRate(Client* client, int64_t now_monotonic_ns) LOCKSTEP_REQUIRES(mutex_);
  void NotePoll(Client* client, const PollRequest& poll, const Arrival& arrival) LOCKSTEP_REQUIRES(mutex_);
  void NoteMask(Client* client, bool busy, int64_t now_unix_ns) LOCKSTEP_REQUIRES(mutex_);
  bool MayReply(Client* client, const Arrival& arrival) LOCKSTEP_REQUIRES(mutex_);
  void Reply(Client* client, const Arrival& arrival, std::string_view tag, std::string_view payload,
             const std::string& token, ReplySink* sink) LOCKSTEP_REQUIRES(mutex_);
  void Emit(const Client& client, RegistryEvent::Kind kind, int64_t unix_ns, std::string token = {},
            control::ProcessEnd end = {}) LOCKSTEP_REQUIRES(mutex_);
  void Remove(uint64_t serial, std::optional<control::ProcessEnd> end = {}) LOCKSTEP_REQUIRES(mutex_);
  Client* FindById(const std::string& process_id) const LOCKSTEP_REQUIRES(mutex_);
  std::vector<const Client*> Published() const LOCKSTEP_REQUIRES(mutex_);
  std::vector<const Client*> Shown() const LOCKSTEP_REQUIRES(mutex_);
  bool IsKinetoBusy(const Client& tracer) const LOCKSTEP_REQUIRES(mutex_);
  void AnswerTracer(Client* client, const Arrival& arrival, bool is_free, ReplySink* sink) LOCKSTEP_REQUIRES(mutex_);
  control::Process Describe(const Client& client, control::ProcessRole role) const LOCKSTEP_REQUIRES(mutex_);

  const ProcessTableOptions options_;

  mutable Mutex mutex_;
  uint64_t last_serial_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Client>> clients_ LOCKSTEP_GUARDED_BY(mutex_);  ///< By serial.
  std::unordered_map<std::string, uint64_t> by_address_ LOCKSTEP_GUARDED_BY(mutex_);           ///< Socket and address.
  std::unordered_map<uint32_t, size_t> uid_counts_ LOCKSTEP_GUARDED_BY(mutex_);
  std::unordered_map<int32_t, size_t> pid_counts_ LOCKSTEP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint64_t> by_id_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, Sender>> ended_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<RegistryEvent> events_ LOCKSTEP_GUARDED_BY(mutex_);
  KinetoCounters counters_ LOCKSTEP_GUARDED_BY(mutex_);
  int64_t last_sweep_monotonic_ns_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::agent
