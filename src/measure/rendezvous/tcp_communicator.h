#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/communicator.h"
#include "base/result.h"
#include "measure/rendezvous/job_place.h"

namespace lockstep::rendezvous {

/// Ranks of a job that meet over TCP: all connect to rank 0, which listens until all are there and no longer. For small
/// messages between large works. What does not begin with the job's hello is turned away. Not encrypted: as NCCL's own
/// meeting is, for the networks of clusters.
class TcpCommunicator final : public Communicator {
 public:
  struct Limits {
    std::chrono::milliseconds meeting{300'000};  ///< For all ranks to come.
    std::chrono::milliseconds message{330'000};  ///< For the slowest rank to come to a message.
    std::chrono::milliseconds hello{5'000};      ///< For a stranger to say who it is.
  };
  /// Told of a rank that is lost or late. Must not return: the job cannot go on.
  using OnLost = std::function<void(const Error&)>;

  /// Errors: kIo when rank 0 cannot listen; kCancelled when ranks have not come, with their numbers, or rank 0 was not
  /// reached; kFailedPrecondition when rank 0 turned this one away.
  static Result<std::unique_ptr<TcpCommunicator>> Meet(const JobPlace& place, const Limits& limits, OnLost on_lost);
  ~TcpCommunicator() override;

  size_t process() const override;
  size_t process_count() const override;
  void Broadcast(std::string* bytes) override;
  std::vector<std::string> Gather(std::string bytes) override;
  Traffic traffic() const override;

 private:
  class Connections;
  explicit TcpCommunicator(std::unique_ptr<Connections> connections);
  std::unique_ptr<Connections> connections_;
};

}  // namespace lockstep::rendezvous
