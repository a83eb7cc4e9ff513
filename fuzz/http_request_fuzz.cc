// What a client may send to `lockstep serve` and that we read ourselves: target, Host, Accept-Encoding, If-None-Match,
// Range, one a line. The rest of HTTP is Boost.Beast's.
#include <string_view>

#include "fuzz.h"
#include "http/http_message.h"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view target = NextLine(&rest);
  const std::string_view host = NextLine(&rest);
  const std::string_view encoding = NextLine(&rest);
  const std::string_view etags = NextLine(&rest);
  const std::string_view range_header = NextLine(&rest);
  Request request;
  if (ReadTarget(target, &request)) CheckPath(request.path);
  if (IsLoopbackHost(host)) FUZZ_CHECK(host.size() <= sizeof("localhost:65535"));
  if (AcceptsGzip(encoding)) FUZZ_CHECK(encoding.size() >= 4);
  FUZZ_CHECK(!MatchesEtag(etags, ""));
  for (const uint64_t body_bytes : {uint64_t{0}, uint64_t{10}, UINT64_MAX}) {
    ByteRange range;
    if (ReadRange(range_header, body_bytes, &range) == RangeKind::kPart)
      FUZZ_CHECK(range.begin < range.end && range.end <= body_bytes);
  }
  return 0;
}
