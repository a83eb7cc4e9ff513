#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/http/http_message.h"
#include "base/http/server_limits.h"
#include "base/result.h"

namespace lockstep::http {

/// Answers one request. Called from several threads at once.
using Handler = std::function<Response(const Request& request)>;

/// PEM files. Read again by HttpServer::ReloadCertificates.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string client_authority = {};  ///< A client's certificate is verified against these; empty: none is asked for.
  bool requires_client_certificate = false;
};

/// Where to listen, besides `ServerOptions::port`.
struct Listener {
  std::string unix_path = {};  ///< A Unix stream socket, mode 0666: peers are known by their credentials. Or:
  std::string address = {};    ///< An IP address,
  uint16_t port = 0;           ///< and a port; 0 = any free one.
  std::optional<TlsFiles> tls = {};
};

struct ServerOptions {
  std::optional<uint16_t> port = 0;  ///< On 127.0.0.1; 0 = any free one; unset: only `listeners`.
  std::vector<Listener> listeners = {};
  std::vector<std::string> host_names = {};  ///< Names, besides the loopback's, that a Host header may say; "*": any,
                                             ///< but not on the loopback, where a web page could use it.
  bool takes_bodies = false;  ///< POST and DELETE are handed on, and bodies read; else GET and HEAD only.
  int thread_count = 2;
  bool until_signal = false;  ///< SIGINT, SIGTERM and SIGHUP (not under nohup) stop it, from Open on.
  ServerLimits limits = {};
  /// How an answer of the transport itself looks (400, 403, 405, 413, 431, 500, 503); unset: the sentence as text.
  std::function<Response(int status, std::string sentence)> refuse = {};
};

/// HTTP/1.1 on the loopback address, unless told of other listeners: GET and HEAD without a body (else 405 or 413; POST
/// and DELETE with one where the options say so, then from no web page: Origin or Sec-Fetch-Site of another site: 403),
/// Host of the loopback or a name of the options (else 403; two of them: 400), a target that is a plain path (else
/// 400), then the handler. Every answer carries nosniff, no-referrer and a policy that lets no other page frame it.
class HttpServer {
 public:
  /// Listens. Errors: kIo when the port is taken (the message says what to do), kPermissionDenied for one below 1024.
  static Result<std::unique_ptr<HttpServer>> Open(const ServerOptions& options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  /// The ports of `ServerOptions::listeners`, in their order; 0 for a Unix socket.
  std::vector<uint16_t> listener_ports() const;
  /// Reads every listener's TLS files again; open connections keep theirs. On an error none is replaced.
  Status ReloadCertificates();
  ConnectionCounts connection_counts() const;
  /// Serves until Stop, or a signal where the options say so. Returns with all connections closed.
  void Run();
  /// From any thread, a handler's too; answers under way are finished first, for two seconds at most.
  void Stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::http
