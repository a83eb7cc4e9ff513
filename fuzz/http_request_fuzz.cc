// What a client may send to an HTTP server of ours and that we read ourselves: target, Host, Accept-Encoding,
// If-None-Match, Range, Origin, Sec-Fetch-Site, one a line. The rest of HTTP is Boost.Beast's (http_bytes_fuzz.cc).
#include <string_view>

#include "base/http/http_message.h"
#include "fuzz.h"

namespace {

using namespace lockstep::http;

void CheckPath(const std::string& path) {
  FUZZ_CHECK(!path.empty() && path.front() == '/');
  for (const char c : path) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '\\');
  const std::string framed = path + "/";
  FUZZ_CHECK(framed.find("/../") == std::string::npos && framed.find("/./") == std::string::npos);
}

std::string_view NextLine(std::string_view* rest) {
  const size_t end = rest->find('\n');
  const std::string_view line = rest->substr(0, end);
  *rest = end == std::string_view::npos ? std::string_view() : rest->substr(end + 1);
  return line;
}

void CheckHost(std::string_view host) {
  Peer peer;
  peer.kind = Peer::Kind::kUnixSocket;
  FUZZ_CHECK(IsAdmittedHost(host, peer, {}, ""));
  for (const auto kind : {Peer::Kind::kLoopback, Peer::Kind::kNetwork}) {
    peer.kind = kind;
    // Without names and address only the loopback's are left; with some, only a host that holds one of them.
    FUZZ_CHECK(IsAdmittedHost(host, peer, {}, "") == IsLoopbackHost(host));
    if (IsAdmittedHost(host, peer, {"node17"}, "10.1.2.3") && !IsLoopbackHost(host))
      FUZZ_CHECK(host.size() >= 6 && host.size() <= sizeof("10.1.2.3:65535") + 2);
  }
  peer.kind = Peer::Kind::kLoopback;
  FUZZ_CHECK(IsAdmittedHost(host, peer, {"*"}, "") == IsLoopbackHost(host));
}

void CheckOrigin(std::string_view origin, std::string_view fetch_site, std::string_view host) {
  if (IsFromAnotherSite(origin, fetch_site, host, false)) return;
  FUZZ_CHECK(origin.empty() || origin.size() == host.size() + 7);
  FUZZ_CHECK(fetch_site.empty() || fetch_site == "none" || fetch_site == "same-origin");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view target = NextLine(&rest);
  const std::string_view host = NextLine(&rest);
  const std::string_view encoding = NextLine(&rest);
  const std::string_view etags = NextLine(&rest);
  const std::string_view range_header = NextLine(&rest);
  const std::string_view origin = NextLine(&rest);
  const std::string_view fetch_site = NextLine(&rest);
  Request request;
  if (ReadTarget(target, &request)) CheckPath(request.path);
  if (IsLoopbackHost(host)) FUZZ_CHECK(host.size() <= sizeof("localhost:65535"));
  CheckHost(host);
  CheckOrigin(origin, fetch_site, host);
  if (AcceptsGzip(encoding)) FUZZ_CHECK(encoding.size() >= 4);
  FUZZ_CHECK(!MatchesEtag(etags, ""));
  for (const uint64_t body_bytes : {uint64_t{0}, uint64_t{10}, UINT64_MAX}) {
    ByteRange range;
    if (ReadRange(range_header, body_bytes, &range) == RangeKind::kPart)
      FUZZ_CHECK(range.begin < range.end && range.end <= body_bytes);
  }
  return 0;
}
