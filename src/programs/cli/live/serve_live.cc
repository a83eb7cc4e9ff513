#include "programs/cli/live/serve_live.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <stop_token>
#include <thread>

#include "base/calendar.h"
#include "base/http/http_server.h"
#include "base/mutex.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/client/trace_names.h"
#include "node/jobs/live_job.h"
#include "node/live/history.h"
#include "node/live/job_tracker.h"
#include "node/live/node_poller.h"
#include "present/live_site/access.h"
#include "present/live_site/action_request.h"
#include "present/live_site/live_site.h"
#include "programs/cli/capture/capture_output.h"
#include "programs/cli/cli.h"
#include "programs/cli/live/ask_steps.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/terminal/browser.h"
#include "programs/cli/terminal/ending_signals.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kWindow = 10 * kSecondNs;  // As lockstep top has it.
constexpr int64_t kLookTime = 5 * kSecondNs;
constexpr int64_t kPast = 600 * kSecondNs;  // Of what daemons remember.
constexpr int64_t kPastStep = 2 * kSecondNs;
constexpr int64_t kHangTime = 30 * kSecondNs;  // As lockstep hang has it.
constexpr int64_t kPatience = 10 * kSecondNs;
constexpr int64_t kStartPause = kSecondNs / 50;
constexpr int64_t kSignalPause = kSecondNs / 4;
constexpr size_t kBodyBytes = size_t{64} << 10;
constexpr size_t kViewersOfOneUser = 256;  // All who come through an ssh tunnel are one.

live_site::WatchOptions WatchOf(const jobs::Nodes& nodes) {
  const auto poller = std::make_shared<live::NodePoller>(nodes.endpoints, nodes.job_id, nodes.parallel);
  const auto tracker = std::make_shared<live::JobTracker>(kWindow, nodes.is_whole_job);
  live_site::WatchOptions watch;
  watch.look = [poller, tracker] {  // Shared, since a function object is copied; only the watcher's thread calls it.
    std::vector<live::NodeLook> looks = poller->Look(kLookTime);
    return tracker->Take(std::move(looks), SteadyNow(), UnixNow());
  };
  watch.recall = [poller, tracker, is_whole_job = nodes.is_whole_job](const auto& take) {
    int64_t until_ns = INT64_MAX;
    for (const live::NodeLook& look : poller->Look(kLookTime)) {
      if (!look.error) until_ns = std::min(until_ns, look.taken_ns);
    }
    if (until_ns == INT64_MAX) return;
    const live::History history(poller->LookBack(kPast, kPast / kPastStep, kLookTime));
    live::JobTracker past(kWindow, is_whole_job);  // Of what the other recalls nothing is to be shown as a look.
    history.Replay(kPastStep, until_ns, [&](std::vector<live::NodeLook> looks, int64_t taken_ns, int64_t unix_ns) {
      take(past.Take(looks, taken_ns, unix_ns));
      tracker->Recall(std::move(looks), taken_ns, unix_ns);
    });
  };
  return watch;
}

/// As `lockstep capture` leaves it.
Status KeepRecord(const control::JobCaptureRequest& request, const control::JobCaptureResult& result) {
  CaptureReport report;
  report.folder = request.folder;
  report.request = request;
  report.result = result;
  return KeepCaptureJson(report);
}

/// Looks as `lockstep hang` does; a folder of its own for each.
Result<std::string> CollectOf(jobs::Nodes nodes, const std::string& job_id,
                              const std::function<void(size_t done, size_t total)>& on_node) {
  control::InspectionSpec selection;
  live::SelectJob(job_id, &selection.job_id, &selection.pids);
  nodes.job_id = selection.job_id;
  jobs::LiveJob live(std::move(nodes), selection);
  ASSIGN_OR_RETURN(const jobs::Collection collection, jobs::CollectEvidence(live, kHangTime, "", on_node));
  return collection.folder;
}

}  // namespace

void ServeLive::Declare(CLI::App& app) {
  nodes_.Declare(app, "--node-port");
  app.option_defaults()->group("Live");
  app.add_option("-o,--output", folder_, "With nodes: folder for traces that are captured from the page (.)")
      ->type_name("DIR");
  app.option_defaults()->group("Alerts");
  app.add_flag(
      "--with-prometheus", with_prometheus_,
      "With nodes: start this machine's Prometheus for those nodes, with lockstep's rules, and show its alerts");
  app.add_option("--prometheus-data", prometheus_data_,
                 "Keep its database and log in this folder (a temporary one); two days and 2 GB at most")
      ->type_name("DIR");
  app.add_option("--prometheus-rules", prometheus_rules_, "Use the rules in this folder's *.yml files, not lockstep's")
      ->type_name("DIR");
  app.add_option("--prometheus-interval", prometheus_interval_, "Time between two of its scrapes, at least 1s (15s)")
      ->type_name("TIME");
  app.add_option("--prometheus", prometheus_url_, "Show the alerts of this Prometheus instead")->type_name("URL");
}

Status ServeLive::ReadFlags() {
  const bool is_own = !prometheus_data_.empty() || !prometheus_rules_.empty() || prometheus_interval_ != "15s";
  if (!with_prometheus_ && is_own) {
    return Misuse("--prometheus-data, --prometheus-rules and --prometheus-interval need --with-prometheus");
  }
  if (with_prometheus_ && !prometheus_url_.empty()) {
    return Misuse("--with-prometheus and --prometheus exclude each other");
  }
  ASSIGN_OR_RETURN(prometheus_interval_ns_, ParseTime(prometheus_interval_, "--prometheus-interval"));
  if (prometheus_interval_ns_ < kSecondNs || prometheus_interval_ns_ > 60 * kSecondNs) {
    return Misuse("--prometheus-interval: from 1s to 1m");  // The rules look at five minutes.
  }
  return {};
}

Result<std::unique_ptr<live_site::OwnPrometheus>> ServeLive::StartPrometheus(const jobs::Nodes& nodes,
                                                                             const EndingSignals& signals) const {
  live_site::PrometheusSetup setup;
  setup.nodes = nodes.endpoints;
  setup.data_folder = prometheus_data_;
  setup.rules_folder = prometheus_rules_;
  setup.interval_ns = prometheus_interval_ns_;
  return live_site::OwnPrometheus::Start(setup, [&] { return signals.Wait(kStartPause); });
}

Result<int> ServeLive::Run(const Options& options, Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  live_site::SiteOptions site_options;
  if (!prometheus_url_.empty()) {
    ASSIGN_OR_RETURN(site_options.prometheus, live_site::ReadPrometheusUrl(prometheus_url_));
  }
  ASSIGN_OR_RETURN(const jobs::Nodes nodes, nodes_.Find());
  // Before anything is there that would stay behind.
  ASSIGN_OR_RETURN(const EndingSignals signals, EndingSignals::Catch());
  std::unique_ptr<live_site::OwnPrometheus> prometheus;
  if (with_prometheus_) {
    Result<std::unique_ptr<live_site::OwnPrometheus>> started = StartPrometheus(nodes, signals);
    if (!started && signals.Wait(0)) return kDone;
    ASSIGN_OR_RETURN(prometheus, std::move(started));
    site_options.is_own_prometheus = true;
    site_options.prometheus.emplace();
    site_options.prometheus->endpoint.host = "127.0.0.1";
    site_options.prometheus->endpoint.address = "127.0.0.1";
    site_options.prometheus->endpoint.port = prometheus->port();
    site_options.prometheus->authorization = prometheus->authorization();
    site_options.prometheus->url = prometheus->url();
  }
  site_options.token = live_site::RandomName();
  if (options.browser) site_options.browser_code = live_site::RandomName();
  site_options.job_id = nodes.job_id;
  site_options.node_count = nodes.endpoints.size();
  site_options.watch = WatchOf(nodes);
  site_options.ask_steps = AskStepsOf(nodes, kLookTime);
  site_options.captures.emplace();
  site_options.captures->nodes = nodes.endpoints;
  site_options.captures->nodes_are_whole_job = nodes.is_whole_job;
  site_options.captures->parallel = nodes.parallel;
  site_options.captures->parent = folder_;
  site_options.captures->analysis = options.analysis;
  site_options.captures->keep_record = KeepRecord;
  jobs::Nodes asked = nodes;
  if (nodes_.names_socket()) asked.is_local = false;  // That daemon is to look, not this process.
  site_options.hangs.emplace();
  site_options.hangs->collect = [asked](const std::string& job_id, const auto& on_node) {
    return CollectOf(asked, job_id, on_node);
  };
  Mutex talk;
  site_options.audit = [&](const std::string& line) {
    const MutexLock lock(talk);
    console.err << fmt::format("{} {}\n", UtcName(UnixNow()), line) << std::flush;
  };
  const std::string token = site_options.token;
  const std::string browser_code = site_options.browser_code;
  http::ServerOptions server_options;
  server_options.port = options.port;
  server_options.takes_bodies = true;
  server_options.thread_count = 4;
  server_options.limits.body_bytes = kBodyBytes;
  server_options.limits.connection_count_per_source = kViewersOfOneUser;
  server_options.refuse = live_site::LiveSite::Refuse;
  live_site::LiveSite site(std::move(site_options));
  ASSIGN_OR_RETURN(const auto server, http::HttpServer::Open(server_options, [&](const http::Request& request) {
                     return site.Answer(request);
                   }));
  const std::string url = fmt::format("http://127.0.0.1:{}/?token={}", server->port(), token);
  console.out << url << std::endl;  // At once: somebody waits for the address.
  // Others can read the browser's command line for as long as it runs: the token is not on it.
  if (options.browser && !OpenInBrowser(fmt::format("http://127.0.0.1:{}/?code={}", server->port(), browser_code))) {
    console.err << "lockstep: xdg-open is not there; open the address yourself\n";
  }
  if (!options.quiet) {
    console.err << fmt::format(
        "Watching {} node{}; anyone who knows the address may look and capture. Ctrl-C ends it.\n",
        nodes.endpoints.size(), nodes.endpoints.size() == 1 ? "" : "s");
  }
  std::jthread ending([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (signals.Wait(kSignalPause)) return server->Stop();
    }
  });
  server->Run();
  ending = {};  // Joined.
  // Captures are cancelled on their nodes; what a thread still uses must not go away below it.
  if (!site.End(kPatience)) {
    prometheus.reset();
    ::_exit(kDone);
  }
  return kDone;
}

}  // namespace lockstep::cli
