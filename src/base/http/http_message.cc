#include "base/http/http_message.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/ascii.h"
#include "base/letter_case.h"
#include "base/trim.h"

namespace lockstep::http {
namespace {

bool Decode(std::string_view text, std::string* decoded) {
  decoded->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return false;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return false;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
    decoded->push_back(c);
  }
  return true;
}

bool HasDotSegment(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    if (segment == "." || segment == "..") return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
  return false;
}

/// Calls `visit` with each element of a comma-separated list until it returns true.
template <typename Visit>
bool AnyElement(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (visit(Trimmed(list.substr(0, comma)))) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// At most 19 digits: no overflow.
std::optional<uint64_t> ReadNumber(std::string_view text) {
  if (text.empty() || text.size() > 19) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

}  // namespace

Response TextResponse(int status, std::string text) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(std::move(text));
  return response;
}

bool ReadTarget(std::string_view target, Request* request) {
  const size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  if (path.empty() || path.front() != '/' || path.find('#') != std::string_view::npos) return false;
  if (!Decode(path, &request->path) || HasDotSegment(request->path)) return false;
  request->query = question == std::string_view::npos ? std::string() : std::string(target.substr(question + 1));
  return true;
}

bool IsLoopbackHost(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5) return false;
    if (!std::all_of(port.begin(), port.end(), IsDigit)) return false;
    host = host.substr(0, colon);
  }
  return host == "127.0.0.1" || host == "[::1]" || EqualIgnoringCase(host, "localhost");
}

namespace {

/// A Host header without its port; an IPv6 address without its brackets. Empty when it is malformed.
std::string_view HostName(std::string_view host) {
  const bool is_bracketed = !host.empty() && host.front() == '[';
  const size_t end = is_bracketed ? host.find(']') : host.find(':');
  if (end == std::string_view::npos) return is_bracketed ? std::string_view() : host;
  const std::string_view behind = host.substr(end + (is_bracketed ? 1 : 0));
  if (!behind.empty() && (behind.front() != ':' || behind.size() > 6 || !ReadNumber(behind.substr(1)))) return {};
  return is_bracketed ? host.substr(1, end - 1) : host.substr(0, end);
}

}  // namespace

bool IsAdmittedHost(std::string_view host, const Peer& peer, const std::vector<std::string>& names,
                    std::string_view local_address) {
  if (peer.kind == Peer::Kind::kUnixSocket || IsLoopbackHost(host)) return true;
  const std::string_view name = HostName(host);
  if (name.empty()) return false;
  if (EqualIgnoringCase(name, local_address)) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& admitted) {
    if (admitted == "*") return peer.kind != Peer::Kind::kLoopback;
    return EqualIgnoringCase(name, admitted);
  });
}

bool IsFromAnotherSite(std::string_view origin, std::string_view sec_fetch_site, std::string_view host,
                       bool is_encrypted) {
  // "same-site" includes other ports of this host, where pages of other users may be.
  if (!sec_fetch_site.empty() && sec_fetch_site != "same-origin" && sec_fetch_site != "none") return true;
  if (origin.empty()) return false;
  const std::string_view scheme = is_encrypted ? "https://" : "http://";
  return origin.substr(0, scheme.size()) != scheme || !EqualIgnoringCase(origin.substr(scheme.size()), host);
}

bool AcceptsGzip(std::string_view accept_encoding) {
  return AnyElement(accept_encoding, [](std::string_view element) {
    const size_t semicolon = element.find(';');
    if (!EqualIgnoringCase(Trimmed(element.substr(0, semicolon)), "gzip")) return false;
    if (semicolon == std::string_view::npos) return true;
    const std::string_view weight = Trimmed(element.substr(semicolon + 1));
    return weight != "q=0" && weight != "q=0.0" && weight != "q=0.00" && weight != "q=0.000";
  });
}

bool MatchesEtag(std::string_view if_none_match, std::string_view etag) {
  if (etag.empty()) return false;
  return AnyElement(if_none_match, [&](std::string_view element) {
    if (element.substr(0, 2) == "W/") element.remove_prefix(2);
    return element == "*" || element == etag;
  });
}

RangeKind ReadRange(std::string_view header, uint64_t body_bytes, ByteRange* range) {
  constexpr std::string_view kUnit = "bytes=";
  if (header.size() < kUnit.size() || !EqualIgnoringCase(header.substr(0, kUnit.size()), kUnit))
    return RangeKind::kWhole;
  const std::string_view text = header.substr(kUnit.size());
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return RangeKind::kWhole;
  const std::optional<uint64_t> first = ReadNumber(text.substr(0, dash));
  const std::optional<uint64_t> last = ReadNumber(text.substr(dash + 1));
  if (dash == 0) {  // the last so many bytes
    if (!last) return RangeKind::kWhole;
    if (*last == 0 || body_bytes == 0) return RangeKind::kUnsatisfiable;
    *range = {body_bytes - std::min(*last, body_bytes), body_bytes};
    return RangeKind::kPart;
  }
  const bool is_open = dash + 1 == text.size();
  if (!first || (!last && !is_open) || (last && *last < *first)) return RangeKind::kWhole;
  if (*first >= body_bytes) return RangeKind::kUnsatisfiable;
  *range = {*first, last ? std::min(*last + 1, body_bytes) : body_bytes};
  return RangeKind::kPart;
}

}  // namespace lockstep::http
