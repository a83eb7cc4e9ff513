#include "present/live_site/live_site.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "present/live_site/access.h"
#include "present/live_site/action_desk.h"
#include "present/live_site/action_request.h"
#include "present/live_site/audience.h"
#include "present/live_site/health_log.h"
#include "present/live_site/shipped_files.h"
#include "present/live_site/stage_news.h"
#include "present/live_site/view_history.h"
#include "present/page/html.h"
#include "present/page/page.h"
#include "present/report/json_stream.h"

namespace lockstep::live_site {
namespace {

constexpr std::string_view kApiPath = "/api/live/";
constexpr std::string_view kCapturesPath = "captures";
constexpr size_t kNameBytes = 32;  // Of an action's id.

http::Response JsonResponse(int status, std::string json) {
  http::Response response = http::TextResponse(status, std::move(json));
  response.content_type = "application/json";
  return response;
}

http::Response ErrorResponse(int status, const char* code, std::string_view message) {
  report::JsonRow row;
  row.Key("error").StartObject().Key("code").Text(code).Key("message").Text(message).EndObject();
  return JsonResponse(status, std::string(row.Finish()));
}

http::Response ErrorResponse(const Error& error) {
  const auto status = [&] {
    switch (error.code) {
      case ErrorCode::kNotFound: return 404;
      case ErrorCode::kFailedPrecondition: return 409;
      case ErrorCode::kLimitExceeded:
      case ErrorCode::kCancelled: return 503;
      default: return 400;
    }
  };
  return ErrorResponse(status(), ErrorCodeName(error.code), error.message);
}

/// The caller, as the kernel identifies it.
std::string Who(const http::Peer& peer) {
  return peer.uid ? fmt::format("uid {} at {}", *peer.uid, peer.address) : peer.address;
}

/// Text from outside, fit for a line of a log.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

http::Response PackedResponse(std::string json, bool accepts_gzip) {
  if (!accepts_gzip) return JsonResponse(200, std::move(json));
  http::Response response = JsonResponse(200, page::MakeBlock("json", json).gzip);
  response.gzip = true;
  return response;
}

}  // namespace

struct LiveSite::State {
  explicit State(SiteOptions options_)
      : options(std::move(options_)),
        actions([this] { audience.Say("captures", [this] { return actions.Json(); }); },
                [this](const Action& action) { Note(action); }),
        stages(Stages()),
        watcher(Watched(), audience, history, health) {
    const std::string title =
        options.job_id.empty() ? "lockstep live" : fmt::format("job {} - lockstep live", options.job_id);
    const page::PageFrame frame{
        .kind = page::PageKind::kLive,
        .title = title,
        .summary_html =
            "<section id=\"summary-verdict\"><h2>Live</h2>\n<p>This page is drawn from what nodes say now. "
            "Without scripts: <code>lockstep top</code> in a terminal.</p></section>\n"};
    page = std::make_shared<const std::string>(page::ServedPage(frame));
    report::JsonRow data;
    data.Key("interval_ns").Int(options.watch.interval_ns).Key("job_id").TextOrNull(options.job_id);
    data.Key("node_count").Uint(options.node_count).Key("prometheus");
    data.Text(!options.prometheus ? "none" : options.is_own_prometheus ? "own" : "other");
    data.Key("may_capture").Bool(options.captures.has_value());
    if (options.prometheus) alerts = std::make_unique<AlertWatch>(*options.prometheus, audience);
    main = page::DocumentJson(page::PageKind::kLive, title, false, {}, {}, data.Finish());
  }
  ~State() { audience.Close(); }

  WatchOptions Watched() {
    WatchOptions watch = options.watch;
    watch.on_view = [this](live::View* view) { stages.Pass(view); };
    return watch;
  }

  live_stages::StageWatchOptions Stages() {
    return {.ask = options.ask_steps,
            .is_wanted = [this] { return audience.size() > 0; },
            .tell =
                [this](const std::vector<live_stages::JobNews>& news) {
                  audience.Say("stages", [&] { return StageNewsJson(news, UnixNow()); });
                }};
  }

  http::Response Page(std::string_view path, bool accepts_gzip) const {
    if (path == "/data/main") return PackedResponse(main, accepts_gzip);
    http::Response response;
    response.content_type = "text/html; charset=utf-8";
    response.body = page;
    return response;
  }

  /// The address that the browser was started with becomes the one with the token.
  http::Response Admit(std::string_view code, const http::Request& request) {
    const bool is_right = !options.browser_code.empty() && IsSame(code, options.browser_code);
    if (!is_right || request.peer.uid != ::geteuid() || request.method != http::Method::kGet ||
        code_is_used.exchange(true)) {
      return http::TextResponse(403,
                                "This address opens the page once, and only for the user who started lockstep serve: "
                                "open the address that it printed.\n");
    }
    http::Response response = http::TextResponse(303, "");
    response.headers.emplace_back("Location", "/?token=" + options.token);
    return response;
  }

  http::Response Api(const http::Request& request) {
    if (!HasToken(request, options.token)) {
      return ErrorResponse(401, "permission_denied",
                           "The token is missing or wrong: it is part of the address that lockstep serve printed.");
    }
    const std::string_view what = std::string_view(request.path).substr(kApiPath.size());
    if (request.method == http::Method::kPost) return Act(what, request);
    if (request.method == http::Method::kDelete) return ErrorResponse(404, "not_found", "There is nothing to delete.");
    if (what == "events") {
      http::Response response;
      response.content_type = "text/event-stream";
      response.events = audience.Join();
      return response;
    }
    if (what == "history") return PackedResponse(history.Json(), request.accepts_gzip);
    if (what == "view") {
      const std::shared_ptr<const std::string> view = watcher.newest();
      if (view == nullptr)
        return ErrorResponse(503, "failed_precondition", "The nodes are being asked for the first time.");
      http::Response response = JsonResponse(200, "");
      response.body = view;
      return response;
    }
    return ErrorResponse(404, "not_found", "There is nothing here.");
  }

  /// An action begins or ends; each is logged.
  http::Response Act(std::string_view what, const http::Request& request) {
    std::string told;
    const Result<std::string> id = Begin(what, request, &told);
    if (options.audit && !told.empty()) {
      options.audit(fmt::format("{}: {}: {}", Who(request.peer), told, id ? "taken" : id.error().message));
    }
    if (!id) return ErrorResponse(id.error());
    report::JsonRow row;
    row.Key("id").Text(*id);
    return JsonResponse(202, std::string(row.Finish()));
  }

  Result<std::string> Begin(std::string_view what, const http::Request& request, std::string* told) {
    if (what == kCapturesPath && options.captures) {
      *told = "capture";
      ASSIGN_OR_RETURN(CaptureWish wish, ReadCaptureWish(request.body, options.job_id));
      *told = Printable(fmt::format("capture of job '{}'", wish.job_id));
      Action action = CaptureAction(wish);
      return actions.Begin(std::move(action), CaptureWork(*options.captures, std::move(wish)));
    }
    if (what == "hang" && options.hangs) {
      *told = "evidence";
      ASSIGN_OR_RETURN(const std::string job_id, ReadHangWish(request.body, options.job_id));
      *told = Printable(fmt::format("evidence of job '{}'", job_id));
      return actions.Begin(HangAction(job_id), HangWork(*options.hangs, job_id));
    }
    constexpr std::string_view kCancel = "/cancel";
    if (what.size() == kCapturesPath.size() + 1 + kNameBytes + kCancel.size() && what.starts_with(kCapturesPath) &&
        what.ends_with(kCancel)) {
      const std::string id(what.substr(kCapturesPath.size() + 1, kNameBytes));
      *told = "end of capture " + Printable(id);
      RETURN_IF_ERROR(actions.Cancel(ActionKind::kCapture, id));
      return id;
    }
    return Error{ErrorCode::kNotFound, "There is nothing to ask for here."};
  }

  void Note(const Action& action) {
    const bool is_capture = action.kind == ActionKind::kCapture;
    HealthEntry entry;
    entry.at_unix_ns = action.finished_unix_ns.value_or(action.asked_unix_ns);
    entry.kind = is_capture ? "capture" : "hang";
    entry.job_id = action.job_id;
    const bool failed = action.state == ActionState::kFailed;
    entry.severity = failed ? live::AlarmSeverity::kWarning : live::AlarmSeverity::kInfo;
    entry.text = fmt::format("{} {}: {}", is_capture ? "capture" : "evidence", ActionStateName(action.state),
                             action.sentence.empty() ? action.reason : action.sentence);
    health.Note(std::move(entry));
    audience.Say("health", [this] { return health.Json(); });
  }

  /// "/captures/ID/..." and "/hangs/ID/...": a client that knows the ID got it from a client with the token.
  http::Response Below(ActionKind kind, std::string_view rest, const http::Request& request) {
    const size_t slash = rest.find('/');
    const std::shared_ptr<const Pages> pages = actions.FindPages(kind, std::string(rest.substr(0, slash)));
    if (pages == nullptr) {
      return http::TextResponse(404,
                                "There is no such report, or it was dropped for newer ones: its files are where "
                                "they were written.\n");
    }
    if (slash == std::string_view::npos) {
      http::Response response = http::TextResponse(308, "The page is below.\n");
      response.headers.emplace_back("Location", request.path + "/");
      return response;
    }
    http::Request inner = request;
    inner.path = rest.substr(slash);
    return (*pages)(inner);
  }

  const SiteOptions options;
  ViewHistory history;
  HealthLog health;
  Audience audience{[this] { watcher.Wake(); }};
  ActionDesk actions;              ///< Before the watcher is made, after it is gone: both tell the audience.
  live_stages::StageWatch stages;  ///< The watcher tells it which jobs there are.
  Watcher watcher;
  std::shared_ptr<const std::string> page;
  std::string main;  ///< JSON.
  std::atomic<bool> code_is_used = false;
  std::unique_ptr<AlertWatch> alerts;
};

LiveSite::LiveSite(SiteOptions options) : state_(std::make_unique<State>(std::move(options))) {}
LiveSite::~LiveSite() = default;

http::Response LiveSite::Answer(const http::Request& request) {
  const std::string_view path = request.path;
  const bool is_get = request.method == http::Method::kGet || request.method == http::Method::kHead;
  if (path.starts_with(kApiPath)) return state_->Api(request);
  constexpr std::string_view kCaptures = "/captures/";
  constexpr std::string_view kHangs = "/hangs/";
  constexpr std::string_view kRunbooks = "/runbook/";
  if (!is_get) return ErrorResponse(404, "not_found", "There is nothing here.");
  if (const auto code = QueryValue(request.query, "code"); path == "/" && code) return state_->Admit(*code, request);
  if (path == "/" || path == "/index.html" || path == "/data/main") return state_->Page(path, request.accepts_gzip);
  if (path.starts_with(kCaptures)) return state_->Below(ActionKind::kCapture, path.substr(kCaptures.size()), request);
  if (path.starts_with(kHangs)) return state_->Below(ActionKind::kHang, path.substr(kHangs.size()), request);
  if (path.starts_with(kRunbooks)) {
    const auto text = ShippedFile(std::string(path.substr(kRunbooks.size())) + ".md");
    if (!text) return http::TextResponse(404, "There is no such page of an alert.\n");
    return http::TextResponse(200, std::string(*text));
  }
  if (path == "/-/healthy") return http::TextResponse(200, "healthy\n");
  return http::TextResponse(404, "There is nothing here; the page is at /.\n");
}

bool LiveSite::End(int64_t patience_ns) {
  state_->audience.Close();
  return state_->actions.End(patience_ns);
}

http::Response LiveSite::Refuse(int status, const std::string& sentence) {
  return ErrorResponse(status, status == 403 ? "permission_denied" : "invalid_argument", sentence);
}

}  // namespace lockstep::live_site
