#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/http/http_message.h"

namespace lockstep::http {

/// How a response's body is delimited, and what becomes of the connection.
struct Framing {
  std::optional<uint64_t> content_length = {};
  bool is_chunked = false;
  bool keep_alive = false;
  bool is_http_1_0 = false;  ///< Of the request.
};

/// Status line and header lines, to the empty line. The handler's headers replace those that every answer has. A header
/// with a line break or another control character in it is left out: it could begin another answer.
std::string HeaderText(const Response& response, const Framing& framing);

}  // namespace lockstep::http
