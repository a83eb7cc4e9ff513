#include "http/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = beast::http;
using asio::ip::tcp;

constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
constexpr auto kGrace = std::chrono::seconds(2);  // after Stop, for answers under way

/// A body that borrows its bytes from a shared string.
struct SharedBody {
  using value_type = std::shared_ptr<const std::string>;
  static uint64_t size(const value_type& body) { return body ? body->size() : 0; }
  class writer {  // the name Beast asks for
   public:
    using const_buffers_type = asio::const_buffer;
    template <bool is_request, typename Fields>
    writer(const beast_http::header<is_request, Fields>& /*header*/, const value_type& body) : body_(body) {}
    void init(beast::error_code& error) { error = {}; }
    boost::optional<std::pair<const_buffers_type, bool>> get(beast::error_code& error) {
      error = {};
      if (!body_) return boost::none;
      return {{const_buffers_type(body_->data(), body_->size()), false}};
    }

   private:
    const value_type& body_;
  };
};

struct Shared {
  Handler handler;
  ServerLimits limits;
  std::mutex mutex;
  size_t connection_count = 0;                     // guarded by mutex
  std::unordered_map<uint32_t, size_t> by_source;  // guarded by mutex; addresses with connections
  std::atomic<size_t> answer_count = 0;            // Answers under way.
  std::atomic<bool> stopping = false;

  // Counts a connection of `source` in, if the limits allow it.
  bool Enter(uint32_t source) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = by_source.find(source);
    if (connection_count >= limits.connection_count) return false;
    if (found != by_source.end() && found->second >= limits.connection_count_per_source) return false;
    ++connection_count;
    ++by_source[source];
    return true;
  }
  void Leave(uint32_t source) {
    const std::lock_guard<std::mutex> lock(mutex);
    --connection_count;
    const auto found = by_source.find(source);
    if (--found->second == 0) by_source.erase(found);
  }
};

/// One connection; all its steps run on one strand.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `source` was counted in.
  Session(tcp::socket&& socket, Shared& shared, uint32_t source)
      : stream_(std::move(socket)), shared_(shared), source_(source) {}
  ~Session() {
    if (is_answering_) --shared_.answer_count;
    shared_.Leave(source_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->ReadHeader(); });
  }

 private:
  // The time for a header runs from its first byte on; until that comes the connection is idle.
  void WaitForRequest() {
    if (buffer_.size() > 0) return ReadHeader();
    stream_.expires_after(std::chrono::seconds(shared_.limits.idle_seconds));
    stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](beast::error_code error, size_t count) {
      if (error) return self->Close();
      self->buffer_.commit(count);
      self->ReadHeader();
    });
  }

  void ReadHeader() {
    parser_.emplace();
    parser_->header_limit(shared_.limits.header_bytes);
    parser_->body_limit(boost::none);  // Bodies are refused before they are read.
    stream_.expires_after(std::chrono::seconds(shared_.limits.header_seconds));
    beast_http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code error, size_t /*count*/) {
                              if (error) {
                                self->Refuse(error);
                              } else {
                                self->Answer();
                              }
                            });
  }

  void Refuse(beast::error_code error) {
    if (error == beast_http::error::header_limit || error == beast_http::error::buffer_overflow) {
      SendLast(TextResponse(431, "The request's header is too large.\n"));
    } else if (error.category() == make_error_code(beast_http::error::bad_method).category() &&
               error != beast_http::error::end_of_stream && error != beast_http::error::partial_message) {
      SendLast(TextResponse(400, "This is no HTTP request.\n"));
    } else {
      Close();  // Gone, or too slow.
    }
  }

  void SendLast(Response response) {
    keep_alive_ = false;
    is_refused_ = true;
    is_head_ = false;
    Send(std::move(response));
  }

  void Answer() {
    const auto& message = parser_->get();
    is_head_ = message.method() == beast_http::verb::head;
    keep_alive_ = message.keep_alive() && !shared_.stopping;
    if (message.method() != beast_http::verb::get && !is_head_) {
      Response response = TextResponse(405, "Only GET and HEAD are answered.\n");
      response.headers.emplace_back("Allow", "GET, HEAD");
      return SendLast(std::move(response));
    }
    if (parser_->chunked() || parser_->content_length().value_or(0) > 0) {
      return SendLast(TextResponse(413, "A request has no body here.\n"));
    }
    if (message.count(beast_http::field::host) > 1) return SendLast(TextResponse(400, "Two Host headers.\n"));
    if (!IsLoopbackHost(Text(message[beast_http::field::host]))) {
      return SendLast(TextResponse(403, "This is answered under the names 127.0.0.1 and localhost only.\n"));
    }
    Request request;
    if (!ReadTarget(Text(message.target()), &request)) return SendLast(TextResponse(400, "The path is not valid.\n"));
    request.if_none_match = Text(message[beast_http::field::if_none_match]);
    range_ = Text(message[beast_http::field::range]);
    // Files have no version that a client could name: a range of another one is not sent.
    if (message.count(beast_http::field::if_range) > 0) range_.clear();
    request.accepts_gzip = AcceptsGzip(Text(message[beast_http::field::accept_encoding]));
    Response response;
    try {
      response = shared_.handler(request);
    } catch (const std::exception& error) {
      response = TextResponse(500, fmt::format("lockstep failed: {}\n", error.what()));
    }
    if (response.status == 200 && MatchesEtag(request.if_none_match, response.etag)) {
      response.status = 304;
      response.body = nullptr;
      response.file.clear();
    }
    Send(std::move(response));
  }

  static std::string Text(beast::string_view view) { return {view.data(), view.size()}; }

  template <typename Message>
  void SetHeader(const Response& response, Message& message) {
    message.set(beast_http::field::server, "lockstep");
    if (response.status != 304) message.set(beast_http::field::content_type, response.content_type);
    message.set(beast_http::field::x_frame_options, "DENY");
    message.set("X-Content-Type-Options", "nosniff");
    message.set("Referrer-Policy", "no-referrer");
    message.set(beast_http::field::cache_control, "no-cache");
    if (response.gzip) message.set(beast_http::field::content_encoding, "gzip");
    if (!response.etag.empty()) message.set(beast_http::field::etag, response.etag);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive_);
  }

  void Send(Response response) {
    on_sent_ = is_head_ ? nullptr : std::move(response.on_sent);
    if (!std::exchange(is_answering_, true)) ++shared_.answer_count;
    if (!response.file.empty()) return SendFile(response);
    auto message = std::make_shared<beast_http::response<SharedBody>>();
    message->version(11);
    message->result(static_cast<unsigned>(response.status));
    SetHeader(response, *message);
    message->body() = response.body;
    if (response.status != 304) message->content_length(SharedBody::size(message->body()));
    if (is_head_) message->body() = nullptr;
    Write(message);
  }

  void SendFile(const Response& response) {
    beast_http::file_body::value_type file;
    beast::error_code error;
    file.open(response.file.c_str(), beast::file_mode::scan, error);
    if (error) {
      on_sent_ = {};
      return Send(TextResponse(404, fmt::format("The file cannot be read: {}\n", error.message())));
    }
    const uint64_t size = file.size();
    ByteRange range = {0, size};
    const RangeKind kind = is_head_ || range_.empty() ? RangeKind::kWhole : ReadRange(range_, size, &range);
    if (kind == RangeKind::kUnsatisfiable) {
      on_sent_ = {};
      Response refusal = TextResponse(416, fmt::format("The file has {} bytes.\n", size));
      refusal.headers = response.headers;
      refusal.headers.emplace_back("Content-Range", fmt::format("bytes */{}", size));
      return Send(std::move(refusal));
    }
    if (kind == RangeKind::kPart) return SendPart(response, std::move(file), range);
    if (is_head_) {
      auto message = std::make_shared<beast_http::response<beast_http::empty_body>>();
      message->version(11);
      message->result(static_cast<unsigned>(response.status));
      SetHeader(response, *message);
      message->content_length(size);
      return Write(message);
    }
    auto message = std::make_shared<beast_http::response<beast_http::file_body>>();
    message->version(11);
    message->result(static_cast<unsigned>(response.status));
    SetHeader(response, *message);
    message->set(beast_http::field::accept_ranges, "bytes");
    message->body() = std::move(file);
    message->content_length(size);
    Write(message);
  }

  // A part of a file goes out piece by piece behind its header.
  void SendPart(const Response& response, beast_http::file_body::value_type file, ByteRange range) {
    auto message = std::make_shared<beast_http::response<beast_http::empty_body>>();
    message->version(11);
    message->result(beast_http::status::partial_content);
    SetHeader(response, *message);
    message->set(beast_http::field::accept_ranges, "bytes");
    message->set(beast_http::field::content_range, fmt::format("bytes {}-{}/{}", range.begin, range.end - 1, file.size()));
    message->content_length(range.end - range.begin);
    if (range.end != file.size()) on_sent_ = {};
    auto open = std::make_shared<beast_http::file_body::value_type>(std::move(file));
    beast::error_code error;
    open->file().seek(range.begin, error);
    if (error) return Sent(error);
    auto serializer = std::make_shared<beast_http::response_serializer<beast_http::empty_body>>(*message);
    stream_.expires_after(std::chrono::seconds(shared_.limits.write_seconds));
    beast_http::async_write_header(stream_, *serializer,
                             [self = shared_from_this(), message, serializer, open, left = range.end - range.begin](
                                 beast::error_code failure, size_t /*count*/) {
                               if (failure) return self->Sent(failure);
                               self->SendPiece(open, left);
                             });
  }
  void SendPiece(std::shared_ptr<beast_http::file_body::value_type> open, uint64_t left) {
    if (left == 0) return Sent({});
    piece_.resize(static_cast<size_t>(std::min<uint64_t>(left, kPieceBytes)));
    beast::error_code error;
    const size_t count = open->file().read(piece_.data(), piece_.size(), error);
    if (!error && count == 0) error = beast_http::error::partial_message;  // shorter than it was
    if (error) return Sent(error);
    stream_.expires_after(std::chrono::seconds(shared_.limits.write_seconds));
    asio::async_write(stream_, asio::buffer(piece_.data(), count),
                      [self = shared_from_this(), open, left, count](beast::error_code failure, size_t /*sent*/) {
                        if (failure) return self->Sent(failure);
                        self->SendPiece(open, left - count);
                      });
  }

  // A HEAD answer's length is that of the body which it does not have, so only the header is written.
  template <typename Body>
  void Write(std::shared_ptr<beast_http::response<Body>> message) {
    auto serializer = std::make_shared<beast_http::response_serializer<Body>>(*message);
    auto done = [self = shared_from_this(), message, serializer](beast::error_code error, size_t /*count*/) {
      self->Sent(error);
    };
    stream_.expires_after(std::chrono::seconds(shared_.limits.write_seconds));
    if (is_head_ || message->result_int() == 304) {
      beast_http::async_write_header(stream_, *serializer, std::move(done));
    } else {
      WritePiece(message, serializer);
    }
  }

  // Piece by piece, so that the time limit is on progress and not on the whole answer.
  template <typename Body>
  void WritePiece(std::shared_ptr<beast_http::response<Body>> message,
                  std::shared_ptr<beast_http::response_serializer<Body>> serializer) {
    stream_.expires_after(std::chrono::seconds(shared_.limits.write_seconds));
    beast_http::async_write_some(stream_, *serializer,
                           [self = shared_from_this(), message, serializer](beast::error_code error, size_t /*count*/) {
                             if (error || serializer->is_done()) return self->Sent(error);
                             self->WritePiece(message, serializer);
                           });
  }

  void Sent(beast::error_code error) {
    if (std::exchange(is_answering_, false)) --shared_.answer_count;
    if (error && error != beast_http::error::end_of_stream) return Close();
    if (on_sent_) std::exchange(on_sent_, {})();
    if (is_refused_ && !shared_.stopping) return DrainAndClose();
    if (!keep_alive_ || shared_.stopping) return Close();
    WaitForRequest();
  }

  // Closing with bytes unread resets the connection, and the answer may be lost on the way: some of them are read
  // first.
  void DrainAndClose() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kGrace);
    Drain(0);
  }
  void Drain(size_t drained_bytes) {
    buffer_.clear();
    stream_.async_read_some(
        buffer_.prepare(4096), [self = shared_from_this(), drained_bytes](beast::error_code error, size_t count) {
          if (error || self->shared_.stopping || drained_bytes + count >= self->shared_.limits.drained_bytes)
            return self->Close();
          self->Drain(drained_bytes + count);
        });
  }

  void Close() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.close();
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  const uint32_t source_;
  beast::flat_buffer buffer_{64 * 1024};  // Its limit: what one request may hold in memory.
  std::optional<beast_http::request_parser<beast_http::empty_body>> parser_;
  std::function<void()> on_sent_;
  std::vector<char> piece_;  ///< Of a part of a file.
  std::string range_;        ///< The request's Range header.
  bool is_refused_ = false;
  bool is_head_ = false;
  bool keep_alive_ = false;
  bool is_answering_ = false;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const ServerOptions& options, Handler handler)
      : thread_count_(options.thread_count), context_(options.thread_count), acceptor_(context_), grace_(context_) {
    shared_.handler = std::move(handler);
    shared_.limits = options.limits;
    if (!options.until_signal) return;
    signals_.emplace(context_, SIGINT, SIGTERM);
    signals_->async_wait([this](beast::error_code error, int /*signal*/) {
      if (!error) BeginStop();
    });
  }

  Status Listen(uint16_t port) {
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    beast::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return {};
    if (error == asio::error::address_in_use) {
      return Error{.code = ErrorCode::kIo,
                   .message = fmt::format("port {} on 127.0.0.1 is in use; stop what listens there (ss -ltnp 'sport = "
                                          ":{}' names it), or choose another",
                                          port, port)};
    }
    return Error{.code = error == asio::error::access_denied ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
                 .message = fmt::format("port {} on 127.0.0.1 cannot be listened on: {}", port, error.message())};
  }

  uint16_t port() const {
    beast::error_code error;
    const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
    return error ? uint16_t{0} : endpoint.port();
  }

  void Run() {
    Accept();
    std::vector<std::jthread> threads;
    for (int i = 1; i < thread_count_; ++i) threads.emplace_back([this] { context_.run(); });
    context_.run();
  }

  void Stop() {
    asio::post(context_, [this] { BeginStop(); });
  }

 private:
  void Accept() {
    acceptor_.async_accept(asio::make_strand(context_), [this](beast::error_code error, tcp::socket socket) {
      if (shared_.stopping || error == asio::error::operation_aborted) return;
      beast::error_code gone;
      const tcp::endpoint peer = error ? tcp::endpoint() : socket.remote_endpoint(gone);
      const uint32_t source = peer.address().is_v4() ? peer.address().to_v4().to_uint() : 0;
      if (!error && !gone && shared_.Enter(source)) {
        std::make_shared<Session>(std::move(socket), shared_, source)->Start();
      }
      if (error == asio::error::no_descriptors) {
        // Out of descriptors: give those that are in use time to be closed.
        retry_.expires_after(std::chrono::milliseconds(100));
        retry_.async_wait([this](beast::error_code) { Accept(); });
        return;
      }
      Accept();
    });
  }

  void BeginStop() {
    if (shared_.stopping.exchange(true)) return;
    beast::error_code ignored;
    acceptor_.close(ignored);
    if (signals_) signals_->cancel(ignored);
    Wind(std::chrono::steady_clock::now() + kGrace);
  }

  // Idle connections are not waited for: they would keep the context busy for their whole time limit.
  void Wind(std::chrono::steady_clock::time_point until) {
    if (shared_.answer_count == 0 || std::chrono::steady_clock::now() >= until) {
      context_.stop();
      return;
    }
    grace_.expires_after(std::chrono::milliseconds(20));
    grace_.async_wait([this, until](beast::error_code) { Wind(until); });
  }

  const int thread_count_;
  Shared shared_;  // Before the context: sessions that die with it count themselves out.
  asio::io_context context_;
  tcp::acceptor acceptor_;
  asio::steady_timer grace_;
  asio::steady_timer retry_{context_};
  std::optional<asio::signal_set> signals_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Open(const ServerOptions& options, Handler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  RETURN_IF_ERROR(impl->Listen(options.port.value_or(0)));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port(); }
void HttpServer::Run() { impl_->Run(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace lockstep::http
