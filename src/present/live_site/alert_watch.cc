#include "present/live_site/alert_watch.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "base/now.h"
#include "present/report/json_stream.h"

namespace lockstep::live_site {
namespace {

constexpr auto kEvery = std::chrono::seconds(2);
constexpr int64_t kDeadline = 5'000'000'000;

void WriteAlert(report::JsonRow& row, const Alert& alert) {
  row.StartObject().Key("name").Text(alert.name).Key("state").Text(alert.is_firing ? "firing" : "pending");
  row.Key("severity").TextOrNull(alert.severity).Key("summary").TextOrNull(alert.summary);
  row.Key("runbook").TextOrNull(alert.runbook).Key("labels").StartObject();
  for (const auto& [name, value] : alert.labels) row.Key(name).Text(value);
  row.EndObject().Key("since_unix_ns").Optional(alert.since_unix_ns).Key("value").Optional(alert.value);
  row.EndObject();
}

}  // namespace

Result<PrometheusAt> ReadPrometheusUrl(const std::string& url) {
  const auto wrong = [&](const char* what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--prometheus: '{}' {}; one is http://HOST:9090", url, what)};
  };
  PrometheusAt at;
  at.url = url;
  std::string_view rest = url;
  at.endpoint.tls = rest.starts_with("https://");
  if (!at.endpoint.tls && !rest.starts_with("http://")) return wrong("is not a URL of HTTP");
  rest.remove_prefix(at.endpoint.tls ? 8 : 7);
  const size_t slash = rest.find('/');
  std::string_view place = rest.substr(0, slash);
  if (slash != std::string_view::npos) at.path = rest.substr(slash);
  while (!at.path.empty() && at.path.back() == '/') at.path.pop_back();
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '?' || c == '#' || c == '@') {
      return wrong("has more than an address and a path");
    }
  }
  at.endpoint.port = at.endpoint.tls ? 443 : 80;
  const size_t bracket = place.find(']');
  const size_t colon = place.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = place.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), at.endpoint.port);
    if (error != std::errc() || end != port.data() + port.size() || at.endpoint.port == 0) return wrong("has no port");
    place = place.substr(0, colon);
  }
  if (bracket != std::string_view::npos && place.starts_with('[')) place = place.substr(1, place.size() - 2);
  if (place.empty()) return wrong("names no host");
  at.endpoint.address = place;
  at.endpoint.host = place;
  return at;
}

AlertWatch::AlertWatch(PrometheusAt at, Audience& audience)
    : at_(std::move(at)), audience_(audience), thread_([this] { Run(); }) {}

AlertWatch::~AlertWatch() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AlertWatch::Run() {
  while (true) {
    Say(Ask());
    MutexLock lock(mutex_);
    if (changed_.wait_for(lock, kEvery, [this]() LOCKSTEP_REQUIRES(mutex_) { return ends_; })) return;
  }
}

Result<std::vector<Alert>> AlertWatch::Ask() {
  if (connection_ == nullptr) {
    ASSIGN_OR_RETURN(connection_, control::HttpConnection::Open(at_.endpoint, at_.authorization));
  }
  ASSIGN_OR_RETURN(const control::HttpReply reply,
                   connection_->Ask(control::HttpConnection::Method::kGet, at_.path + "/api/v1/alerts", "", kDeadline));
  if (reply.status == 401 || reply.status == 403) {
    return Error{ErrorCode::kPermissionDenied, "Prometheus asks for a password"};
  }
  if (reply.status != 200) return Error{ErrorCode::kIo, fmt::format("Prometheus answered {}", reply.status)};
  return ReadAlerts(reply.body);
}

void AlertWatch::Say(const Result<std::vector<Alert>>& alerts) {
  if (alerts) {
    last_ = *alerts;
    has_answered_ = true;
  }
  report::JsonRow row;
  row.Key("state").Text(alerts ? "answers" : has_answered_ ? "silent" : "starting");
  row.Key("problem").TextOrNull(alerts ? "" : alerts.error().message).Key("url").TextOrNull(at_.url);
  row.Key("asked_unix_ns").Int(UnixNow()).Key("alerts").StartArray();
  for (const Alert& alert : last_) WriteAlert(row, alert);
  row.EndArray();
  audience_.Say("alerts", [&] { return std::string(row.Finish()); });
}

}  // namespace lockstep::live_site
