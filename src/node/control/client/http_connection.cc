#include "node/control/client/http_connection.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>

#include "base/nanoseconds.h"
#include "base/unique_fd.h"
#include "node/control/client/credentials.h"
#include "node/control/client/place.h"
#include "node/control/client/sigpipe_guard.h"
#include "node/control/client/tunnel_door.h"
#include "node/control/client/tunnel_process.h"

namespace lockstep::control {
namespace {

constexpr size_t kBodyBytes = size_t{64} << 20;
constexpr size_t kHeaderBytes = size_t{256} << 10;
constexpr size_t kErrorBodyBytes = size_t{64} << 10;
// How long a tunnel whose connection broke has for its last words.
constexpr int64_t kLastWordsNs = 2'000'000'000;
constexpr const char* kRemedy =
    "start it there with 'systemctl start lockstepd', or the job with 'lockstep run --with-daemon'";

struct CurlDelete {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};

int64_t SinceNs(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - from).count();
}

/// Whole milliseconds, at least 1: 0 would mean none to libcurl.
long Milliseconds(int64_t ns) {
  const int64_t ms = ns / kMillisecondNs + (ns % kMillisecondNs > 0 ? 1 : 0);
  return static_cast<long>(std::clamp<int64_t>(ms, 1, std::numeric_limits<int32_t>::max()));
}

std::string SecondsText(int64_t ns) {
  const double seconds = static_cast<double>(ns) / 1e9;
  return seconds < 10 ? fmt::format("{:.2g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

class CurlConnection : public HttpConnection {
 public:
  explicit CurlConnection(const Endpoint& endpoint) : endpoint_(endpoint), place_(PlaceOf(endpoint)) {}

  Status Init(const std::string& authorization) {
    const int ways = (endpoint_.unix_path.empty() ? 0 : 1) + (endpoint_.address.empty() ? 0 : 1) +
                     (endpoint_.tunnel.empty() ? 0 : 1);
    if (ways != 1) {
      return Error{ErrorCode::kInvalidArgument, "give one way to reach a node: a socket, an address or a tunnel"};
    }
    if (endpoint_.tls && endpoint_.address.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   "TLS is for daemons that are reached by address; a socket or a tunnel "
                   "leads to a daemon's Unix socket, which knows its callers"};
    }
    if (endpoint_.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the socket's path {} is longer than the system allows", endpoint_.unix_path)};
    }
    if (!endpoint_.token_file.empty() && !endpoint_.address.empty() && !endpoint_.tls &&
        !IsLoopback(endpoint_.address)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the token would be sent to {} unencrypted; add --tls", place_)};
    }
    // Thread-safe as of 7.84, and once is enough; never undone, since other threads may be at work.
    static const CURLcode initialised = ::curl_global_init(CURL_GLOBAL_ALL);
    curl_.reset(initialised == CURLE_OK ? ::curl_easy_init() : nullptr);
    if (curl_ == nullptr) return Error{ErrorCode::kIo, "libcurl cannot be set up"};
    if (!endpoint_.token_file.empty()) {
      ASSIGN_OR_RETURN(const std::string token, ReadToken(endpoint_.token_file));
      AddHeader("Authorization: Bearer " + token);
    }
    if (!authorization.empty()) AddHeader("Authorization: " + authorization);
    AddHeader("Expect:");  // One round trip less; bodies are small.
    AddHeader("Content-Type: application/json");
    if (!endpoint_.unix_path.empty()) {
      origin_ = "http://127.0.0.1";
    } else if (!endpoint_.tunnel.empty()) {
      ASSIGN_OR_RETURN(door_, TunnelDoor::Open());
      origin_ = fmt::format("http://127.0.0.1:{}", door_->port());
    } else {
      ASSIGN_OR_RETURN(const std::string host, UrlHost(endpoint_.address));
      origin_ = fmt::format("{}://{}:{}", endpoint_.tls ? "https" : "http", host, endpoint_.port);
    }
    SetFixedOptions();
    return {};
  }

  Result<HttpReply> Ask(Method method, const std::string& path, const std::string& body, int64_t deadline_ns) override {
    if (deadline_ns <= 0 || is_stopped_) return TooLate(0);
    Begin(path);
    deadline_ns_ = deadline_ns;
    Set(CURLOPT_TIMEOUT_MS, Milliseconds(deadline_ns));
    Set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(std::min(deadline_ns, endpoint_.connect_timeout_ns)));
    if (method == Method::kPost) {
      Set(CURLOPT_POST, 1L);
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
      Set(CURLOPT_POSTFIELDS, body.c_str());
      // On a kept connection that turns out to be closed libcurl repeats the request, and cannot know whether the first
      // one took effect. A tunnel is kept anyway, because starting one may take seconds.
      if (endpoint_.tunnel.empty()) Set(CURLOPT_FRESH_CONNECT, 1L);
    } else if (method == Method::kDelete) {
      Set(CURLOPT_CUSTOMREQUEST, "DELETE");
    }
    return Perform();
  }

  Result<HttpReply> Fetch(const std::string& path, int64_t stall_ns,
                          const std::function<Status(std::string_view)>& sink) override {
    if (stall_ns <= 0 || is_stopped_) return TooLate(0);
    Begin(path);
    stall_ns_ = stall_ns;
    sink_ = &sink;
    Set(CURLOPT_TIMEOUT_MS, 0L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(std::min(stall_ns, endpoint_.connect_timeout_ns)));
    return Perform();
  }

  void Stop() override { is_stopped_ = true; }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    ::curl_easy_setopt(curl_.get(), option, value);
  }
  void AddHeader(const std::string& line) { headers_.reset(::curl_slist_append(headers_.release(), line.c_str())); }

  void SetFixedOptions() {
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_PROTOCOLS_STR, endpoint_.tls ? "https" : "http");
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_PROXY, "");  // Not even the environment's: nodes are near.
    Set(CURLOPT_NOPROXY, "*");
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_MAXCONNECTS, 1L);
    Set(CURLOPT_USERAGENT, "lockstep");
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_ERRORBUFFER, words_.data());
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    Set(CURLOPT_XFERINFODATA, this);
    Set(CURLOPT_WRITEFUNCTION, &OnBody);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_HEADERFUNCTION, &OnHeader);
    Set(CURLOPT_HEADERDATA, this);
    if (!endpoint_.unix_path.empty()) Set(CURLOPT_UNIX_SOCKET_PATH, endpoint_.unix_path.c_str());
    if (door_) {
      Set(CURLOPT_OPENSOCKETFUNCTION, &OnOpenSocket);
      Set(CURLOPT_OPENSOCKETDATA, this);
    }
    if (endpoint_.tls) {
      Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
      if (!endpoint_.authority_file.empty()) {
        Set(CURLOPT_CAINFO, endpoint_.authority_file.c_str());
        Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // These and no others.
      }
      if (!endpoint_.certificate_file.empty()) Set(CURLOPT_SSLCERT, endpoint_.certificate_file.c_str());
      if (!endpoint_.key_file.empty()) Set(CURLOPT_SSLKEY, endpoint_.key_file.c_str());
    }
  }

  void Begin(const std::string& path) {
    Set(CURLOPT_URL, (origin_ + path).c_str());
    Set(CURLOPT_CUSTOMREQUEST, static_cast<const char*>(nullptr));
    Set(CURLOPT_FRESH_CONNECT, 0L);
    Set(CURLOPT_HTTPGET, 1L);
    if (door_) door_->Knock();  // Left over from a request that ended early.
    body_.clear();
    sink_ = nullptr;
    failure_.reset();
    header_bytes_ = 0;
    deadline_ns_ = 0;
    stall_ns_ = 0;
    last_byte_ = std::chrono::steady_clock::now();
    last_bytes_ = 0;
    words_.front() = '\0';
  }

  Result<HttpReply> Perform() {
    const SigpipeGuard guard;
    const CURLcode code = ::curl_easy_perform(curl_.get());
    if (tunnel_ != nullptr) tunnel_->DrainErrors();
    if (failure_) return std::move(*failure_);
    if (code != CURLE_OK) return Explain(code);
    return HttpReply{StatusCode(), std::move(body_)};
  }

  int StatusCode() const {
    long status = 0;
    ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  Error TooLate(int64_t limit_ns) const {
    if (limit_ns <= 0)
      return {ErrorCode::kCancelled, fmt::format("the time limit was reached before {} was asked", place_)};
    return {ErrorCode::kCancelled, fmt::format("{} did not answer within {}", place_, SecondsText(limit_ns))};
  }

  Error Explain(CURLcode code) {
    const std::string words = words_.front() != '\0' ? words_.data() : ::curl_easy_strerror(code);
    long system_error = 0;
    ::curl_easy_getinfo(curl_.get(), CURLINFO_OS_ERRNO, &system_error);
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT: return TimedOut();
      case CURLE_COULDNT_RESOLVE_HOST:
        return {ErrorCode::kNotFound, fmt::format("the host name '{}' is not known ({})", endpoint_.address, words)};
      case CURLE_COULDNT_CONNECT:
        if (system_error == EACCES || system_error == EPERM) {
          return {ErrorCode::kPermissionDenied, fmt::format("{} may not be opened by you: {}", place_,
                                                            std::strerror(static_cast<int>(system_error)))};
        }
        return {
            ErrorCode::kNotFound,
            fmt::format("no lockstepd answers at {}{}; {}", place_,
                        system_error == 0 ? "" : fmt::format(" ({})", std::strerror(static_cast<int>(system_error))),
                        kRemedy)};
      case CURLE_SSL_CACERT_BADFILE:
        return {ErrorCode::kNotFound, fmt::format("the CA file {} cannot be used: {}", AuthorityName(), words)};
      case CURLE_SSL_CERTPROBLEM:
        return {ErrorCode::kFailedPrecondition,
                fmt::format("the certificate {} or its key {} cannot be used: {}", endpoint_.certificate_file,
                            endpoint_.key_file.empty() ? endpoint_.certificate_file : endpoint_.key_file, words)};
      case CURLE_PEER_FAILED_VERIFICATION:
        return {ErrorCode::kPermissionDenied, fmt::format("the certificate of {} is not verified by the CAs of {}: {}",
                                                          place_, AuthorityName(), words)};
      case CURLE_SSL_CONNECT_ERROR:
        return {ErrorCode::kPermissionDenied,
                fmt::format("{} and this machine cannot agree on TLS: {}; does it use TLS, and does it require a "
                            "client certificate (--cert, --key)?",
                            place_, words)};
      default: break;
    }
    if (!endpoint_.tunnel.empty()) return TunnelBroke(words);
    if (code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL) {
      return {ErrorCode::kCorruptData, fmt::format("the answer from {} is not lockstepd's: {}", place_, words)};
    }
    if (endpoint_.tls && code == CURLE_RECV_ERROR) {
      // TLS 1.3: the daemon's refusal of our certificate comes when the handshake is over for us.
      return {ErrorCode::kPermissionDenied,
              fmt::format("{} closed the connection: {}; does it require a client certificate (--cert, --key)?", place_,
                          words)};
    }
    return {ErrorCode::kIo, fmt::format("the connection to {} broke: {}", place_, words)};
  }

  Error TimedOut() {
    double connected_s = 0;
    ::curl_easy_getinfo(curl_.get(), CURLINFO_PRETRANSFER_TIME, &connected_s);
    if (endpoint_.tunnel.empty() && connected_s <= 0) {
      const int64_t limit_ns = deadline_ns_ > 0 ? deadline_ns_ : stall_ns_;
      return {ErrorCode::kCancelled,
              fmt::format("no connection to {} within {}; is the node up, and does a firewall block it?", place_,
                          SecondsText(std::min(limit_ns, endpoint_.connect_timeout_ns)))};
    }
    Error error = TooLate(deadline_ns_);
    if (tunnel_ != nullptr) error.message += "; " + tunnel_->Describe(0);
    return error;
  }

  Error TunnelBroke(const std::string& words) {
    if (tunnel_ == nullptr) return {ErrorCode::kIo, fmt::format("the connection to {} broke: {}", place_, words)};
    const std::string why = tunnel_->Describe(kLastWordsNs);
    const bool nobody = tunnel_->errors().find("no lockstepd answers") != std::string::npos;
    // It lives: what came through is not HTTP.
    const std::string hint = fmt::format("{}; {}", words, why);
    return {nobody ? ErrorCode::kNotFound : ErrorCode::kIo,
            fmt::format("{} cannot be reached: {}", endpoint_.host.empty() ? "the node" : endpoint_.host,
                        tunnel_->ended() ? why : hint)};
  }

  std::string AuthorityName() const {
    return endpoint_.authority_file.empty() ? "this system (--ca names others)" : endpoint_.authority_file;
  }

  // What the callbacks end the transfer with.
  void Fail(Error error) {
    if (!failure_) failure_ = std::move(error);
  }

  static size_t OnHeader(char* /*bytes*/, size_t size, size_t count, void* self) {
    auto* connection = static_cast<CurlConnection*>(self);
    connection->header_bytes_ += size * count;
    if (connection->header_bytes_ <= kHeaderBytes) return size * count;
    connection->Fail(
        {ErrorCode::kLimitExceeded, fmt::format("{} answered with more than 256 KiB of headers", connection->place_)});
    return 0;
  }

  static size_t OnBody(char* bytes, size_t size, size_t count, void* self) {
    return static_cast<CurlConnection*>(self)->TakeBody({bytes, size * count}) ? size * count : 0;
  }

  bool TakeBody(std::string_view bytes) {
    if (sink_ != nullptr && StatusCode() == 200) {
      curl_off_t announced = -1;
      ::curl_easy_getinfo(curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
      if (announced < 0) {
        Fail({ErrorCode::kCorruptData, fmt::format("{} does not give the file's length", place_)});
        return false;
      }
      Status status = (*sink_)(bytes);
      if (!status) Fail(std::move(status).error());
      return static_cast<bool>(status);
    }
    const size_t limit = sink_ != nullptr ? kErrorBodyBytes : kBodyBytes;
    if (bytes.size() > limit - std::min(limit, body_.size())) {
      Fail({ErrorCode::kLimitExceeded, fmt::format("{} answered with more than {} KiB", place_, limit >> 10U)});
      return false;
    }
    body_.append(bytes);
    return true;
  }

  // libcurl calls this about once a second, and more often while bytes come.
  static int OnProgress(void* self, curl_off_t /*total*/, curl_off_t now, curl_off_t /*up*/, curl_off_t /*sent*/) {
    auto* connection = static_cast<CurlConnection*>(self);
    if (connection->is_stopped_) {
      connection->Fail({ErrorCode::kCancelled, fmt::format("the request to {} was stopped", connection->place_)});
      return 1;
    }
    if (connection->door_ && !connection->ServeTunnel()) return 1;
    if (now != connection->last_bytes_) {
      connection->last_bytes_ = now;
      connection->last_byte_ = std::chrono::steady_clock::now();
    }
    if (connection->stall_ns_ > 0 && SinceNs(connection->last_byte_) > connection->stall_ns_) {
      connection->Fail({ErrorCode::kCancelled,
                        fmt::format("{} sent nothing for {}", connection->place_, SecondsText(connection->stall_ns_))});
      return 1;
    }
    return 0;
  }

  static curl_socket_t OnOpenSocket(void* self, curlsocktype /*purpose*/, curl_sockaddr* /*address*/) {
    const int fd = static_cast<CurlConnection*>(self)->door_->NewSocket();
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
  }

  bool ServeTunnel() {
    const UniqueFd socket = door_->Knock();
    if (socket.valid()) {
      tunnel_.reset();  // Whatever there was, libcurl does not use it any more.
      Result<std::unique_ptr<TunnelProcess>> tunnel = TunnelProcess::Spawn(endpoint_.tunnel, socket.get());
      if (!tunnel) {
        Fail(std::move(tunnel).error());
        return false;
      }
      tunnel_ = std::move(*tunnel);
    }
    if (tunnel_ != nullptr) tunnel_->DrainErrors();
    return true;
  }

  const Endpoint endpoint_;
  const std::string place_;
  std::string origin_;
  std::optional<TunnelDoor> door_;
  std::unique_ptr<TunnelProcess> tunnel_;  // Goes after the handle, which closes the socket: most tunnels end by that.
  std::unique_ptr<curl_slist, CurlDelete> headers_;
  std::array<char, CURL_ERROR_SIZE> words_ = {};
  std::unique_ptr<CURL, CurlDelete> curl_;

  std::atomic<bool> is_stopped_ = false;

  // Of the request under way.
  std::string body_;
  const std::function<Status(std::string_view)>* sink_ = nullptr;
  std::optional<Error> failure_;
  size_t header_bytes_ = 0;
  int64_t deadline_ns_ = 0;
  int64_t stall_ns_ = 0;
  std::chrono::steady_clock::time_point last_byte_;
  curl_off_t last_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<HttpConnection>> HttpConnection::Open(const Endpoint& endpoint,
                                                             const std::string& authorization) {
  auto connection = std::make_unique<CurlConnection>(endpoint);
  RETURN_IF_ERROR(connection->Init(authorization));
  return std::unique_ptr<HttpConnection>(std::move(connection));
}

}  // namespace lockstep::control
