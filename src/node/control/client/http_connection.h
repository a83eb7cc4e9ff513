#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/control/client/node_client.h"

namespace lockstep::control {

struct HttpReply {
  int status = 0;
  std::string body;
};

/// HTTP/1.1 to one endpoint, over libcurl: no proxy, no redirect, no compression, no other protocol. The connection is
/// kept between requests, with the tunnel that carries it; a lost one is made anew with the next request.
/// Not thread-safe but for Stop(); several may be used by several threads. Never raises SIGPIPE.
class HttpConnection {
 public:
  /// `authorization`: the whole value of that header, for what is not lockstepd. Errors: NodeClient::Create's.
  static Result<std::unique_ptr<HttpConnection>> Open(const Endpoint& endpoint, const std::string& authorization = {});
  virtual ~HttpConnection() = default;

  enum class Method : uint8_t { kGet, kPost, kDelete };
  /// `path` is sent as it is; `body` goes with kPost, as JSON. The reply's body is at most 64 MiB. Errors:
  /// NodeClient's, but any status is a reply.
  virtual Result<HttpReply> Ask(Method method, const std::string& path, const std::string& body,
                                int64_t deadline_ns) = 0;
  /// Hands a 200's body to `sink` in pieces; what another status says is in the reply's body. Ended by `stall_ns`
  /// without a byte, by an error of `sink`, and as kIo when the body breaks off before its announced end.
  virtual Result<HttpReply> Fetch(const std::string& path, int64_t stall_ns,
                                  const std::function<Status(std::string_view)>& sink) = 0;
  /// Ends a request that is under way, within a second or so, and every later one: kCancelled.
  virtual void Stop() = 0;
};

}  // namespace lockstep::control
