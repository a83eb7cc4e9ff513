#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/cli/live/follow_job.h"
#include "programs/cli/terminal/console.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

/// `lockstep export otlp --follow`: what a running job does now, to an OpenTelemetry collector.
class FollowOtlp {
 public:
  void Declare(CLI::App& app);
  bool is_asked_for() const { return follow_.is_asked_for(); }
  /// Reads the flags and OTEL_EXPORTER_OTLP_ENDPOINT. Errors: kInvalidArgument.
  Status Read();
  /// Returns an ExitStatus. Errors: FollowJob's, and those of the file of headers.
  Result<int> Run(bool is_quiet, Console& console) const;

 private:
  Result<std::vector<std::string>> ReadHeaders() const;

  FollowJob follow_;
  CLI::App* app_ = nullptr;
  std::string endpoint_;
  std::string url_;  ///< The endpoint's, for metrics.
  std::string header_file_;
  std::string authority_file_;
  std::string certificate_file_;
  std::string key_file_;
  uint64_t queue_ = 1000;
};

}  // namespace lockstep::cli
