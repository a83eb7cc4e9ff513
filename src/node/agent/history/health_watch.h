#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "node/agent/history/figures.h"

namespace lockstep::agent {

/// Finds events between two looks: error counters that grew, links that went down, ranks that started and ended. The
/// state at the daemon's start is not an event. Not thread-safe.
class HealthWatch {
 public:
  /// Between Begin and Finish, all families and samples of one look.
  void Begin(int64_t now_unix_ns) { now_unix_ns_ = now_unix_ns; }
  void Take(const prometheus::MetricFamily& family);
  /// At most 64 events.
  std::vector<control::HistoryEvent> Finish(const std::vector<HistorySample>& samples);

 private:
  struct Seen {
    double value = 0;
    int64_t told_unix_ns = 0;
    bool is_there = false;  ///< In the look under way.
  };
  void Tell(const char* kind, HistoryLabels labels, double count);

  int64_t now_unix_ns_ = 0;
  bool has_looked_ = false;
  std::map<std::string, Seen> seen_;  ///< By metric and labels.
  std::map<std::string, HistoryLabels> ranks_;
  std::vector<control::HistoryEvent> events_;
};

}  // namespace lockstep::agent
