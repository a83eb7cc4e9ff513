#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "node/agent/kineto/details_reader.h"
#include "node/agent/kineto/kineto_socket.h"
#include "node/agent/kineto/process_table.h"
#include "node/agent/kineto/registry.h"

namespace lockstep::agent {

struct KinetoOptions {
  std::string name = "dynolog";  ///< Unmodified processes know no other.
  bool abstract_socket = true;
  /// KINETO_IPC_SOCKET_DIR of processes in other network namespaces, each exactly as they have it. They must exist.
  std::vector<std::string> directories = {};
  std::string host = {};  ///< Process::host.
  size_t client_limit = 4096;
  size_t uid_client_limit = 1024;
};

/// Where a node's PyTorch processes ask for work: binds Kineto's sockets, and keeps the registry of clients. Answers on
/// a thread of its own within the clients' 50 ms; listeners are called from a second, and /proc is read on a third.
/// docs/formats/kineto-ipc.md.
class KinetoEndpoint final : public Registry, private ReplySink {
 public:
  /// Binds all sockets, or none. Errors: as BindAbstractSocket and BindDirectorySocket; kInvalidArgument without any.
  static Result<std::unique_ptr<KinetoEndpoint>> Create(const KinetoOptions& options);
  ~KinetoEndpoint() override;
  KinetoEndpoint(const KinetoEndpoint&) = delete;
  KinetoEndpoint& operator=(const KinetoEndpoint&) = delete;

  std::vector<control::Process> Processes() const override { return table_.Processes(); }
  std::optional<control::Process> Find(const std::string& process_id) const override { return table_.Find(process_id); }
  Status Place(const std::string& process_id, Offer offer) override {
    return table_.Place(process_id, std::move(offer));
  }
  bool Withdraw(const std::string& process_id, const std::string& token) override {
    return table_.Withdraw(process_id, token);
  }
  void Stop(const std::string& process_id, const std::string& trace_id) override { table_.Stop(process_id, trace_id); }
  std::string Note(const std::string& process_id) const override { return table_.Note(process_id); }
  /// Not from within a listener.
  void Listen(std::function<void(const RegistryEvent&)> listener) override;

  /// What is bound, for NodeStatus::kineto_sockets.
  std::vector<std::string> Sockets() const;
  /// What an administrator should know, each once.
  std::vector<std::string> Problems() const;
  KinetoCounters Counters() const { return table_.Counters(); }

 private:
  struct Batch;

  KinetoEndpoint(const KinetoOptions& options, std::vector<KinetoSocket> sockets, UniqueFd epoll, UniqueFd wake);

  void Run(std::stop_token stop);
  void Drain(size_t socket_idx, Batch* batch);
  void End(uint64_t serial);
  void Take(const Arrival& arrival);
  void WatchClient(uint64_t serial, int64_t seen_boottime_ns);
  void RequestRefresh(uint64_t serial);
  void Sweep(int64_t now_monotonic_ns);
  void CheckQueues();
  void ForgetEnded();
  void Wake() const;
  void NotifyListener();
  void CallListener(std::stop_token stop);
  void AddProblem(std::string problem);
  Outcome Send(const Sender& to, std::span<const std::byte> header, std::string_view payload) override;
  bool IsGone(const Sender& to) override { return IsDeadAddress(to.address); }

  // Constant after construction.
  const std::vector<KinetoSocket> sockets_;
  const UniqueFd epoll_;
  const UniqueFd wake_;

  ProcessTable table_;

  mutable Mutex problems_mutex_;
  std::set<std::string> problems_ LOCKSTEP_GUARDED_BY(problems_mutex_);

  Mutex events_mutex_;
  std::condition_variable_any events_changed_;
  bool events_pending_ LOCKSTEP_GUARDED_BY(events_mutex_) = false;
  Mutex listener_mutex_;  ///< Held while the listener is called.
  std::function<void(const RegistryEvent&)> listener_ LOCKSTEP_GUARDED_BY(listener_mutex_);

  // Of the endpoint's thread alone.
  std::unordered_map<uint64_t, UniqueFd> pidfds_;  ///< By serial; readable once the process has ended.
  int64_t next_sweep_monotonic_ns_ = 0;            ///< 0: none.
  /// Clients that may hold a reply of the daemon before this one, or several, to be looked at with the next sweep.
  std::vector<uint64_t> to_check_;
  int64_t check_until_monotonic_ns_ = 0;  ///< New clients are looked at until then.

  std::unique_ptr<DetailsReader> details_reader_;
  std::jthread listener_thread_;
  std::jthread thread_;
};

}  // namespace lockstep::agent
