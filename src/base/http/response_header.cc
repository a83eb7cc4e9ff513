#include "base/http/response_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/letter_case.h"

namespace lockstep::http {
namespace {

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return (c >= 0x20 && c != 0x7f) || c == '\t'; });
}

class Lines {
 public:
  void Set(std::string_view name, std::string value) {
    const auto found = std::find_if(lines_.begin(), lines_.end(),
                                    [&](const auto& line) { return EqualIgnoringCase(line.first, name); });
    if (found != lines_.end()) {
      found->second = std::move(value);
    } else {
      lines_.emplace_back(name, std::move(value));
    }
  }
  void WriteTo(std::string* text) const {
    for (const auto& [name, value] : lines_) {
      if (name.empty() || !IsPlain(name) || !IsPlain(value)) continue;
      fmt::format_to(std::back_inserter(*text), "{}: {}\r\n", name, value);
    }
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace

std::string HeaderText(const Response& response, const Framing& framing) {
  Lines lines;
  lines.Set("Server", "lockstep");
  if (response.status != 304) lines.Set("Content-Type", response.content_type);
  lines.Set("X-Frame-Options", "SAMEORIGIN");
  lines.Set("X-Content-Type-Options", "nosniff");
  lines.Set("Referrer-Policy", "no-referrer");
  lines.Set("Cache-Control", "no-cache");
  if (response.gzip) lines.Set("Content-Encoding", "gzip");
  if (!response.etag.empty()) lines.Set("ETag", response.etag);
  for (const auto& [name, value] : response.headers) lines.Set(name, value);
  if (framing.content_length) lines.Set("Content-Length", std::to_string(*framing.content_length));
  if (framing.is_chunked) lines.Set("Transfer-Encoding", "chunked");
  if (!framing.keep_alive) {
    lines.Set("Connection", "close");
  } else if (framing.is_http_1_0) {
    lines.Set("Connection", "keep-alive");
  }
  namespace beast_http = boost::beast::http;
  const auto reason = beast_http::obsolete_reason(beast_http::int_to_status(static_cast<unsigned>(response.status)));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, std::string_view(reason.data(), reason.size()));
  lines.WriteTo(&text);
  text += "\r\n";
  return text;
}

}  // namespace lockstep::http
