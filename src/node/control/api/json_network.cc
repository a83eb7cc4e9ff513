#include <arpa/inet.h>

#include "base/json_writer.h"
#include "node/control/api/network_test.h"
#include "node/control/api/parse_json.h"

namespace lockstep::control {
namespace {

constexpr size_t kAddresses = 64;
constexpr size_t kNameBytes = 64;
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kLeastLimitNs = 100'000'000;
constexpr int64_t kMostLimitNs = 30'000'000'000;
constexpr int64_t kSecretBytes = 32;

void WriteAddress(const NetworkAddress& address, JsonWriter* json) {
  json->StartObject().Key("interface").TextOrNull(address.interface).Key("address").Text(address.address).EndObject();
}

void WriteAddresses(const std::vector<NetworkAddress>& addresses, JsonWriter* json) {
  json->Key("addresses").StartArray();
  for (const NetworkAddress& address : addresses) WriteAddress(address, json);
  json->EndArray();
}

Status ReadAddress(JsonValue value, std::string path, NetworkAddress* address) {
  JsonObject reader(value, std::move(path));
  reader.Text("interface", &address->interface, kNameBytes);
  reader.Word("address", ".:%", kNameBytes, &address->address);
  reader.Require("address", !address->address.empty());
  return reader.status();
}

void ReadAddresses(JsonObject* reader, std::vector<NetworkAddress>* addresses) {
  reader->List("addresses", kAddresses, [addresses](JsonValue value, std::string path) {
    return ReadAddress(value, std::move(path), &addresses->emplace_back());
  });
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

std::string ToJson(const NetworkTestSpec& spec) {
  JsonWriter json;
  json.StartObject().Key("role").Text(spec.listens ? "listen" : "connect").Key("interfaces").StartArray();
  for (const std::string& name : spec.interfaces) json.Text(name);
  json.EndArray();
  WriteAddresses(spec.addresses, &json);
  json.Key("port").Int(spec.port).Key("secret").TextOrNull(spec.secret);
  json.Key("bytes").Uint(spec.bytes).Key("limit_ns").Int(spec.limit_ns).EndObject();
  return json.Take();
}

Result<NetworkTestSpec> ReadNetworkTestSpec(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(text));
  JsonObject reader(document.root(), "");
  NetworkTestSpec spec;
  std::string role;
  reader.Text("role", &role, kNameBytes);
  if (!reader.failed() && !role.empty() && role != "listen" && role != "connect") {
    reader.Fail(ErrorCode::kInvalidArgument, "role", "is neither 'listen' nor 'connect'");
  }
  spec.listens = role != "connect";
  reader.List("interfaces", kAddresses, [&](JsonValue value, const std::string& where) -> Status {
    std::string name = value.TextOrEmpty();
    if (name.empty() || name.size() > kNameBytes) {
      return Error{ErrorCode::kInvalidArgument, where + " is not an interface's name"};
    }
    spec.interfaces.push_back(std::move(name));
    return {};
  });
  ReadAddresses(&reader, &spec.addresses);
  reader.Int("port", 0, 65535, &spec.port);
  reader.Text("secret", &spec.secret, kNameBytes);
  reader.Int("bytes", 0, kMostBytes, &spec.bytes);
  reader.Int("limit_ns", kLeastLimitNs, kMostLimitNs, &spec.limit_ns);
  RETURN_IF_ERROR(reader.status());
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

std::string ToJson(const NetworkTest& test) {
  JsonWriter json;
  json.StartObject().Key("id").Text(test.id).Key("host").Text(test.host);
  json.Key("role").Text(test.listens ? "listen" : "connect").Key("done").Bool(test.is_done);
  WriteAddresses(test.addresses, &json);
  json.Key("port").Int(test.port).Key("secret").TextOrNull(test.secret).Key("paths").StartArray();
  for (const NetworkPath& path : test.paths) {
    json.StartObject().Key("to");
    WriteAddress(path.to, &json);
    json.Key("problem").TextOrNull(path.problem).Key("latency_ns").Optional(path.latency_ns);
    json.Key("longest_latency_ns").Optional(path.longest_latency_ns);
    json.Key("sent_bytes_per_s").Optional(path.sent_bytes_per_s);
    json.Key("received_bytes_per_s").Optional(path.received_bytes_per_s);
    json.Key("segment_count").Optional(path.segment_count);
    json.Key("retransmitted_count").Optional(path.retransmitted_count).EndObject();
  }
  json.EndArray().Key("problem").TextOrNull(test.problem).EndObject();
  return json.Take();
}

Result<NetworkTest> ReadNetworkTest(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(text));
  JsonObject reader(document.root(), "");
  NetworkTest test;
  std::string role;
  reader.Word("id", "", kNameBytes, &test.id);
  reader.Require("id", !test.id.empty());
  reader.Text("host", &test.host);
  reader.Text("role", &role, kNameBytes);
  test.listens = role == "listen";
  reader.Bool("done", &test.is_done);
  ReadAddresses(&reader, &test.addresses);
  reader.Int("port", 0, 65535, &test.port);
  reader.Text("secret", &test.secret, kNameBytes);
  reader.List("paths", kAddresses, [&](JsonValue value, std::string where) -> Status {
    JsonObject member(value, std::move(where));
    NetworkPath& path = test.paths.emplace_back();
    if (const JsonValue to = member.Required("to")) member.Check(ReadAddress(to, member.Path("to"), &path.to));
    member.Text("problem", &path.problem);
    member.Int("latency_ns", 0, kAnyInt, &path.latency_ns);
    member.Int("longest_latency_ns", 0, kAnyInt, &path.longest_latency_ns);
    member.Int("sent_bytes_per_s", 0, kAnyInt, &path.sent_bytes_per_s);
    member.Int("received_bytes_per_s", 0, kAnyInt, &path.received_bytes_per_s);
    member.Int("segment_count", 0, kAnyInt, &path.segment_count);
    member.Int("retransmitted_count", 0, kAnyInt, &path.retransmitted_count);
    return member.status();
  });
  reader.Text("problem", &test.problem);
  RETURN_IF_ERROR(reader.status());
  return test;
}

}  // namespace lockstep::control
