#include "node/control/client/node_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "base/ascii.h"
#include "base/nanoseconds.h"
#include "node/control/api/json.h"
#include "node/control/client/http_connection.h"
#include "node/control/client/place.h"

namespace lockstep::control {
namespace {

ErrorCode CodeOf(int status) {
  switch (status) {
    case 400:
    case 405: return ErrorCode::kInvalidArgument;
    case 401:
    case 403: return ErrorCode::kPermissionDenied;
    case 404: return ErrorCode::kNotFound;
    case 409: return ErrorCode::kFailedPrecondition;
    case 413:
    case 429:
    case 503: return ErrorCode::kLimitExceeded;
    default: return ErrorCode::kIo;
  }
}

/// What a reply other than success says.
Error Refusal(const HttpReply& reply) {
  Error error = ReadError(reply.body);
  // The body has no error of ours: it comes from the HTTP server below the routes, or from another program's server.
  if (error.code == ErrorCode::kCorruptData) {
    error = {CodeOf(reply.status), fmt::format("the daemon answered {}: {}", reply.status, error.message)};
  }
  if (reply.status == 401 || reply.status == 403) error.code = ErrorCode::kPermissionDenied;
  return error;
}

/// Identifiers go into a URL's path unescaped: a text with other characters is not a valid identifier.
Status CheckSegment(const std::string& segment, const char* what) {
  const auto is_plain = [](char c) { return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_'; };
  if (segment.empty() || segment.size() > 255 || segment.front() == '.' ||
      !std::all_of(segment.begin(), segment.end(), is_plain)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no {}", segment, what)};
  }
  return {};
}

class HttpNodeClient : public NodeClient {
 public:
  HttpNodeClient(const Endpoint& endpoint, std::unique_ptr<HttpConnection> connection)
      : endpoint_(endpoint), connection_(std::move(connection)) {}

  const Endpoint& endpoint() const override { return endpoint_; }

  Result<NodeStatus> Status(int64_t deadline_ns) override {
    return Ask(HttpConnection::Method::kGet, "/api/v1/status", "", deadline_ns, ReadNodeStatus);
  }
  Result<std::vector<Process>> Processes(int64_t deadline_ns) override {
    return Ask(HttpConnection::Method::kGet, "/api/v1/processes", "", deadline_ns, ReadProcesses);
  }
  Result<Capture> StartCapture(const CaptureSpec& spec, int64_t deadline_ns) override {
    return Ask(HttpConnection::Method::kPost, "/api/v1/captures", ToJson(spec), deadline_ns, ReadCapture);
  }
  Result<std::vector<Capture>> Captures(int64_t deadline_ns) override {
    return Ask(HttpConnection::Method::kGet, "/api/v1/captures", "", deadline_ns, ReadCaptures);
  }
  Result<Capture> GetCapture(const std::string& id, int64_t deadline_ns) override {
    RETURN_IF_ERROR(CheckSegment(id, "capture's id"));
    return Ask(HttpConnection::Method::kGet, "/api/v1/captures/" + id, "", deadline_ns, ReadCapture);
  }
  Result<Capture> CancelCapture(const std::string& id, int64_t deadline_ns) override {
    RETURN_IF_ERROR(CheckSegment(id, "capture's id"));
    return Ask(HttpConnection::Method::kDelete, "/api/v1/captures/" + id, "", deadline_ns, ReadCapture);
  }
  Result<NetworkTest> StartNetworkTest(const NetworkTestSpec& spec, int64_t deadline_ns) override {
    return Ask(HttpConnection::Method::kPost, "/api/v1/network-tests", ToJson(spec), deadline_ns, ReadNetworkTest);
  }
  Result<NetworkTest> GetNetworkTest(const std::string& id, int64_t deadline_ns) override {
    RETURN_IF_ERROR(CheckSegment(id, "network test's id"));
    return Ask(HttpConnection::Method::kGet, "/api/v1/network-tests/" + id, "", deadline_ns, ReadNetworkTest);
  }
  Result<Inspection> Inspect(const InspectionSpec& spec, int64_t deadline_ns) override {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(deadline_ns);
    const auto left_ns = [&] { return std::chrono::nanoseconds(end - Clock::now()).count(); };
    ASSIGN_OR_RETURN(const HttpReply reply,
                     connection_->Ask(HttpConnection::Method::kPost, "/api/v1/inspections", ToJson(spec), deadline_ns));
    if (reply.status == 404 || reply.status == 405) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("the lockstepd at {} is too old to look at processes: upgrade it to this version",
                               PlaceOf(endpoint_))};
    }
    Result<Inspection> inspection = ReadReply(reply, ReadInspection);
    std::chrono::milliseconds pause(10);
    while (inspection && inspection->state != InspectionState::kDone) {
      if (left_ns() <= 0) {
        return Error{
            ErrorCode::kCancelled,
            fmt::format("{} had not finished when the time limit was reached{}", PlaceOf(endpoint_),
                        inspection->state == InspectionState::kQueued ? ": others' inspections go before" : "")};
      }
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, std::chrono::nanoseconds(left_ns())));
      pause = std::min(pause * 2, std::chrono::milliseconds(200));
      const std::string id = inspection->id;
      RETURN_IF_ERROR(CheckSegment(id, "inspection's id"));
      inspection = Ask(HttpConnection::Method::kGet, "/api/v1/inspections/" + id, "",
                       std::max<int64_t>(left_ns(), kMillisecondNs), ReadInspection);
    }
    return inspection;
  }
  Result<NodeStages> Stages(const StagesQuery& query, int64_t deadline_ns) override {
    ASSIGN_OR_RETURN(const HttpReply reply,
                     connection_->Ask(HttpConnection::Method::kGet, StagesPath(query), "", deadline_ns));
    if (reply.status == 404) {
      return Error{
          ErrorCode::kUnsupported,
          fmt::format("the lockstepd at {} is too old to tell stages: upgrade it to this version", PlaceOf(endpoint_))};
    }
    return ReadReply(reply, ReadNodeStages);
  }
  lockstep::Status Download(const std::string& capture_id, const std::string& trace_name, int64_t stall_ns,
                            const std::function<lockstep::Status(std::string_view)>& sink) override {
    RETURN_IF_ERROR(CheckSegment(capture_id, "capture's id"));
    RETURN_IF_ERROR(CheckSegment(trace_name, "trace's name"));
    ASSIGN_OR_RETURN(
        const HttpReply reply,
        connection_->Fetch(fmt::format("/api/v1/captures/{}/traces/{}", capture_id, trace_name), stall_ns, sink));
    if (reply.status != 200) return Refusal(reply);
    return {};
  }

 private:
  template <typename T>
  Result<T> Ask(HttpConnection::Method method, const std::string& path, const std::string& body, int64_t deadline_ns,
                Result<T> (*read)(std::string_view)) {
    ASSIGN_OR_RETURN(const HttpReply reply, connection_->Ask(method, path, body, deadline_ns));
    return ReadReply(reply, read);
  }

  template <typename T>
  Result<T> ReadReply(const HttpReply& reply, Result<T> (*read)(std::string_view)) {
    if (reply.status < 200 || reply.status > 299) return Refusal(reply);
    Result<T> value = read(reply.body);
    // Whichever it calls it, here it is the daemon's bytes that are wrong and not the caller's request.
    if (!value) {
      return Error{ErrorCode::kCorruptData,
                   fmt::format("the answer from {} is not that of a lockstepd version known here: {}",
                               PlaceOf(endpoint_), value.error().message)};
    }
    return value;
  }

  const Endpoint endpoint_;
  const std::unique_ptr<HttpConnection> connection_;
};

}  // namespace

Result<std::unique_ptr<NodeClient>> NodeClient::Create(const Endpoint& endpoint) {
  ASSIGN_OR_RETURN(std::unique_ptr<HttpConnection> connection, HttpConnection::Open(endpoint));
  return std::unique_ptr<NodeClient>(std::make_unique<HttpNodeClient>(endpoint, std::move(connection)));
}

}  // namespace lockstep::control
