// A connection's bytes, as they come, through the parser, the limits and the checks of the HTTP server, without a
// socket. The first byte chooses the server's rules and how the bytes are cut.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/http/request_reader.h"
#include "fuzz.h"

namespace {

using namespace lockstep::http;
using State = RequestReader::State;

RequestRules MakeRules(uint8_t choice) {
  RequestRules rules;
  rules.takes_bodies = (choice & 1) != 0;
  if ((choice & 2) != 0) rules.host_names = {"node17"};
  rules.limits.header_bytes = 512;
  rules.limits.body_bytes = 256;
  return rules;
}

/// All that came of one connection, so that two ways of cutting its bytes can be compared.
std::string Outcome(const RequestRules& rules, const Peer& peer, std::string_view bytes, size_t piece) {
  RequestReader reader(rules, peer, "10.1.2.3");
  std::string outcome;
  while (!bytes.empty() && reader.state() != State::kRefused) {
    reader.Put(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (reader.state() == State::kWhole) {
      const Request& request = reader.request();
      FUZZ_CHECK(!request.path.empty() && request.path.front() == '/');
      FUZZ_CHECK(request.path.find('\0') == std::string::npos);
      FUZZ_CHECK(request.body.size() <= rules.limits.body_bytes);
      FUZZ_CHECK(request.method != Method::kOther);
      if (!rules.takes_bodies) {
        FUZZ_CHECK(request.body.empty());
        FUZZ_CHECK(request.method == Method::kGet || request.method == Method::kHead);
      }
      FUZZ_CHECK(request.authorization.size() + request.content_type.size() + request.if_none_match.size() <=
                 rules.limits.header_bytes);
      outcome += request.path + "\n" + request.query + "\n" + request.body + "\n" + request.authorization + "\n";
      reader.Next();
    }
    FUZZ_CHECK(reader.body_bytes() <= rules.limits.body_bytes);
  }
  if (reader.state() == State::kRefused) {
    FUZZ_CHECK(reader.refusal().status >= 400 && reader.refusal().status < 500);
    outcome += "refused";
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;  // Below the limit on a chunk's line, which is on what is there at once.
  const RequestRules rules = MakeRules(data[0]);
  Peer peer;
  peer.kind = (data[0] & 4) != 0 ? Peer::Kind::kUnixSocket : Peer::Kind::kLoopback;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = Outcome(rules, peer, bytes, bytes.size() + 1);
  const size_t piece = size_t{1} + (data[0] >> 3);
  // Requests that were whole are the same; only how soon a bad one is refused may depend on the cutting.
  const auto without_end = [](std::string text) {
    const size_t end = text.rfind("refused");
    if (end != std::string::npos && end + 7 == text.size()) text.resize(end);
    return text;
  };
  FUZZ_CHECK(without_end(whole) == without_end(Outcome(rules, peer, bytes, piece)));
  return 0;
}
