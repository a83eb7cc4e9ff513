#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::live_site {

/// An alert that Prometheus has as pending or firing.
struct Alert {
  std::string name;
  bool is_firing = false;
  std::string severity;  ///< Its label; empty: none.
  std::string summary;
  std::string runbook;                        ///< Of ours: "xid"; empty: none, or none of ours.
  std::map<std::string, std::string> labels;  ///< Without alertname and severity.
  std::optional<int64_t> since_unix_ns;
  std::optional<double> value;
};
constexpr size_t kMostAlerts = 1000;
constexpr size_t kMostAlertLabels = 64;

/// Reads what Prometheus answers to GET /api/v1/alerts: firing first, then by severity, then the oldest. Of more than
/// kMostAlerts the first are kept. Errors: kCorruptData; kIo with Prometheus's own words.
Result<std::vector<Alert>> ReadAlerts(std::string_view json);

/// "2026-11-23T10:00:00.5Z", as Go writes times; nullopt: it is none.
std::optional<int64_t> ReadTimestamp(std::string_view text);

}  // namespace lockstep::live_site
