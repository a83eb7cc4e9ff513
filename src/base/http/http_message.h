#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http/event_stream.h"
#include "base/unique_fd.h"

namespace lockstep::http {

enum class Method : uint8_t { kGet, kHead, kPost, kDelete, kOther };

/// The peer of a connection, as the kernel and TLS identify it.
struct Peer {
  enum class Kind : uint8_t { kUnixSocket, kLoopback, kNetwork };
  Kind kind = Kind::kLoopback;
  std::optional<uint32_t> uid = {};  ///< Unix socket: of the peer's credentials. Loopback: the owner of the other end.
  std::string address = {};          ///< "10.0.0.7:4242", "127.0.0.1:5000", "unix".
  bool is_encrypted = false;
  std::string certificate_name = {};  ///< Common name of a verified client certificate, or empty.
};

/// What a handler sees of a request: the transport has checked method, host and sizes before.
struct Request {
  Method method = Method::kGet;
  Peer peer = {};
  std::string authorization = {};  ///< Header, or empty.
  std::string content_type = {};
  std::string accept = {};    ///< Header, or empty.
  std::string body = {};      ///< Whole, within ServerLimits::body_bytes.
  std::string path;           ///< Decoded, begins with '/', holds no "." or ".." segment, no NUL and no backslash.
  std::string query;          ///< Behind '?', as sent.
  std::string if_none_match;  ///< Header, or empty.
  bool accepts_gzip = false;  ///< Accept-Encoding names gzip.
};

/// Bytes [begin, end) of a body.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
enum class RangeKind : uint8_t {
  kWhole,          ///< No range, or one that is not read (several, another unit, malformed): send everything.
  kPart,           ///< Send `range`: 206.
  kUnsatisfiable,  ///< 416.
};
/// A Range header against a body of `body_bytes`. Source: RFC 9110, 14.1.2 and 14.2.
RangeKind ReadRange(std::string_view header, uint64_t body_bytes, ByteRange* range);

/// What a handler answers. HEAD is the transport's business: it sends the same without the body.
struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  /// Sent as it is. Shared, so that several connections may send one body. Null: no body.
  std::shared_ptr<const std::string> body = {};
  std::string file = {};  ///< Or: the path of a file to send, or the part that a Range asks for; `body` is null then.
  /// Or: an open file, sent from its beginning to its end as it is at the time of the request; ranges as with `file`.
  std::shared_ptr<UniqueFd> descriptor = {};
  std::shared_ptr<EventStream> events = {};  ///< Or: what comes, until it is closed; no Content-Length.
  bool gzip = false;                         ///< The body is a gzip member: Content-Encoding: gzip.
  std::string etag = {};                     ///< With quotes; equal to If-None-Match it makes the answer 304.
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< Besides those every answer has.
  /// Called when the body has left to its last byte: whole, or a part that ends there (never for HEAD).
  std::function<void()> on_sent = {};
};

Response TextResponse(int status, std::string text);

/// The path and query of a request's target ("/data/main?x=1"): percent-decoded, refused (false) when it is not an
/// absolute path, has a bad escape, a control character, a backslash or a segment "." or "..".
bool ReadTarget(std::string_view target, Request* request);

/// Whether a Host header names this machine's loopback: 127.0.0.1, localhost or [::1], each with or without a port.
/// Anything else may be a name that someone pointed here to read the answers from a web page (DNS rebinding).
bool IsLoopbackHost(std::string_view host);

/// Whether a Host header may be answered on a connection of `peer`: over a Unix socket any; else one of the loopback,
/// of `names` (port and case do not matter), or the IP address that the client connected to (`local_address`, IPv6
/// without brackets). "*" among the names admits any, except on the loopback, where a web page could use it.
bool IsAdmittedHost(std::string_view host, const Peer& peer, const std::vector<std::string>& names,
                    std::string_view local_address);

/// Whether the headers Origin and Sec-Fetch-Site (each empty when absent) say that a web page of another origin than
/// `host` sent the request. Other programs than browsers send neither.
bool IsFromAnotherSite(std::string_view origin, std::string_view sec_fetch_site, std::string_view host,
                       bool is_encrypted);

/// Whether an Accept-Encoding header admits gzip.
bool AcceptsGzip(std::string_view accept_encoding);

/// Whether an If-None-Match header names `etag`, or any with "*".
bool MatchesEtag(std::string_view if_none_match, std::string_view etag);

}  // namespace lockstep::http
