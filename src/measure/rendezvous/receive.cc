#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/number_ranges.h"
#include "measure/rendezvous/hello.h"
#include "measure/rendezvous/meeting.h"

namespace lockstep::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Who knocks: a rank, or a stranger, which costs a socket until the deadline and no more.
struct Guest {
  explicit Guest(Socket connected) : socket(std::move(connected)), deadline(socket.get_executor()) {}
  Socket socket;
  asio::steady_timer deadline;
  std::array<std::byte, kHelloBytes> hello = {};
  std::array<std::byte, kAnswerBytes> answer = {};
};

/// Takes connections until every rank has its seat. Handlers hold it, so that it outlives those that come late.
class Door : public std::enable_shared_from_this<Door> {
 public:
  Door(asio::io_context* context, tcp::acceptor acceptor, const JobPlace& place, const TcpCommunicator::Limits& limits)
      : context_(*context),
        acceptor_(std::move(acceptor)),
        pause_(*context),
        place_(place),
        limits_(limits),
        seats_(place.world_size),
        is_taken_(place.world_size) {}

  void Accept() {
    acceptor_.async_accept([self = shared_from_this()](SystemError error, Socket socket) {
      if (self->is_closed_) return;
      if (!error && self->guest_count_ < kMostStrangers + self->seats_.size()) self->Greet(std::move(socket));
      if (!error) return self->Accept();
      // It may pass, descriptors for example; who knocks meanwhile waits before the door.
      self->accept_error_ = error.message();
      self->pause_.expires_after(kPause);
      self->pause_.async_wait([self](SystemError) {
        if (!self->is_closed_) self->Accept();
      });
    });
  }

  void Close() {
    is_closed_ = true;
    SystemError ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  /// Ranks that have not come.
  std::vector<size_t> Missing() const {
    std::vector<size_t> ranks;
    for (size_t rank = 1; rank < seats_.size(); ++rank) {
      if (!seats_[rank]) ranks.push_back(rank);
    }
    return ranks;
  }
  std::vector<Socket> TakeSeats() {
    std::vector<Socket> sockets;
    for (size_t rank = 1; rank < seats_.size(); ++rank) sockets.push_back(std::move(*seats_[rank]));
    return sockets;
  }
  size_t turned_away() const { return turned_away_; }
  /// Why it could not take a connection last; "" = it could.
  const std::string& accept_error() const { return accept_error_; }

 private:
  static constexpr size_t kMostStrangers = 64;
  static constexpr auto kPause = std::chrono::milliseconds(100);

  void Greet(Socket socket) {
    ++guest_count_;
    // The last handler that lets go of the guest counts it out.
    const std::shared_ptr<Guest> guest(new Guest(std::move(socket)), [self = shared_from_this()](Guest* gone) {
      --self->guest_count_;
      delete gone;
    });
    guest->deadline.expires_after(limits_.hello);
    guest->deadline.async_wait([weak = std::weak_ptr(guest)](SystemError error) {
      SystemError ignored;
      if (const auto late = weak.lock(); late && !error) late->socket.close(ignored);
    });
    asio::async_read(guest->socket, asio::buffer(guest->hello),
                     [self = shared_from_this(), guest](SystemError error, size_t) {
                       if (self->is_closed_) return;
                       const auto hello = ParseHello(guest->hello);
                       if (error || !hello) {
                         ++self->turned_away_;
                         return;
                       }
                       self->Reply(guest, *hello);
                     });
  }

  Answer Judge(const Hello& hello) const {
    if (hello.job != place_.job) return Answer::kOtherJob;
    if (hello.world_size != place_.world_size) return Answer::kOtherWorldSize;
    if (hello.rank == 0 || hello.rank >= place_.world_size) return Answer::kNoSuchRank;
    return is_taken_[hello.rank] ? Answer::kRankIsThere : Answer::kWelcome;
  }

  void Reply(const std::shared_ptr<Guest>& guest, const Hello& hello) {
    const Answer answer = Judge(hello);
    if (answer == Answer::kWelcome) is_taken_[hello.rank] = true;
    if (answer != Answer::kWelcome) ++turned_away_;
    guest->answer = ToBytes(answer);
    asio::async_write(guest->socket, asio::buffer(guest->answer),
                      [self = shared_from_this(), guest, answer, rank = hello.rank](SystemError error, size_t) {
                        if (self->is_closed_ || answer != Answer::kWelcome) return;
                        if (error) {
                          self->is_taken_[rank] = false;
                          return;
                        }
                        guest->deadline.cancel();
                        self->seats_[rank] = std::move(guest->socket);
                        if (self->Missing().empty()) self->context_.stop();
                      });
  }

  asio::io_context& context_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const JobPlace place_;
  const TcpCommunicator::Limits limits_;
  std::vector<std::optional<Socket>> seats_;
  std::vector<bool> is_taken_;  // A seat that is promised, or filled.
  size_t guest_count_ = 0;
  size_t turned_away_ = 0;
  std::string accept_error_;
  bool is_closed_ = false;
};

/// Each rank costs a descriptor; the usual limit of 1024 is not the system's.
void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// What else may keep ranks from coming.
std::string Hints(const Door& door, const tcp::endpoint& endpoint) {
  std::string hints;
  if (door.turned_away() > 0) hints += fmt::format(" ({} connections were turned away)", door.turned_away());
  if (!door.accept_error().empty()) {
    hints += fmt::format(" (connections could not be taken: {}; see ulimit -n)", door.accept_error());
  }
  // Debian gives a host's own name 127.0.1.1.
  if (endpoint.address().is_loopback()) {
    hints += " (which only this host reaches: where ranks run on others too, LOCKSTEP_BENCH_LISTEN=0.0.0.0)";
  }
  return hints;
}

/// Listens at the first free port of the place.
Result<tcp::acceptor> Listen(asio::io_context* context, const JobPlace& place) {
  SystemError error;
  tcp::resolver resolver(*context);
  std::string why;
  for (uint16_t i = 0; i < kPortCount; ++i) {
    const auto port = static_cast<uint16_t>(place.first_port + i);
    const auto found = resolver.resolve(place.listen_address, std::to_string(port), error);
    if (error) {
      why = error.message();
      break;
    }
    for (const auto& entry : found) {
      tcp::acceptor acceptor(*context);
      acceptor.open(entry.endpoint().protocol(), error);
      if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
      if (!error) acceptor.bind(entry.endpoint(), error);
      if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
      if (!error) return acceptor;
      why = error.message();
    }
  }
  return Error{
      .code = ErrorCode::kIo,
      .message = fmt::format("rank 0 cannot listen at {}, ports {} to {}: {}; MASTER_ADDR must be an address of "
                             "its host (or LOCKSTEP_BENCH_LISTEN, where others reach it by another), and ports "
                             "above MASTER_PORT be free",
                             place.listen_address, place.first_port, place.first_port + kPortCount - 1, why)};
}

}  // namespace

Result<std::vector<Socket>> Receive(asio::io_context* context, const JobPlace& place,
                                    const TcpCommunicator::Limits& limits) {
  if (place.world_size <= 1) return std::vector<Socket>();
  RaiseDescriptorLimit();
  ASSIGN_OR_RETURN(tcp::acceptor acceptor, Listen(context, place));
  const tcp::endpoint endpoint = acceptor.local_endpoint();
  const auto door = std::make_shared<Door>(context, std::move(acceptor), place, limits);
  door->Accept();
  context->run_for(limits.meeting);
  door->Close();
  const std::vector<size_t> missing = door->Missing();
  if (missing.empty()) {
    std::vector<Socket> sockets = door->TakeSeats();
    // Who still knocks: their handlers see that it is closed.
    context->restart();
    context->poll();
    return sockets;
  }
  return Error{.code = ErrorCode::kCancelled,
               .message = fmt::format("rank{} {} of {} did not come to {} port {} in {} s{}: check that they run with "
                                      "the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and can reach it",
                                      missing.size() == 1 ? "" : "s", NumberRangesText(missing), place.world_size,
                                      endpoint.address().to_string(), endpoint.port(),
                                      std::chrono::duration_cast<std::chrono::seconds>(limits.meeting).count(),
                                      Hints(*door, endpoint))};
}

}  // namespace lockstep::rendezvous
