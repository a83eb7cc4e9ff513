#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::serve {

/// What a handler sees of a request: the transport has checked method, host and sizes before.
struct Request {
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
  bool gzip = false;      ///< The body is a gzip member: Content-Encoding: gzip.
  std::string etag = {};  ///< With quotes; equal to If-None-Match it makes the answer 304.
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< Besides those every answer has.
  /// Called when the body has left to its last byte: whole, or a part that ends there (never for HEAD).
  std::function<void()> on_sent = {};
};

Response TextResponse(int status, std::string text);

/// The path and query of a request's target ("/data/main?x=1"): percent-decoded, refused (false) when it is no absolute
/// path, has a bad escape, a control character, a backslash or a segment "." or "..".
bool ReadTarget(std::string_view target, Request* request);

/// Whether a Host header names this machine's loopback: 127.0.0.1, localhost or [::1], each with or without a port.
/// Anything else may be a name that someone pointed here to read the answers from a web page (DNS rebinding).
bool IsLoopbackHost(std::string_view host);

/// Whether an Accept-Encoding header admits gzip.
bool AcceptsGzip(std::string_view accept_encoding);

/// Whether an If-None-Match header names `etag`, or any with "*".
bool MatchesEtag(std::string_view if_none_match, std::string_view etag);

}  // namespace lockstep::serve
