#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/agent/log_metrics/log_file.h"
#include "node/agent/log_metrics/log_meter.h"
#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"
#include "node/proc/job_processes.h"

namespace lockstep::agent {

/// lockstep_log_*, lockstep_watchdog_timeouts_total.
const MetricSpecs& LogMetricSpecs();

/// Metrics from logs of this node's ranks: files with a name of ours that a rank's process, or `lockstep run` above it,
/// has open; its standard output and error if they are files; and files that the settings name.
class LogSensor final : public Sensor {
 public:
  using FindProcesses = std::function<std::vector<proc::JobProcess>()>;
  using TimePoint = std::chrono::steady_clock::time_point;
  using Clock = std::function<TimePoint()>;
  /// `paths`: patterns as the shell's. `find` lists the node's ranks, asked each few seconds as the patterns are.
  LogSensor(std::string host, FindProcesses find, std::vector<std::string> paths, std::string proc = "/proc",
            Clock now = std::chrono::steady_clock::now);

  const char* name() const override { return "logs"; }
  Result<Reading> Look() override;

 private:
  using RankKey = std::pair<std::string, std::string>;  ///< Labels job_id and rank.
  struct Watched {
    LogFile file;
    LogMeter meter;
    RankKey owner;           ///< The rank of lines that do not name one.
    bool skips_own = false;  ///< The rank has a log of ours besides.
    bool is_current = true;  ///< Found again at the last search; else it is read to its end and let go.
  };
  struct Counted {
    LogCounts counts = {};
    TimePoint there_at = {};  ///< When the rank, or a log of its, was there last.
  };
  void Search();
  void SearchRank(const proc::JobProcess& process, const RankKey& owner);
  void SearchPattern(const std::string& pattern);
  /// Takes the file over, or says that it is still there.
  void Follow(UniqueFd fd, uint32_t uid, const RankKey& owner, bool skips_own);
  LogCounts* CountsOf(const RankKey& owner, std::optional<int32_t> rank);

  const std::string host_;
  const FindProcesses find_;
  const std::vector<std::string> paths_;
  const std::string proc_;
  const Clock now_;
  TimePoint search_again_ = {};
  bool has_searched_ = false;
  std::map<LogFile::Identity, Watched> watched_;
  std::map<RankKey, Counted> counts_;
};

}  // namespace lockstep::agent
