#include "node/agent/dynolog/rpc_server.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/peer_owner.h"
#include "node/agent/dynolog/rpc_message.h"
#include "node/agent/dynolog/trace_request.h"

namespace lockstep::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCodeOf = boost::system::error_code;

// The length goes in the sender's byte order, and is read in ours: Dynolog's clients and daemons are both
// little-endian.
static_assert(std::endian::native == std::endian::little);

/// What all connections share. Everything runs on one thread.
struct Shared {
  DynologOptions options;
  CaptureManager* captures;
  Registry* registry;
  size_t connection_count = 0;
};

/// One connection: one request, one answer, closed. A client that is slow, gives a wrong length or sends nothing costs
/// only one socket until the deadline.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Shared& shared)
      : socket_(std::move(socket)), deadline_(socket_.get_executor()), shared_(shared) {
    ++shared_.connection_count;
  }
  ~Session() { --shared_.connection_count; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start() {
    deadline_.expires_after(std::chrono::seconds(shared_.options.deadline_seconds));
    deadline_.async_wait([self = shared_from_this()](ErrorCodeOf error) {
      if (!error) self->Close();
    });
    asio::async_read(socket_, asio::buffer(&length_, sizeof(length_)),
                     [self = shared_from_this()](ErrorCodeOf error, size_t /*count*/) {
                       if (error) return self->Close();
                       self->ReadText();
                     });
  }

 private:
  void ReadText() {
    if (length_ < 0 || static_cast<size_t>(length_) > shared_.options.request_bytes) return Close();
    text_.resize(static_cast<size_t>(length_));
    asio::async_read(socket_, asio::buffer(text_), [self = shared_from_this()](ErrorCodeOf error, size_t /*count*/) {
      if (error) return self->Close();
      self->Answer();
    });
  }

  void Answer() {
    const RpcReading reading = ReadRpcRequest(text_);
    std::string reply = reading.refusal;
    if (reading.request) reply = ReplyTo(*reading.request);
    if (reply.empty()) return Close();
    const auto length = static_cast<int32_t>(reply.size());
    reply_.resize(sizeof(length));
    std::memcpy(reply_.data(), &length, sizeof(length));
    reply_ += reply;  // In one piece: Dynolog's client reads the length with one call.
    asio::async_write(socket_, asio::buffer(reply_),
                      [self = shared_from_this()](ErrorCodeOf /*error*/, size_t /*count*/) { self->Close(); });
  }

  std::string ReplyTo(const RpcRequest& request) {
    switch (request.function) {
      case RpcRequest::Function::kStatus: return StatusReply();
      case RpcRequest::Function::kVersion: return VersionReply(shared_.options.version);
      case RpcRequest::Function::kTrace: break;
      case RpcRequest::Function::kPauseDcgm:
      case RpcRequest::Function::kResumeDcgm: return DcgmReply();
    }
    ErrorCodeOf gone;
    const tcp::endpoint peer = socket_.remote_endpoint(gone);
    const std::string address = gone ? std::string("unknown") : peer.address().to_string();
    const Caller caller = shared_.options.caller_of(OwnerOfPeer(socket_.native_handle()), address);
    return TraceReplyText(StartTrace(request, shared_.options, caller, shared_.captures, shared_.registry));
  }

  void Close() {
    deadline_.cancel();
    ErrorCodeOf ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  tcp::socket socket_;
  asio::steady_timer deadline_;
  Shared& shared_;
  int32_t length_ = 0;
  std::string text_;
  std::string reply_;
};

class Server : public DynologServer {
 public:
  Server(const DynologOptions& options, CaptureManager* captures, Registry* registry)
      : shared_{.options = options, .captures = captures, .registry = registry} {}
  ~Server() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Status Listen() {
    std::string failures;
    port_ = shared_.options.port;
    for (const std::string& address : shared_.options.addresses) {
      ErrorCodeOf error;
      const auto ip = asio::ip::make_address(address, error);
      if (error)
        return Error{.code = ErrorCode::kInvalidArgument, .message = fmt::format("'{}' is not an IP address", address)};
      tcp::acceptor acceptor(context_);
      const tcp::endpoint endpoint(ip, port_);
      acceptor.open(endpoint.protocol(), error);
      if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
      if (!error && ip.is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
      if (!error) acceptor.bind(endpoint, error);
      if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
      if (error == asio::error::address_in_use) {
        return Error{
            .code = ErrorCode::kIo,
            .message = fmt::format("port {} on {} is in use, by Dynolog perhaps; stop it, or give --dynolog-rpc "
                                   "another port",
                                   port_, address)};
      }
      if (error) {
        failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", address, error.message());
        continue;
      }
      port_ = acceptor.local_endpoint(error).port();
      doors_.push_back(std::make_unique<Door>(std::move(acceptor)));
    }
    if (doors_.empty()) {
      return Error{.code = ErrorCode::kIo, .message = fmt::format("Dynolog's RPC cannot listen: {}", failures)};
    }
    for (const auto& door : doors_) Accept(*door);
    thread_ = std::jthread([this] { context_.run(); });
    return {};
  }

  uint16_t port() const override { return port_; }

 private:
  struct Door {
    explicit Door(tcp::acceptor listening) : acceptor(std::move(listening)), retry(acceptor.get_executor()) {}
    tcp::acceptor acceptor;
    asio::steady_timer retry;
  };

  void Accept(Door& door) {
    door.acceptor.async_accept([this, &door](ErrorCodeOf error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {
        // Out of descriptors, say: what is open needs time to be closed.
        door.retry.expires_after(std::chrono::milliseconds(100));
        door.retry.async_wait([this, &door](ErrorCodeOf stopped) {
          if (!stopped) Accept(door);
        });
        return;
      }
      if (shared_.connection_count < shared_.options.connection_count)
        std::make_shared<Session>(std::move(socket), shared_)->Start();
      Accept(door);
    });
  }

  Shared shared_;  // Before the context: sessions that die with it count themselves out.
  asio::io_context context_{1};
  std::vector<std::unique_ptr<Door>> doors_;
  uint16_t port_ = 0;
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<DynologServer>> DynologServer::Open(const DynologOptions& options, CaptureManager* captures,
                                                           Registry* registry) {
  auto server = std::make_unique<Server>(options, captures, registry);
  RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<DynologServer>(std::move(server));
}

}  // namespace lockstep::agent
