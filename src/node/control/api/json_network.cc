#include <arpa/inet.h>

#include "node/control/api/json_fields.h"
#include "node/control/api/network_test.h"

namespace lockstep::control {
namespace {

constexpr size_t kAddresses = 64;
constexpr size_t kNameBytes = 64;
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kLeastLimitNs = 100'000'000;
constexpr int64_t kMostLimitNs = 30'000'000'000;
constexpr int64_t kSecretBytes = 32;

Status CheckInterface(JsonValue element, const std::string& where) {
  const std::string_view name = element.Text().value_or("");
  if (!name.empty() && name.size() <= kNameBytes) return {};
  return Error{ErrorCode::kInvalidArgument, where + " is not an interface's name"};
}

/// Another machine's, and one only: the daemon is not to be made to knock at its own node's doors.
bool IsOtherNodes(const std::string& text) {
  in_addr v4 = {};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    const uint32_t address = ntohl(v4.s_addr);
    const bool is_link_local = address >> 16 == 0xa9fe;  // 169.254/16: a cloud's metadata service, among others.
    return address >> 24 != 127 && address >> 24 != 0 && address >> 28 < 0xe && !is_link_local;
  }
  in6_addr v6 = {};
  return ::inet_pton(AF_INET6, text.c_str(), &v6) == 1 && !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
         !IN6_IS_ADDR_MULTICAST(&v6) && !IN6_IS_ADDR_V4MAPPED(&v6) && !IN6_IS_ADDR_LINKLOCAL(&v6);
}

bool IsSecret(const std::string& text) { return text.size() == kSecretBytes && IsWord(text, ""); }

}  // namespace

template <typename Json>
void Fields(Json& json, NetworkAddress& address) {
  json.TextOrNull("interface", &address.interface, kNameBytes);
  json.RequiredWord("address", ".:%", kNameBytes, &address.address);
}

template <typename Json>
void Fields(Json& json, NetworkPath& path) {
  json.RequiredObject("to", &path.to);
  json.TextOrNull("problem", &path.problem);
  json.Int("latency_ns", &path.latency_ns);
  json.Int("longest_latency_ns", &path.longest_latency_ns);
  json.Int("sent_bytes_per_s", &path.sent_bytes_per_s);
  json.Int("received_bytes_per_s", &path.received_bytes_per_s);
  json.Int("segment_count", &path.segment_count);
  json.Int("retransmitted_count", &path.retransmitted_count);
}

template <typename Json>
void Fields(Json& json, NetworkTestSpec& spec) {
  std::string role = Json::kReads ? "" : spec.listens ? "listen" : "connect";
  json.Text("role", &role, kNameBytes);
  json.Expect("role", role.empty() || role == "listen" || role == "connect", "is neither 'listen' nor 'connect'");
  spec.listens = role != "connect";
  json.Texts("interfaces", kAddresses, &spec.interfaces, CheckInterface);
  json.Objects("addresses", kAddresses, &spec.addresses);
  json.Int("port", &spec.port);
  json.TextOrNull("secret", &spec.secret, kNameBytes);
  json.Int("bytes", &spec.bytes, 0, kMostBytes);
  json.Int("limit_ns", &spec.limit_ns, kLeastLimitNs, kMostLimitNs);
}

template <typename Json>
void Fields(Json& json, NetworkTest& test) {
  std::string role = Json::kReads ? "" : test.listens ? "listen" : "connect";
  json.RequiredWord("id", "", kNameBytes, &test.id);
  json.Text("host", &test.host);
  json.Text("role", &role, kNameBytes);
  test.listens = role == "listen";
  json.Bool("done", &test.is_done);
  json.Objects("addresses", kAddresses, &test.addresses);
  json.Int("port", &test.port);
  json.TextOrNull("secret", &test.secret, kNameBytes);
  json.Objects("paths", kAddresses, &test.paths);
  json.TextOrNull("problem", &test.problem);
}

std::string ToJson(const NetworkTestSpec& spec) { return WriteDocument(spec); }
std::string ToJson(const NetworkTest& test) { return WriteDocument(test); }
Result<NetworkTest> ReadNetworkTest(std::string_view text) { return ReadDocument<NetworkTest>(text); }

Result<NetworkTestSpec> ReadNetworkTestSpec(std::string_view text) {
  ASSIGN_OR_RETURN(NetworkTestSpec spec, ReadDocument<NetworkTestSpec>(text));
  if (spec.listens) return spec;
  if (spec.addresses.empty() || spec.port == 0 || !IsSecret(spec.secret)) {
    return Error{ErrorCode::kInvalidArgument, "addresses, port and secret must be what the listening end answered"};
  }
  for (const NetworkAddress& address : spec.addresses) {
    if (!IsOtherNodes(address.address)) {
      return Error{ErrorCode::kInvalidArgument,
                   "addresses: '" + address.address + "' is not an address of another node"};
    }
  }
  return spec;
}

}  // namespace lockstep::control
