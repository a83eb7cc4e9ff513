#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/http/http_message.h"
#include "present/live_site/alert_watch.h"
#include "present/live_site/capture_work.h"
#include "present/live_site/hang_work.h"
#include "present/live_site/watcher.h"
#include "present/live_stages/stage_watch.h"

namespace lockstep::live_site {

struct SiteOptions {
  std::string token;  ///< RandomName(): a client that has it may look and act.
  /// RandomName(), or empty: "/?code=..." leads to the page with its token, once and only for the user that this
  /// program runs as. For where others may read the address: a browser's command line.
  std::string browser_code = {};
  std::string job_id;  ///< That was asked for; empty: all.
  size_t node_count = 0;
  WatchOptions watch;
  live_stages::AskSteps ask_steps = {};       ///< Null: nothing is known of stages.
  std::optional<CaptureSetup> captures = {};  ///< Unset: none can be asked for, as the next.
  std::optional<HangSetup> hangs = {};
  std::optional<PrometheusAt> prometheus = {};
  bool is_own_prometheus = false;
  std::function<void(const std::string& line)> audit = {};  ///< A line for each action; from any thread.
};

/// The live page and what it talks to: docs/formats/live-page.md. Thread-safe.
class LiveSite {
 public:
  explicit LiveSite(SiteOptions options);
  ~LiveSite();
  LiveSite(const LiveSite&) = delete;
  LiveSite& operator=(const LiveSite&) = delete;

  http::Response Answer(const http::Request& request);
  /// Asks what is under way to end and waits at most so long; false: something still is.
  bool End(int64_t patience_ns);
  /// What a server's transport refuses, as the site says its errors.
  static http::Response Refuse(int status, const std::string& sentence);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::live_site
