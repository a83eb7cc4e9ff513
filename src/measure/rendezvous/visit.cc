#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "measure/rendezvous/hello.h"
#include "measure/rendezvous/meeting.h"

namespace lockstep::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kConnectLimit{2'000};
constexpr std::chrono::milliseconds kAgainAfter{100};

/// Carries out what `start` begins on the socket, which is closed when it takes longer.
template <typename Start>
SystemError Timed(asio::io_context* context, Socket* socket, std::chrono::milliseconds limit, const Start& start) {
  SystemError result = asio::error::would_block;
  start([&result](SystemError error, auto&&...) { result = error; });
  context->restart();
  context->run_for(limit);
  if (result != asio::error::would_block) return result;
  SystemError ignored;
  socket->close(ignored);
  context->restart();
  context->run();
  return asio::error::timed_out;
}

/// Errors: kFailedPrecondition when it is rank 0 and does not want this rank; others: it is not there.
Result<Socket> Knock(asio::io_context* context, const tcp::endpoint& endpoint, const JobPlace& place,
                     const TcpCommunicator::Limits& limits) {
  Socket socket(*context);
  const auto hello = ToBytes(Hello{.job = place.job, .world_size = place.world_size, .rank = place.rank});
  std::array<std::byte, kAnswerBytes> bytes = {};
  SystemError error =
      Timed(context, &socket, kConnectLimit, [&](auto done) { socket.async_connect(endpoint, std::move(done)); });
  if (!error) {
    error = Timed(context, &socket, limits.hello,
                  [&](auto done) { asio::async_write(socket, asio::buffer(hello), std::move(done)); });
  }
  if (!error) {
    error = Timed(context, &socket, limits.hello,
                  [&](auto done) { asio::async_read(socket, asio::buffer(bytes), std::move(done)); });
  }
  if (error) return Error{.code = ErrorCode::kIo, .message = error.message()};
  ASSIGN_OR_RETURN(const Answer answer, ParseAnswer(bytes));
  const auto refused = [&](std::string why) {
    return Error{.code = ErrorCode::kFailedPrecondition,
                 .message = fmt::format("rank 0 turned rank {} away: {}", place.rank, why)};
  };
  switch (answer) {
    case Answer::kWelcome: return socket;
    case Answer::kOtherJob: return Error{.code = ErrorCode::kNotFound, .message = "another job uses that port"};
    case Answer::kOtherWorldSize: return refused(fmt::format("its world size is not {}", place.world_size));
    case Answer::kNoSuchRank: return refused(fmt::format("there is no such rank among {}", place.world_size));
    case Answer::kRankIsThere: return refused("another process came as this rank; each needs a RANK of its own");
  }
  return refused("");
}

}  // namespace

Result<Socket> Visit(asio::io_context* context, const JobPlace& place, const TcpCommunicator::Limits& limits) {
  const Clock::time_point deadline = Clock::now() + limits.meeting;
  tcp::resolver resolver(*context);
  std::string why;
  while (Clock::now() < deadline) {
    for (uint16_t i = 0; i < kPortCount; ++i) {
      SystemError error;
      // Anew each time: a name may come to be known later than this process.
      const auto found = resolver.resolve(place.address, std::to_string(place.first_port + i), error);
      if (error) {
        why = error.message();
        break;
      }
      for (const auto& entry : found) {
        auto socket = Knock(context, entry.endpoint(), place, limits);
        if (socket) return socket;
        if (socket.error().code == ErrorCode::kFailedPrecondition) return std::move(socket).error();
        if (i == 0 || socket.error().code != ErrorCode::kIo) why = socket.error().message;
      }
    }
    std::this_thread::sleep_for(kAgainAfter);
  }
  return Error{
      .code = ErrorCode::kCancelled,
      .message = fmt::format("rank {}: rank 0 was not reached at {}, ports {} to {}, in {} s ({}): check whether it "
                             "runs, and whether MASTER_ADDR and MASTER_PORT are the same on all ranks",
                             place.rank, place.address, place.first_port, place.first_port + kPortCount - 1,
                             std::chrono::duration_cast<std::chrono::seconds>(limits.meeting).count(), why)};
}

}  // namespace lockstep::rendezvous
