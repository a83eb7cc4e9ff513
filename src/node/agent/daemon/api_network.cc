#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "node/agent/daemon/answer.h"
#include "node/agent/daemon/api.h"

namespace lockstep::agent {

using http::Response;

namespace {

constexpr size_t kAddressesInAudit = 8;

/// The addresses that this node is asked to connect to, for the audit log. The reader of the spec has accepted only
/// addresses.
std::string Addresses(const control::NetworkTestSpec& spec) {
  std::string text;
  for (size_t i = 0; i < std::min(spec.addresses.size(), kAddressesInAudit); ++i) {
    text += (i == 0 ? "" : ", ") + spec.addresses[i].address;
  }
  if (spec.addresses.size() > kAddressesInAudit) {
    text += fmt::format(" and {} more", spec.addresses.size() - kAddressesInAudit);
  }
  return text;
}

}  // namespace

Response Api::PostNetworkTest(const Call& call) {
  const std::string& by = call.identity.caller.name;
  if (!IsJson(call.request.content_type)) {
    return ErrorAnswer(415,
                       Error{ErrorCode::kInvalidArgument, "the body must be JSON: Content-Type: application/json"});
  }
  const Result<control::NetworkTestSpec> spec = control::ReadNetworkTestSpec(call.request.body);
  const Result<control::NetworkTest> test =
      spec ? parts_.network->Start(*spec, by) : Result<control::NetworkTest>(spec.error());
  if (!test) {
    parts_.audit(AuditLine("network test", by, "refused", test.error().message));
    return test.error().code == ErrorCode::kLimitExceeded ? ErrorAnswer(503, test.error()) : ErrorAnswer(test.error());
  }
  parts_.audit(
      AuditLine("network test", by, "accepted",
                fmt::format("{} {}", test->id,
                            spec->listens ? fmt::format("listens at port {}", test->port)
                                          : fmt::format("connects to {} port {}", Addresses(*spec), spec->port))));
  Response response = JsonAnswer(201, ToJson(*test));
  response.headers.emplace_back("Location", "/api/v1/network-tests/" + test->id);
  return response;
}

Response Api::GetNetworkTest(const Call& call) {
  const Result<control::NetworkTest> test = parts_.network->Get(call.segments.at(0), call.identity.caller.name);
  return test ? JsonAnswer(200, ToJson(*test)) : ErrorAnswer(test.error());
}

}  // namespace lockstep::agent
