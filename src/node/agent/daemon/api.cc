#include "node/agent/daemon/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/nanoseconds.h"
#include "node/agent/daemon/answer.h"

namespace lockstep::agent {
namespace {

using http::Method;
using http::Request;
using http::Response;

// The segments of `path` that stand where `pattern` has braces; false: it does not match.
bool Match(std::string_view pattern, std::string_view path, std::vector<std::string>* segments) {
  segments->clear();
  while (!pattern.empty() && !path.empty()) {
    const size_t pattern_end = pattern.find('/', 1);
    const size_t path_end = path.find('/', 1);
    const std::string_view expected = pattern.substr(0, pattern_end);
    const std::string_view found = path.substr(0, path_end);
    if (expected.starts_with("/{")) {
      if (found.size() < 2) return false;
      segments->emplace_back(found.substr(1));
    } else if (expected != found) {
      return false;
    }
    pattern = pattern_end == std::string_view::npos ? std::string_view() : pattern.substr(pattern_end);
    path = path_end == std::string_view::npos ? std::string_view() : path.substr(path_end);
  }
  return pattern.empty() && path.empty();
}

bool IsMethod(const char* listed, Method method) {
  const std::string_view name = listed;
  switch (method) {
    case Method::kGet:
    case Method::kHead: return name == "GET";
    case Method::kPost: return name == "POST";
    case Method::kDelete: return name == "DELETE";
    case Method::kOther: return false;
  }
  return false;
}

}  // namespace

struct Api::Entry {
  Route route;
  Answer answer;
};

const std::vector<Api::Entry>& Api::Entries() {
  static const std::vector<Entry> entries = {
      {{"GET", "/api/v1/status", Role::kRead}, &Api::GetStatus},
      {{"GET", "/api/v1/processes", Role::kRead}, &Api::GetProcesses},
      {{"GET", "/api/v1/captures", Role::kRead}, &Api::GetCaptures},
      {{"POST", "/api/v1/captures", Role::kCapture}, &Api::PostCapture},
      {{"GET", "/api/v1/captures/{id}", Role::kRead}, &Api::GetCapture},
      {{"DELETE", "/api/v1/captures/{id}", Role::kCapture}, &Api::DeleteCapture},
      {{"GET", "/api/v1/captures/{id}/events", Role::kRead}, &Api::GetEvents},
      {{"GET", "/api/v1/captures/{id}/traces/{name}", Role::kCapture}, &Api::GetTrace},
      {{"POST", "/api/v1/network-tests", Role::kCapture}, &Api::PostNetworkTest},
      {{"GET", "/api/v1/network-tests/{id}", Role::kCapture}, &Api::GetNetworkTest},
      {{"POST", "/api/v1/inspections", Role::kCapture}, &Api::PostInspection},
      {{"GET", "/api/v1/inspections/{id}", Role::kCapture}, &Api::GetInspection},
      {{"GET", "/api/v1/history", Role::kRead}, &Api::GetHistory},
      {{"GET", "/api/v1/stages", Role::kRead}, &Api::GetStages},
      {{"GET", "/metrics", Role::kRead}, &Api::GetMetrics},
      {{"GET", "/-/healthy", Role::kNone}, &Api::GetHealthy},
      {{"GET", "/-/ready", Role::kNone}, &Api::GetReady},
  };
  return entries;
}

const std::vector<Api::Route>& Api::Routes() {
  static const std::vector<Route> routes = [] {
    std::vector<Route> list;
    for (const Entry& entry : Entries()) list.push_back(entry.route);
    return list;
  }();
  return routes;
}

Api::Api(ApiParts parts, std::shared_ptr<const Access> access) : parts_(std::move(parts)), access_(std::move(access)) {}

Response Api::Refuse(int status, const std::string& sentence) {
  return ErrorAnswer(status, Error{CodeOfStatus(status), sentence});
}

void Api::SetAccess(std::shared_ptr<const Access> access) {
  const MutexLock lock(mutex_);
  access_ = std::move(access);
}

std::shared_ptr<const Access> Api::access() {
  const MutexLock lock(mutex_);
  return access_;
}

Response Api::Handle(const Request& request) {
  Call call{request, {}, {}};
  std::vector<std::string> methods;
  const char* pattern = nullptr;
  for (const Entry& entry : Entries()) {
    std::vector<std::string> segments;
    if (!Match(entry.route.pattern, request.path, &segments)) continue;
    pattern = entry.route.pattern;
    methods.emplace_back(entry.route.methods);
    if (!IsMethod(entry.route.methods, request.method)) continue;
    call.segments = std::move(segments);
    Response response = Authorize(entry, request, &call);
    if (response.status == 200) response = (this->*entry.answer)(call);
    parts_.metrics->CountRequest(pattern, response.status);
    return response;
  }
  if (pattern == nullptr) {
    parts_.metrics->CountRequest("other", 404);
    return Refuse(404, "no such path; docs/formats/daemon-api.md lists the paths");
  }
  parts_.metrics->CountRequest(pattern, 405);
  if (methods.front() == "GET") methods.insert(methods.begin() + 1, "HEAD");
  Response response = Refuse(
      405, fmt::format("here only {} {} answered", fmt::join(methods, ", "), methods.size() == 1 ? "is" : "are"));
  response.headers.emplace_back("Allow", fmt::format("{}", fmt::join(methods, ", ")));
  return response;
}

// 200 when the caller may go on, and then who it is.
Response Api::Authorize(const Entry& entry, const Request& request, Call* call) {
  if (entry.route.least == Role::kNone) return Response();
  Access::Decision decision = access()->Identify(request.peer, request.authorization, parts_.now_ns());
  if (decision.outcome == Access::Outcome::kLimited) {
    parts_.metrics->CountAuthenticationFailure("limited");
    Response response =
        ErrorAnswer(429, Error{ErrorCode::kLimitExceeded, "too many failed attempts from this address"});
    response.headers.emplace_back("Retry-After", std::to_string(FailureLimiter::kWindowNs / kSecondNs));
    return response;
  }
  if (decision.outcome == Access::Outcome::kUnknown) {
    parts_.metrics->CountAuthenticationFailure("unknown");
    parts_.audit(AuditLine("authenticate", request.peer.address, "refused", decision.reason));
    Response response = ErrorAnswer(
        401, Error{ErrorCode::kPermissionDenied, "needs a token or a client certificate that this daemon knows"});
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  if (decision.identity.role < entry.route.least) {
    parts_.audit(
        AuditLine(entry.route.pattern, decision.identity.caller.name, "refused",
                  fmt::format("role {}, needs {}", RoleName(decision.identity.role), RoleName(entry.route.least))));
    return ErrorAnswer(403, Error{ErrorCode::kPermissionDenied,
                                  fmt::format("{} has the role {} and needs {}", decision.identity.caller.name,
                                              RoleName(decision.identity.role), RoleName(entry.route.least))});
  }
  call->identity = std::move(decision.identity);
  return Response();
}

void Api::CloseStreams() {
  std::vector<std::weak_ptr<http::EventStream>> streams;
  {
    const MutexLock lock(mutex_);
    streams.swap(streams_);
  }
  for (const auto& weak : streams) {
    if (const auto stream = weak.lock()) stream->Close();
  }
}

}  // namespace lockstep::agent
