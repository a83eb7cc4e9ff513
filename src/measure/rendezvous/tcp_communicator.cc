#include "measure/rendezvous/tcp_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <utility>

#include "base/number_ranges.h"
#include "measure/rendezvous/hello.h"
#include "measure/rendezvous/meeting.h"

namespace lockstep::rendezvous {

namespace asio = boost::asio;

/// One message at a time, to or from all peers at once.
class TcpCommunicator::Connections {
 public:
  Connections(const JobPlace& place, const Limits& limits, OnLost on_lost)
      : place_(place), limits_(limits), on_lost_(std::move(on_lost)) {}

  Status Meet() {
    std::vector<Socket> sockets;
    if (place_.rank == 0) {
      ASSIGN_OR_RETURN(sockets, Receive(&context_, place_, limits_));
    } else {
      ASSIGN_OR_RETURN(Socket socket, Visit(&context_, place_, limits_));
      sockets.push_back(std::move(socket));
    }
    for (Socket& socket : sockets) {
      SystemError ignored;
      socket.set_option(asio::ip::tcp::no_delay(true), ignored);
      // A host that dies without closing its connections is noticed.
      socket.set_option(Socket::keep_alive(true), ignored);
      Peer& peer = peers_.emplace_back(std::move(socket));
      peer.rank = place_.rank == 0 ? peers_.size() : 0;
    }
    return {};
  }

  void Send(const std::string& bytes) {
    if (bytes.size() > kMostMessageBytes) return Lose("a message is too large");
    const auto header = LengthBytes(bytes.size());
    for (Peer& peer : peers_) {
      asio::async_write(peer.socket, std::array{asio::buffer(header), asio::buffer(bytes)},
                        [&peer](SystemError error, size_t) { peer.Done(error); });
    }
    Finish("take a message");
    traffic_.sent_bytes += bytes.size();
  }

  std::vector<std::string> ReceiveAll() {
    for (Peer& peer : peers_) {
      asio::async_read(peer.socket, asio::buffer(peer.header), [&peer](SystemError error, size_t) {
        const auto length = ParseLength(peer.header);
        if (error || !length) {
          peer.why = error ? "" : length.error().message;
          return peer.Done(error ? error : SystemError(asio::error::message_size));
        }
        peer.bytes.resize(*length);
        asio::async_read(peer.socket, asio::buffer(peer.bytes),
                         [&peer](SystemError body_error, size_t) { peer.Done(body_error); });
      });
    }
    Finish("come to a message");
    std::vector<std::string> messages;
    for (Peer& peer : peers_) {
      traffic_.received_bytes += peer.bytes.size();
      messages.push_back(std::exchange(peer.bytes, {}));
    }
    return messages;
  }

  const JobPlace& place() const { return place_; }
  Traffic& traffic() { return traffic_; }

 private:
  struct Peer {
    explicit Peer(Socket connected) : socket(std::move(connected)) {}
    void Done(SystemError error) {
      is_done = !error;
      is_lost = static_cast<bool>(error);
    }
    Socket socket;
    size_t rank = 0;
    std::array<std::byte, kHeaderBytes> header = {};
    std::string bytes;
    std::string why;
    bool is_done = false;
    bool is_lost = false;
  };

  /// Runs what was begun with every peer to its end.
  void Finish(const char* what) {
    const auto deadline = std::chrono::steady_clock::now() + limits_.message;
    context_.restart();
    // A lost connection is reported at once, without waiting for the others. Strangers of the meeting are not waited
    // for.
    const auto all_done = [this] { return std::ranges::all_of(peers_, &Peer::is_done); };
    while (Ranks(&Peer::is_lost).empty() && !all_done() && context_.run_one_until(deadline) > 0) {
    }
    if (const std::vector<size_t> lost = Ranks(&Peer::is_lost); !lost.empty()) {
      std::string why;
      for (const Peer& peer : peers_) why += peer.why;
      return Lose(fmt::format("rank {} {}", NumberRangesText(lost),
                              why.empty() ? "closed its connection: it ended; read its output" : why));
    }
    std::vector<size_t> late;
    for (Peer& peer : peers_) {
      if (!peer.is_done) late.push_back(peer.rank);
      peer.is_done = false;
    }
    if (!late.empty()) {
      Lose(fmt::format("rank{} {} did not {} in {} s: stuck, or slower than --timeout allows",
                       late.size() == 1 ? "" : "s", NumberRangesText(late), what,
                       std::chrono::duration_cast<std::chrono::seconds>(limits_.message).count()));
    }
  }

  std::vector<size_t> Ranks(bool Peer::*which) const {
    std::vector<size_t> ranks;
    for (const Peer& peer : peers_) {
      if (peer.*which) ranks.push_back(peer.rank);
    }
    return ranks;
  }

  [[noreturn]] void Lose(std::string why) {
    on_lost_(
        Error{.code = ErrorCode::kCancelled, .message = std::move(why), .rank = static_cast<int32_t>(place_.rank)});
    std::abort();
  }

  const JobPlace place_;
  const Limits limits_;
  const OnLost on_lost_;
  asio::io_context context_;
  std::vector<Peer> peers_;
  Traffic traffic_;
};

TcpCommunicator::TcpCommunicator(std::unique_ptr<Connections> connections) : connections_(std::move(connections)) {}
TcpCommunicator::~TcpCommunicator() = default;

Result<std::unique_ptr<TcpCommunicator>> TcpCommunicator::Meet(const JobPlace& place, const Limits& limits,
                                                               OnLost on_lost) {
  auto connections = std::make_unique<Connections>(place, limits, std::move(on_lost));
  RETURN_IF_ERROR(connections->Meet());
  return std::unique_ptr<TcpCommunicator>(new TcpCommunicator(std::move(connections)));
}

size_t TcpCommunicator::process() const { return connections_->place().rank; }
size_t TcpCommunicator::process_count() const { return connections_->place().world_size; }
Traffic TcpCommunicator::traffic() const { return connections_->traffic(); }

void TcpCommunicator::Broadcast(std::string* bytes) {
  ++connections_->traffic().message_count;
  if (is_root()) {
    connections_->Send(*bytes);
  } else {
    *bytes = std::move(connections_->ReceiveAll().front());
  }
}

std::vector<std::string> TcpCommunicator::Gather(std::string bytes) {
  ++connections_->traffic().message_count;
  if (!is_root()) {
    connections_->Send(bytes);
    return {};
  }
  std::vector<std::string> gathered = connections_->ReceiveAll();
  gathered.insert(gathered.begin(), std::move(bytes));
  return gathered;
}

}  // namespace lockstep::rendezvous
