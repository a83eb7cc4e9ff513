#include <fmt/format.h>

#include <utility>

#include "base/mutex.h"
#include "node/agent/daemon/answer.h"
#include "node/agent/daemon/api.h"
#include "node/agent/sensors/open_metrics.h"
#include "node/control/api/json.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using http::Method;
using http::Response;

constexpr size_t kStreams = 64;

Error NoSuchCapture(std::string_view id) {
  return Error{ErrorCode::kNotFound, fmt::format("no capture {} on this node that you may see", id)};
}

std::string EventText(const Capture& capture) {
  return fmt::format("event: capture\ndata: {}\n\n", control::ToJson(capture));
}

/// The stream with what feeds it: both end together.
struct CaptureStream : http::EventStream {
  Mutex order;                  // Held over reading a state and pushing it, so that no older one comes later.
  std::shared_ptr<void> watch;  // Shared by the manager's contract: ends the listening when it goes.
};

void PushState(CaptureStream* stream, const Capture& capture) {
  stream->Push(EventText(capture));
  if (IsFinal(capture.state)) stream->Close();
}

}  // namespace

std::vector<std::string> Api::Problems() const {
  std::vector<std::string> problems = parts_.problems();
  for (std::string& problem : parts_.captures->Problems()) problems.push_back(std::move(problem));
  return problems;
}

Response Api::GetStatus(const Call& /*call*/) {
  control::NodeStatus status = parts_.status();
  status.process_count = parts_.registry->Processes().size();
  for (const Capture& capture : parts_.captures->List(Caller{{}, true, {}})) {
    if (!IsFinal(capture.state)) ++status.running_capture_count;
  }
  status.problems = Problems();
  return JsonAnswer(200, ToJson(status));
}

Response Api::GetProcesses(const Call& call) {
  std::vector<control::Process> processes = parts_.registry->Processes();
  for (control::Process& process : processes) {
    if (call.identity.caller.MayTrace(process)) continue;
    process.command.clear();
    process.settings.clear();
  }
  return JsonAnswer(200, ToJson(processes));
}

Response Api::GetCaptures(const Call& call) {
  return JsonAnswer(200, ToJson(parts_.captures->List(call.identity.caller)));
}

Response Api::PostCapture(const Call& call) {
  const std::string& by = call.identity.caller.name;
  const auto refuse = [&](const Error& error) {
    parts_.audit(AuditLine("capture", by, "refused", error.message));
    return ErrorAnswer(error);
  };
  if (!IsJson(call.request.content_type)) {
    return ErrorAnswer(415,
                       Error{ErrorCode::kInvalidArgument, "the body must be JSON: Content-Type: application/json"});
  }
  const Result<control::CaptureSpec> spec = control::ReadCaptureSpec(call.request.body);
  if (!spec) return refuse(spec.error());
  const Result<Capture> capture = parts_.captures->Start(*spec, call.identity.caller);
  if (!capture) return refuse(capture.error());
  parts_.audit(
      AuditLine("capture", by, "accepted",
                fmt::format("{} job '{}', {} processes", capture->id, spec->selector.job_id, capture->targets.size())));
  Response response = JsonAnswer(201, ToJson(*capture));
  response.headers.emplace_back("Location", "/api/v1/captures/" + capture->id);
  return response;
}

Response Api::GetCapture(const Call& call) {
  if (!control::IsCaptureId(call.segments.at(0))) return ErrorAnswer(NoSuchCapture("of this name"));
  const Result<Capture> capture = parts_.captures->Get(call.segments[0], call.identity.caller);
  return capture ? JsonAnswer(200, ToJson(*capture)) : ErrorAnswer(capture.error());
}

Response Api::DeleteCapture(const Call& call) {
  if (!control::IsCaptureId(call.segments.at(0))) return ErrorAnswer(NoSuchCapture("of this name"));
  // One that has ended is forgotten with this: it counts before.
  if (const auto before = parts_.captures->Get(call.segments[0], call.identity.caller)) {
    parts_.metrics->CountEnded({*before});
  }
  const Result<Capture> capture = parts_.captures->Cancel(call.segments[0], call.identity.caller);
  parts_.audit(AuditLine("cancel", call.identity.caller.name, capture ? "accepted" : "refused",
                         capture ? call.segments[0] : call.segments[0] + ": " + capture.error().message));
  return capture ? JsonAnswer(200, ToJson(*capture)) : ErrorAnswer(capture.error());
}

Response Api::GetEvents(const Call& call) {
  if (!control::IsCaptureId(call.segments.at(0))) return ErrorAnswer(NoSuchCapture("of this name"));
  const std::string& id = call.segments[0];
  const Result<Capture> first = parts_.captures->Get(id, call.identity.caller);
  if (!first) return ErrorAnswer(first.error());
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("Cache-Control", "no-store");
  if (call.request.method == Method::kHead) return response;

  auto stream = std::make_shared<CaptureStream>();
  {
    const MutexLock lock(mutex_);
    std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
    if (streams_.size() >= kStreams) {
      return ErrorAnswer(503, Error{ErrorCode::kLimitExceeded, "too many event streams are open: try again later"});
    }
    streams_.push_back(stream);
  }
  stream->watch = parts_.captures->Watch(id, [weak = std::weak_ptr(stream)](const Capture& capture) {
    const auto held = weak.lock();
    if (held == nullptr) return;
    const MutexLock lock(held->order);
    PushState(held.get(), capture);
  });
  {
    // Read again after the subscription, because a change in between would be lost.
    const MutexLock lock(stream->order);
    const Result<Capture> now = parts_.captures->Get(id, call.identity.caller);
    PushState(stream.get(), now ? *now : *first);
    if (!now) stream->Close();
  }
  response.events = std::move(stream);
  return response;
}

Response Api::GetTrace(const Call& call) {
  const std::string& id = call.segments.at(0);
  const std::string& name = call.segments.at(1);
  if (!control::IsCaptureId(id)) return ErrorAnswer(NoSuchCapture("of this name"));
  if (!control::IsTraceName(name)) {
    return ErrorAnswer(Error{ErrorCode::kNotFound, "the capture has no trace of this name"});
  }
  Result<OpenTrace> trace = parts_.captures->Open(id, name, call.identity.caller);
  if (!trace) {
    parts_.audit(AuditLine("download", call.identity.caller.name, "refused",
                           fmt::format("{}/{}: {}", id, name, trace.error().message)));
    return ErrorAnswer(trace.error());
  }
  parts_.audit(AuditLine("download", call.identity.caller.name, "accepted", fmt::format("{}/{}", id, name)));
  Response response;
  response.content_type = "application/json";
  response.descriptor = std::make_shared<UniqueFd>(std::move(trace->fd));
  response.headers.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"{}\"", name));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

Response Api::PostInspection(const Call& call) {
  const Caller& caller = call.identity.caller;
  const auto refuse = [&](int status, const Error& error) {
    parts_.audit(AuditLine("inspect", caller.name, "refused", error.message));
    return ErrorAnswer(status, error);
  };
  if (!IsJson(call.request.content_type)) {
    return ErrorAnswer(415,
                       Error{ErrorCode::kInvalidArgument, "the body must be JSON: Content-Type: application/json"});
  }
  const Result<control::InspectionSpec> spec = control::ReadInspectionSpec(call.request.body);
  if (!spec) return refuse(400, spec.error());
  const Result<control::Inspection> inspection = parts_.inspections->Start(*spec, caller);
  if (!inspection) return refuse(503, inspection.error());
  parts_.audit(AuditLine("inspect", caller.name, "accepted",
                         fmt::format("{} job '{}', {} pids", inspection->id, spec->job_id, spec->pids.size())));
  Response response = JsonAnswer(202, ToJson(*inspection));
  response.headers.emplace_back("Location", "/api/v1/inspections/" + inspection->id);
  return response;
}

Response Api::GetInspection(const Call& call) {
  const std::string& id = call.segments.at(0);
  if (!control::IsCaptureId(id)) return ErrorAnswer(Error{ErrorCode::kNotFound, "no inspection has such a name"});
  bool is_done = false;
  const Result<std::string> answer = parts_.inspections->Get(id, call.identity.caller, &is_done);
  if (!answer) return ErrorAnswer(answer.error());
  Response response = JsonAnswer(200, *answer);
  if (is_done) response.on_sent = [desk = parts_.inspections, id] { desk->Forget(id); };
  return response;
}

Response Api::GetHistory(const Call& call) {
  const Result<control::HistoryQuery> query = control::ReadHistoryQuery(call.request.query);
  if (!query) return ErrorAnswer(query.error());
  return JsonAnswer(200, ToJson(parts_.history ? parts_.history(*query) : control::History()));
}

Response Api::GetStages(const Call& call) {
  const Result<control::StagesQuery> query = control::ReadStagesQuery(call.request.query);
  if (!query) return ErrorAnswer(query.error());
  return JsonAnswer(200, ToJson(parts_.stages ? parts_.stages(*query) : control::NodeStages()));
}

Response Api::GetMetrics(const Call& call) {
  const bool is_open = AcceptsOpenMetrics(call.request.accept);
  const std::vector<control::Process> processes = parts_.registry->Processes();
  const std::vector<control::Capture> captures = parts_.captures->List(Caller{{}, true, {}});
  std::vector<prometheus::MetricFamily> measured;
  if (parts_.measured) measured = parts_.measured();
  std::vector<Exemplar> exemplars;
  if (is_open && parts_.exemplars) exemplars = parts_.exemplars(captures);
  Metrics& metrics = *parts_.metrics;
  Response response = http::TextResponse(
      200, is_open ? metrics.OpenText(processes, captures, parts_.samples(), std::move(measured), exemplars)
                   : metrics.Text(processes, captures, parts_.samples(), std::move(measured)));
  response.content_type = is_open ? kOpenMetricsType : "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

Response Api::GetHealthy(const Call& /*call*/) { return http::TextResponse(200, "healthy\n"); }

Response Api::GetReady(const Call& /*call*/) {
  const std::vector<std::string> problems = Problems();
  if (problems.empty()) return http::TextResponse(200, "ready\n");
  // Asked without credentials, so what they are stays with those who have some.
  return http::TextResponse(503, fmt::format("not ready: {} problems, which /api/v1/status names\n", problems.size()));
}

}  // namespace lockstep::agent
