#include "node/agent/daemon/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>

#include "base/testing/checkout.h"
#include "node/agent/daemon/access_for_test.h"
#include "node/control/api/json.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using control::CaptureState;
using control::Process;
using http::Method;
using http::Peer;
using http::Request;
using http::Response;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kId = "abcdefgh01234567";

class FakeRegistry : public Registry {
 public:
  std::vector<Process> Processes() const override { return processes; }
  std::optional<Process> Find(const std::string& /*id*/) const override { return std::nullopt; }
  Status Place(const std::string& /*id*/, Offer /*offer*/) override { return {}; }
  bool Withdraw(const std::string& /*id*/, const std::string& /*token*/) override { return false; }
  void Stop(const std::string& /*id*/, const std::string& /*trace_id*/) override {}
  std::string Note(const std::string& /*id*/) const override { return ""; }
  void Listen(std::function<void(const RegistryEvent&)> /*listener*/) override {}
  std::vector<Process> processes;
};

class FakeCaptures : public CaptureManager {
 public:
  Result<Capture> Start(const control::CaptureSpec& spec, const Caller& caller) override {
    if (start_error) return *start_error;
    capture.spec = spec;
    capture.requested_by = caller.name;
    return capture;
  }
  Result<Capture> Start(const control::CaptureSpec& spec, const Caller& caller,
                        const ForeignOutput& /*output*/) override {
    return Start(spec, caller);
  }
  std::vector<Capture> List(const Caller& caller) const override {
    return caller.may_trace_all || caller.uid == 1000u ? std::vector{capture} : std::vector<Capture>();
  }
  Result<Capture> Get(const std::string& id, const Caller& caller) const override {
    if (id != capture.id || List(caller).empty()) return Error{ErrorCode::kNotFound, "none"};
    return capture;
  }
  Result<Capture> Cancel(const std::string& id, const Caller& caller) override { return Get(id, caller); }
  Result<OpenTrace> Open(const std::string& id, const std::string& name, const Caller& caller) const override {
    opened.push_back(name);
    if (auto known = Get(id, caller); !known) return known.error();
    return OpenTrace{UniqueFd(::dup(0)), 5};
  }
  std::shared_ptr<void> Watch(const std::string& /*id*/, std::function<void(const Capture&)> to) override {
    listener = std::move(to);
    return std::shared_ptr<void>(this, [](void* self) { static_cast<FakeCaptures*>(self)->listener = nullptr; });
  }
  std::vector<std::string> Problems() const override { return problems; }
  CaptureCounts Counts() const override { return {}; }

  Capture capture;
  std::optional<Error> start_error;
  std::function<void(const Capture&)> listener;
  std::vector<std::string> problems;
  mutable std::vector<std::string> opened;
};

class ApiTest : public testing::Test {
 protected:
  ApiTest() : metrics_("0.1.0") {
    captures_.capture.id = kId;
    Process process;
    process.id = "7-1";
    process.uid = 1000;
    process.command = "python3 train.py";
    registry_.processes = {process};
    process.id = "8-1";
    process.uid = 1001;
    registry_.processes.push_back(process);
    config_.tokens = {{"r", Role::kRead, "", {}, "", Digest("read")},
                      {"c", Role::kCapture, "alice", 1000, "", Digest("capture")},
                      {"a", Role::kAdmin, "", {}, "", Digest("admin")}};
    ApiParts parts;
    parts.captures = &captures_;
    parts.registry = &registry_;
    parts.metrics = &metrics_;
    parts.network = &network_;
    parts.inspections = &inspections_;
    parts.status = [] {
      control::NodeStatus status;
      status.host = "n1";
      return status;
    };
    parts.problems = [this] { return problems_; };
    parts.samples = [] { return std::vector<MetricSample>(); };
    parts.audit = [this](const std::string& line) { audit_.push_back(line); };
    parts.now_ns = [this] { return now_ns_; };
    api_ = std::make_unique<Api>(parts, std::make_shared<Access>(config_, &users_, &limiter_));
  }

  Response Ask(Method method, const std::string& path, const std::string& token = "admin", std::string body = "{}") {
    Request request;
    request.method = method;
    request.path = path;
    request.peer = {Peer::Kind::kNetwork, {}, fmt::format("10.0.0.7:{}", ++port_), true};
    if (!token.empty()) request.authorization = "Bearer " + token;
    request.content_type = "application/json; charset=utf-8";
    request.body = std::move(body);
    return api_->Handle(request);
  }
  static std::string Body(const Response& response) { return response.body ? *response.body : ""; }
  static std::string Header(const Response& response, const std::string& name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  DaemonConfig config_;
  FakeUsers users_;
  FailureLimiter limiter_;
  Metrics metrics_;
  NetworkTester network_{"n1"};
  FakeRegistry registry_;
  FakeCaptures captures_;
  InspectionDesk inspections_{[](const auto&, const auto&) { return control::Inspection(); }, [] { return 0; }};
  std::vector<std::string> problems_;
  std::vector<std::string> audit_;
  std::unique_ptr<Api> api_;
  int64_t now_ns_ = 0;
  int port_ = 0;
};

TEST_F(ApiTest, EachRouteTakesItsMethodsFromItsRoleUpwards) {
  const std::pair<std::string, Role> callers[] = {
      {"", Role::kNone}, {"read", Role::kRead}, {"capture", Role::kCapture}, {"admin", Role::kAdmin}};
  const std::pair<Method, std::string> methods[] = {{Method::kGet, "GET"},
                                                    {Method::kHead, "GET"},
                                                    {Method::kPost, "POST"},
                                                    {Method::kDelete, "DELETE"},
                                                    {Method::kOther, "PATCH"}};
  std::map<std::string, std::map<std::string, Role>> expected;
  for (const Api::Route& route : Api::Routes()) expected[route.pattern][route.methods] = route.least;
  int refused = 0;
  for (const auto& [pattern, rows] : expected) {
    std::string path = pattern;
    for (const auto& [brace, value] : {std::pair<std::string, std::string>{"{id}", kId}, {"{name}", "a.json"}}) {
      if (const size_t at = path.find(brace); at != std::string::npos) path.replace(at, brace.size(), value);
    }
    for (const auto& [method, name] : methods) {
      for (const auto& [token, role] : callers) {
        const int status = Ask(method, path, token).status;
        const auto row = rows.find(name);
        const std::string where = fmt::format("{} {} as '{}'", name, path, token);
        if (row == rows.end()) {
          EXPECT_EQ(status, 405) << where;
        } else if (role >= row->second) {
          // Of another's capture nobody is told that it is there.
          const bool is_nobodys =
              path.starts_with("/api/v1/network-tests/") || path.starts_with("/api/v1/inspections/");
          const bool is_others = role == Role::kRead && path.find(kId) != std::string::npos;
          const int made = path.starts_with("/api/v1/inspections") ? 202 : 201;
          EXPECT_EQ(status, is_others || is_nobodys ? 404 : name == "POST" ? made : 200) << where;
        } else {
          EXPECT_EQ(status, role == Role::kNone ? 401 : 403) << where;
          ++refused;
          now_ns_ += FailureLimiter::kWindowNs;
        }
      }
    }
  }
  EXPECT_EQ(refused, 36);
}

TEST_F(ApiTest, UnknownPathsAreNotFound) {
  for (const char* path :
       {"/", "/api", "/api/v1", "/api/v1/", "/api/v1/status/", "/api/v2/status", "/api/v1/captures/", "/metrics/x",
        "/api/v1/captures//events", "/-/", "/api/v1/captures/abcdefgh01234567/traces", "//api/v1/status",
        "/api/v1/captures/abcdefgh01234567/traces/", "/api/v1/captures/abcdefgh01234567/traces/a.json/b.json"}) {
    for (const Method method : {Method::kGet, Method::kPost, Method::kDelete, Method::kOther}) {
      EXPECT_EQ(Ask(method, path).status, 404) << path;
    }
  }
}

TEST_F(ApiTest, AllowNamesTheMethods) {
  EXPECT_EQ(Header(Ask(Method::kDelete, "/api/v1/captures"), "Allow"), "GET, HEAD, POST");
  EXPECT_EQ(Header(Ask(Method::kPost, "/metrics"), "Allow"), "GET, HEAD");
}

TEST_F(ApiTest, NamesThatAreNoneReachNoFile) {
  for (const char* id :
       {"ABCDEFGH01234567", "abcdefgh0123456", "abcdefgh012345678", "..............%2e", "abcdefgh0123456."}) {
    EXPECT_EQ(Ask(Method::kGet, fmt::format("/api/v1/captures/{}", id)).status, 404);
    EXPECT_EQ(Ask(Method::kDelete, fmt::format("/api/v1/captures/{}", id)).status, 404);
    EXPECT_EQ(Ask(Method::kGet, fmt::format("/api/v1/captures/{}/events", id)).status, 404);
    EXPECT_EQ(Ask(Method::kGet, fmt::format("/api/v1/captures/{}/traces/a.json", id)).status, 404);
  }
  for (const char* name : {".json", "..json", "a.txt", "a b.json", "a;b.json", "a\x01.json", "a~.json"}) {
    EXPECT_EQ(Ask(Method::kGet, fmt::format("/api/v1/captures/{}/traces/{}", kId, name)).status, 404) << name;
  }
  EXPECT_EQ(Ask(Method::kGet, fmt::format("/api/v1/captures/{}/traces/{}.json", kId, std::string(300, 'a'))).status,
            404);
  EXPECT_TRUE(captures_.opened.empty());
}

TEST_F(ApiTest, CommandLinesAreShownToThoseWhoMayTrace) {
  const auto shown = [&](const std::string& token) {
    std::vector<bool> lines;
    const auto processes = control::ReadProcesses(Body(Ask(Method::kGet, "/api/v1/processes", token)));
    for (const Process& process : processes.value()) lines.push_back(!process.command.empty());
    return lines;
  };
  EXPECT_THAT(shown("read"), ElementsAre(false, false));
  EXPECT_THAT(shown("capture"), ElementsAre(true, false));
  EXPECT_THAT(shown("admin"), ElementsAre(true, true));
}

TEST_F(ApiTest, ACaptureIsMadeAndWritten) {
  const Response response = Ask(Method::kPost, "/api/v1/captures", "capture", R"({"selector":{"job_id":"7"}})");
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(Header(response, "Location"), fmt::format("/api/v1/captures/{}", kId));
  EXPECT_EQ(control::ReadCapture(Body(response)).value().spec.selector.job_id, "7");
  EXPECT_THAT(audit_, ElementsAre(AllOf(HasSubstr("action=capture"), HasSubstr("token c for alice from 10.0.0.7"),
                                        HasSubstr("result=accepted"), HasSubstr(kId))));
}

TEST_F(ApiTest, BadBodiesAreRefusedByName) {
  const Response response = Ask(Method::kPost, "/api/v1/captures", "admin", R"({"window":{"duration_ns":0}})");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(control::ReadError(Body(response)).code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(control::ReadError(Body(response)).message, HasSubstr("window.duration_ns"));
  Request request;
  request.method = Method::kPost;
  request.path = "/api/v1/captures";
  request.peer = {Peer::Kind::kUnixSocket, 0, "unix"};
  request.body = "{}";
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"}) {
    request.content_type = type;
    EXPECT_EQ(api_->Handle(request).status, 415) << type;
  }
}

TEST_F(ApiTest, ErrorsOfTheManagerKeepTheirKind) {
  const std::pair<ErrorCode, int> kinds[] = {
      {ErrorCode::kInvalidArgument, 400},    {ErrorCode::kNotFound, 404}, {ErrorCode::kPermissionDenied, 403},
      {ErrorCode::kFailedPrecondition, 409}, {ErrorCode::kIo, 500},       {ErrorCode::kUnsupported, 501}};
  for (const auto& [code, status] : kinds) {
    captures_.start_error = Error{code, "why \x1b[31m\n"};
    const Response response = Ask(Method::kPost, "/api/v1/captures");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(control::ReadError(Body(response)).code, code);
    EXPECT_THAT(audit_.back(), HasSubstr("result=refused detail=\"why ?[31m?\""));
  }
}

TEST_F(ApiTest, EventsBeginWithTheStateAndEndWithTheFinalOne) {
  Response response = Ask(Method::kGet, fmt::format("/api/v1/captures/{}/events", kId));
  ASSERT_NE(response.events, nullptr);
  EXPECT_EQ(response.content_type, "text/event-stream");
  bool closed = true;
  EXPECT_EQ(response.events->Take(&closed), fmt::format("event: capture\ndata: {}\n\n", ToJson(captures_.capture)));
  EXPECT_FALSE(closed);
  captures_.capture.state = CaptureState::kDone;
  captures_.listener(captures_.capture);
  EXPECT_THAT(response.events->Take(&closed), HasSubstr("\"state\":\"done\""));
  EXPECT_TRUE(closed);
  response.events.reset();
  EXPECT_EQ(captures_.listener, nullptr);  // Nobody listens any more.
}

TEST_F(ApiTest, EventsOfWhatHasEndedCloseAtOnceAndHeadOpensNone) {
  captures_.capture.state = CaptureState::kFailed;
  const Response response = Ask(Method::kGet, fmt::format("/api/v1/captures/{}/events", kId));
  bool closed = false;
  EXPECT_THAT(response.events->Take(&closed), HasSubstr("failed"));
  EXPECT_TRUE(closed);
  EXPECT_EQ(Ask(Method::kHead, fmt::format("/api/v1/captures/{}/events", kId)).events, nullptr);
}

TEST_F(ApiTest, EventStreamsAreBoundedAndCloseWithTheDaemon) {
  std::vector<Response> open;
  Response response = Ask(Method::kGet, fmt::format("/api/v1/captures/{}/events", kId));
  while (response.status == 200 && open.size() < 1000) {
    open.push_back(std::move(response));
    response = Ask(Method::kGet, fmt::format("/api/v1/captures/{}/events", kId));
  }
  EXPECT_EQ(open.size(), 64u);
  EXPECT_EQ(response.status, 503);
  api_->CloseStreams();
  bool closed = false;
  open.back().events->Take(&closed);
  EXPECT_TRUE(closed);
}

TEST_F(ApiTest, TracesAreSentFromAnOpenFile) {
  const Response response = Ask(Method::kGet, fmt::format("/api/v1/captures/{}/traces/n1_rank0.json", kId));
  EXPECT_EQ(response.status, 200);
  ASSERT_NE(response.descriptor, nullptr);
  EXPECT_TRUE(response.descriptor->valid());
  EXPECT_EQ(Header(response, "Content-Disposition"), "attachment; filename=\"n1_rank0.json\"");
}

TEST_F(ApiTest, ReadinessNeedsNoCredentialsAndTellsNoPaths) {
  EXPECT_EQ(Ask(Method::kGet, "/-/ready", "").status, 200);
  problems_ = {"/secret/place is full"};
  captures_.problems = {"another"};
  const Response response = Ask(Method::kGet, "/-/ready", "");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(Body(response), Not(HasSubstr("secret")));
  const auto status = control::ReadNodeStatus(Body(Ask(Method::kGet, "/api/v1/status", "read")));
  EXPECT_THAT(status.value().problems, ElementsAre("/secret/place is full", "another"));
  EXPECT_EQ(status.value().process_count, 2u);
  EXPECT_EQ(status.value().running_capture_count, 1u);
}

TEST_F(ApiTest, FailedAttemptsAreAnsweredAlikeThenLimited) {
  for (int i = 0; i < FailureLimiter::kAttempts; ++i) {
    const Response response = Ask(Method::kGet, "/api/v1/status", i % 2 ? "" : "wrong");
    EXPECT_EQ(response.status, 401);
    EXPECT_EQ(Header(response, "WWW-Authenticate"), "Bearer");
  }
  const Response response = Ask(Method::kGet, "/api/v1/status", "wrong");
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(Header(response, "Retry-After"), "60");
  EXPECT_EQ(audit_.size(), static_cast<size_t>(FailureLimiter::kAttempts));
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/status", "read").status, 200);
}

TEST_F(ApiTest, MetricsCountWhatHappened) {
  Ask(Method::kGet, "/api/v1/status");
  Ask(Method::kGet, "/nowhere");
  Ask(Method::kGet, "/api/v1/status", "");
  captures_.capture.state = CaptureState::kPartial;
  captures_.capture.targets.resize(1);
  captures_.capture.targets[0].trace_bytes = 42;
  std::string text;
  for (int i = 0; i < 2; ++i) text = Body(Ask(Method::kGet, "/metrics", "read"));
  for (const char* line :
       {"lockstep_build_info{version=\"0.1.0\"} 1\n", "lockstep_processes{role=\"trainer\",state=\"idle\"} 2\n",
        "lockstep_processes{role=\"helper\",state=\"silent\"} 0\n", "lockstep_captures_total{outcome=\"partial\"} 1\n",
        "lockstep_captures_total{outcome=\"failed\"} 0\n", "lockstep_capture_bytes_total{outcome=\"partial\"} 42\n",
        "lockstep_api_requests_total{code=\"200\",handler=\"/api/v1/status\"} 1\n",
        "lockstep_api_requests_total{code=\"401\",handler=\"/api/v1/status\"} 1\n",
        "lockstep_api_requests_total{code=\"404\",handler=\"other\"} 1\n",
        "lockstep_api_auth_failures_total{reason=\"unknown\"} 1\n", "\nprocess_resident_memory_bytes ",
        "\nprocess_open_fds ", "\nprocess_cpu_seconds_total ", "\nprocess_start_time_seconds "}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricSpecsTest, TheDocumentListsEachAsItIs) {
  std::ifstream stream(Checkout() / "docs/daemon-metrics.md");
  const std::string document((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  size_t rows = 0;
  for (const MetricSpec& spec : AllMetricSpecs()) {
    std::string labels;
    for (const char* at = spec.labels; *at != '\0'; ++at)
      labels += *at == ',' ? std::string("`, `") : std::string(1, *at);
    if (!labels.empty()) labels = "`" + labels + "`";
    const std::string row = fmt::format("| `{}` | {} | {} | {} |\n", spec.name, spec.type, labels, spec.help);
    EXPECT_THAT(document, HasSubstr(row));
    EXPECT_THAT(spec.help, Not(testing::ContainsRegex("[\\\n]")));
    EXPECT_EQ(std::string_view(spec.name).ends_with("_total"), std::string_view(spec.type) == "counter") << spec.name;
  }
  for (size_t at = document.find("\n| `"); at != std::string::npos; at = document.find("\n| `", at + 1)) ++rows;
  EXPECT_EQ(rows, AllMetricSpecs().size());
}

}  // namespace
}  // namespace lockstep::agent
