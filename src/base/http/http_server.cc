#include "base/http/http_server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "base/http/listening_socket.h"
#include "base/http/peer.h"
#include "base/http/session.h"
#include "base/http/tls_context.h"
#include "base/mutex.h"

namespace lockstep::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

constexpr auto kGrace = std::chrono::seconds(2);  // after Stop, for answers under way

}  // namespace

class HttpServer::Impl {
  /// One place to listen. Its steps run on a strand of its own.
  struct Door {
    Door(asio::io_context& context, UniqueFd socket, int family)
        : acceptor(asio::make_strand(context), asio::generic::stream_protocol(family, 0), socket.Release()),
          retry(acceptor.get_executor()) {}

    Acceptor acceptor;
    asio::steady_timer retry;
    std::optional<UnixListener> file = {};
    std::optional<TlsFiles> files = {};
    std::shared_ptr<asio::ssl::context> tls = {};  // guarded by Impl::mutex_
  };

 public:
  Impl(const ServerOptions& options, Handler handler)
      : thread_count_(options.thread_count),
        lookup_(options.takes_bodies ? OwnerLookup::kLoopback : OwnerLookup::kNone),
        state_(options, std::move(handler)),
        context_(std::make_unique<asio::io_context>(options.thread_count)),
        grace_(std::make_unique<asio::steady_timer>(*context_)) {
    if (!options.until_signal) return;
    signals_ = std::make_unique<asio::signal_set>(*context_, SIGINT, SIGTERM);
    struct sigaction hangup = {};
    if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) signals_->add(SIGHUP);
    signals_->async_wait([this](error_code error, int /*signal*/) {
      if (!error) BeginStop();
    });
  }

  Status Listen(const ServerOptions& options) {
    if (!options.port && options.listeners.empty())
      return Error{.code = ErrorCode::kInvalidArgument, .message = "there is nowhere to listen"};
    if (options.port) {
      ASSIGN_OR_RETURN(UniqueFd socket, ListenTcp("127.0.0.1", *options.port));
      port_ = PortOf(socket.get());
      AddDoor(std::move(socket), AF_INET);
    }
    for (const Listener& listener : options.listeners) RETURN_IF_ERROR(AddListener(listener));
    return {};
  }

  uint16_t port() const { return port_; }
  std::vector<uint16_t> listener_ports() const { return listener_ports_; }
  ConnectionCounts connection_counts() const { return state_.table.counts(); }

  Status ReloadCertificates() {
    const MutexLock lock(mutex_);
    std::vector<std::pair<Door*, std::shared_ptr<asio::ssl::context>>> fresh;
    for (const auto& door : doors_) {
      if (!door->files) continue;
      ASSIGN_OR_RETURN(auto context, CreateTlsContext(*door->files));
      fresh.emplace_back(door.get(), std::move(context));
    }
    for (auto& [door, context] : fresh) door->tls = std::move(context);
    return {};
  }

  void Run() {
    for (const auto& door : doors_) asio::post(door->acceptor.get_executor(), [this, at = door.get()] { Accept(*at); });
    std::vector<std::jthread> threads;
    for (int i = 1; i < thread_count_; ++i) threads.emplace_back([this] { context_->run(); });
    context_->run();
    threads.clear();
    const MutexLock lock(mutex_);
    for (const auto& door : doors_) {
      if (door->file) door->file->RemoveFile();
    }
    doors_.clear();
    grace_.reset();
    signals_.reset();
    context_.reset();  // The sessions go with it.
  }

  void Stop() {
    const MutexLock lock(mutex_);
    if (context_) asio::post(*context_, [this] { BeginStop(); });
  }

 private:
  Door& AddDoor(UniqueFd socket, int family) {
    return *doors_.emplace_back(std::make_unique<Door>(*context_, std::move(socket), family));
  }

  Status AddListener(const Listener& listener) {
    std::shared_ptr<asio::ssl::context> tls;
    if (listener.tls) {
      ASSIGN_OR_RETURN(tls, CreateTlsContext(*listener.tls));
    }
    if (!listener.unix_path.empty()) {
      ASSIGN_OR_RETURN(UnixListener file, UnixListener::Open(listener.unix_path));
      Door& door = AddDoor(file.TakeSocket(), AF_UNIX);
      door.file.emplace(std::move(file));
      listener_ports_.push_back(0);
      return {};
    }
    ASSIGN_OR_RETURN(UniqueFd socket, ListenTcp(listener.address, listener.port));
    listener_ports_.push_back(PortOf(socket.get()));
    const bool is_v6 = listener.address.find(':') != std::string::npos;
    Door& door = AddDoor(std::move(socket), is_v6 ? AF_INET6 : AF_INET);
    door.files = listener.tls;
    door.tls = std::move(tls);
    return {};
  }

  void Accept(Door& door) {
    door.acceptor.async_accept(
        asio::make_strand(*context_), [this, &door](error_code error, Connection::Socket socket) {
          if (state_.stopping || error == asio::error::operation_aborted) return;
          if (!error) Enter(door, std::move(socket));
          if (error == asio::error::no_descriptors || error == asio::error::no_memory ||
              error == asio::error::no_buffer_space || error == boost::system::errc::too_many_files_open_in_system) {
            // Out of descriptors: give those that are in use time to be closed.
            door.retry.expires_after(std::chrono::milliseconds(100));
            door.retry.async_wait([this, &door](error_code) { Accept(door); });
            return;
          }
          Accept(door);
        });
  }

  void Enter(Door& door, Connection::Socket socket) {
    const int on = 1;
    if (!door.file) ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ConnectionEnds ends = ReadConnectionEnds(socket.native_handle(), lookup_);
    const auto id = state_.table.Enter(ends.source, std::chrono::steady_clock::now());
    if (!id) return;
    std::shared_ptr<asio::ssl::context> tls;
    {
      const MutexLock lock(mutex_);
      tls = door.tls;
    }
    ends.peer.is_encrypted = tls != nullptr;
    std::make_shared<Session>(Connection::Create(std::move(socket), std::move(tls)), std::move(ends), state_, *id)
        ->Start();
  }

  void BeginStop() {
    if (state_.stopping.exchange(true)) return;
    for (const auto& door : doors_) {
      asio::post(door->acceptor.get_executor(), [at = door.get()] {
        error_code ignored;
        at->acceptor.close(ignored);
      });
    }
    error_code ignored;
    if (signals_) signals_->cancel(ignored);
    Wind(std::chrono::steady_clock::now() + kGrace);
  }

  // Idle connections are not waited for: they would keep the context busy for their whole time limit.
  void Wind(std::chrono::steady_clock::time_point until) {
    if (state_.answer_count == 0 || std::chrono::steady_clock::now() >= until) {
      context_->stop();
      return;
    }
    grace_->expires_after(std::chrono::milliseconds(20));
    grace_->async_wait([this, until](error_code) { Wind(until); });
  }

  const int thread_count_;
  const OwnerLookup lookup_;
  ServerState state_;  // Before the context: sessions that die with it count themselves out.
  Mutex mutex_;
  // Gone, with all connections, when Run has returned. Guarded by mutex_ against that.
  std::unique_ptr<asio::io_context> context_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::unique_ptr<asio::steady_timer> grace_;
  std::unique_ptr<asio::signal_set> signals_;
  uint16_t port_ = 0;
  std::vector<uint16_t> listener_ports_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Open(const ServerOptions& options, Handler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  RETURN_IF_ERROR(impl->Listen(options));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port(); }
std::vector<uint16_t> HttpServer::listener_ports() const { return impl_->listener_ports(); }
ConnectionCounts HttpServer::connection_counts() const { return impl_->connection_counts(); }
Status HttpServer::ReloadCertificates() { return impl_->ReloadCertificates(); }
void HttpServer::Run() { impl_->Run(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace lockstep::http
